// expect: error<.*"small has no f32 kernel for".*"gelu_tanh: use another".*"-DBACKEND or add".*"kernels/small/gelu_tanh.hpp"
// An element-wise op inside a fused step is missed like any other; no precision of this backend has it.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct small : iso::backend::cpu {
  static constexpr std::string_view name = "small";
  using kernels = boost::mp11::mp_remove<iso::cpu::reference_kernels<iso::precision::f32>,
                                         iso::cpu::kernel<iso::op::gelu_tanh, iso::precision::f32, iso::kernels::reference>>;
};
using logits = iso::model::mlp_forward<iso::model::mlp{}, 4>;
template struct iso::inference<logits, iso::target<small, iso::precision::f32, iso::kernels::reference>>;
