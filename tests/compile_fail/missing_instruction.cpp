// expect: error<.*"small has no f32 kernel for".*"relu: use another -DBACKEND".*"or add relu.hpp to".*"kernels/small/reference"
// A missing element-wise op inside a fused step is reported like any other missing kernel. No precision of this backend has it.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct small : iso::backend::cpu {
  static constexpr std::string_view name = "small";
  using kernels = boost::mp11::mp_remove<iso::library_kernels<iso::cpu::kernel, iso::precision::f32, iso::kernels::reference>,
                                         iso::cpu::kernel<iso::op::relu, iso::precision::f32, iso::kernels::reference>>;
};
struct rectified {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    return relu(matmul(s.input("x", {4, 8}), s.param("w", {8, 2})) + s.param("b", {2}));
  }
};
template struct iso::inference<rectified, iso::target<small, iso::precision::f32, iso::kernels::reference>>;
