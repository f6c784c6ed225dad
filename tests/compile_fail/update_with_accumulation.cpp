// expect: error<.*"an update within_backward".*"keeps no gradient for later".*"micro-batches: set accumulate".*"to false"
// A gradient that is gone when its parameter is updated takes no second micro-batch.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using loss = iso::model::mlp_loss<iso::model::mlp{.inputs = 4, .hidden = 8, .layers = 2, .classes = 2}, 2>;
constexpr iso::training_options options{.clip = iso::clipping::none, .update = iso::update_policy::within_backward, .accumulate = true};
template struct iso::training<loss, iso::target<iso::backend::cpu, iso::precision::f32>, options>;
