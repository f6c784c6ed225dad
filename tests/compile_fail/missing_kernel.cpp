// expect: error<.*"small has no bf16 kernel for".*"attention_grad: use".*"-DPRECISION=f32"
// If a backend lacks a kernel that a plan needs, the message names the op, the backend and what would work.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct small : iso::backend::cpu {
  static constexpr std::string_view name = "small";
  template <class P> using reference_kernels = iso::library_kernels<iso::cpu::kernel, P, iso::kernels::reference>;
  using kernels = boost::mp11::mp_remove<reference_kernels<iso::precision::bf16>,
                                         iso::cpu::kernel<iso::op::attention_grad, iso::precision::bf16, iso::kernels::reference>>;
  using all = boost::mp11::mp_append<kernels, reference_kernels<iso::precision::f32>>;
};
struct small_of_both : small {
  using kernels = small::all;
};
using loss = iso::model::gpt_loss<iso::model::gpt{1, 1, 8, 16, 8}, 1, 8>;
template struct iso::training<loss, iso::target<small_of_both, iso::precision::bf16, iso::kernels::reference>>;
