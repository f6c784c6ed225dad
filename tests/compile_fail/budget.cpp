// expect: error<.*"plan needs [0-9]+ MiB, budget is 1".*"MiB: lower the batch,".*"recompute blocks or raise the".*"budget"
// A program's type may contain a memory budget in bytes; a plan that exceeds it does not compile.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using loss = iso::model::mlp_loss<iso::model::mlp{.inputs = 64, .hidden = 512, .layers = 2, .classes = 10}, 32>;
template struct iso::training<loss, iso::target<iso::backend::cpu, iso::precision::f32>, iso::training_options{}, 1 << 20>;
