// expect: (static assertion|static_assert).*an inference program keeps no gradients: plan a loss with isotope::training
// A gradient of an inference program cannot be read; training is another program of the same model.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using here = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;
constexpr auto trained = iso::training<iso::model::mlp_loss<iso::model::mlp{}, 4>, here>::gradient("out.weight");
static_assert(trained >= 0);
constexpr auto asked = iso::inference<iso::model::mlp_forward<iso::model::mlp{}, 4>, here>::gradient("out.weight");
