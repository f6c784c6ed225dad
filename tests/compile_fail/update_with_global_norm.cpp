// expect: error<.*"an update within_backward".*"cannot wait for the global".*"norm: set clip to none, value".*"or tensor_norm"
// Updates within the backward pass cannot be clipped by the global norm, which is known only after the first updates.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using loss = iso::model::mlp_loss<iso::model::mlp{.inputs = 4, .hidden = 8, .layers = 2, .classes = 2}, 2>;
constexpr iso::training_options options{.update = iso::update_policy::within_backward};
template struct iso::training<loss, iso::target<iso::backend::cpu, iso::precision::f32>, options>;
