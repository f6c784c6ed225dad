// expect: error<.*gpt: width.*770.*is.*not a multiple of heads.*12:.*choose 768"
// If the sizes of a model are inconsistent, the message suggests one that fits.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

using loss = iso::model::gpt_loss<iso::model::gpt{.width = 770}, 1, 8>;
template struct iso::training<loss, iso::target<iso::backend::cpu, iso::precision::f32>>;
