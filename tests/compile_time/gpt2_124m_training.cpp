// limit: ratio=6.2 megabytes=1500 flags=-O2 -ftemplate-depth=128
// A training step of GPT-2 124M, planned by the compiler. Templates nest at most 128 deep: g++ gives up at 900, clang at 1024.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>

namespace iso = isotope;

using step = iso::training<iso::model::gpt_loss<iso::model::gpt{}, 4, 1024>,
                           iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>>;
static_assert(step::parameters == iso::model::parameter_count(iso::model::gpt{}));

iso::plan_view gpt2_step() { return step::view(); }
