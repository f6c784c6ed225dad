// expect: (static assertion|static_assert).*an inference program keeps no gradients: plan a loss with isotope::training
// Inference and training are different programs of one model.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using here = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;
constexpr auto trained = iso::training<iso::model::mlp_loss<iso::model::mlp{}, 4>, here>::gradient("out.weight");
static_assert(trained >= 0);
constexpr auto asked = iso::inference<iso::model::mlp_forward<iso::model::mlp{}, 4>, here>::gradient("out.weight");
