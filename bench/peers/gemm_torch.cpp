// Products of the cpu backend's native bf16 kernels as a library for gemm_torch.py, which builds and calls it.
#include <isotope/kernels/cpu/native/all.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace {
using namespace isotope;
std::unique_ptr<cpu::thread_pool> pool;
}  // namespace

extern "C" void isotope_threads(int threads) { pool = std::make_unique<cpu::thread_pool>(threads); }
/// C (M,N) = A B; A is stored (K,M) where ta, B is stored (N,K) where tb. The result is f32 or bf16.
extern "C" void isotope_gemm(int ta, int tb, std::int64_t M, std::int64_t N, std::int64_t K, void* A, void* B, void* C, int f32) {
  using kernel = cpu::kernel<op::matmul, precision::bf16, kernels::native>;
  const shape a{M, K}, b{K, N}, c{M, N};
  const dtype result = f32 != 0 ? dtype::f32 : dtype::bf16;
  const cpu::view in[] = {{A, a, ta != 0 ? extents{1, M} : extents{K, 1}, dtype::bf16},
                          {B, b, tb != 0 ? extents{1, K} : extents{N, 1}, dtype::bf16}};
  const cpu::view out[] = {{C, c, extents{N, 1}, result}};
  const attributes t = op::matmul::constants{.format = result, .operands = 2};
  const shape ins[] = {a, b}, outs[] = {c};
  static std::vector<float> scratch;
  const auto floats = std::size_t(kernel::scratch({ins, outs, &t})) / 4 + 64;
  if (scratch.size() < floats) scratch.resize(floats);
  cpu::launch l;
  l.in = in;
  l.out = out;
  l.attr = &t;
  l.pool = pool.get();
  l.scratch = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 255) / 256 * 256);
  kernel::run(l);
}
