// Attention of packed sequences on tensor cores, for each head size. Bound by latency where sequences are short: on an H200, 256 sequences of 128 rows and 12 heads of 32 take
// 64 us, and 82 by tiles of 64 keys, three blocks of which a multiprocessor has.
#include "../attention/packed.cuh"
#include "attention_forward.cuh"

namespace isotope::cuda::gpu {

template <int D> __device__ inline void attention_packed_mma(const packed_heads_arguments& p) {
  constexpr attention_tile t = packed_tile<D>::value;
  using forward = attention_forward<D, t.warps, t.strips, t.columns, false>;
  attend_in_sequence<forward::rows>(p, [](const attention_arguments& a, int head, int q0) { forward::run(a, head, q0); });
}

extern "C" __global__ void __launch_bounds__(128, 6) attention_packed_mma_32(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_mma<32>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_packed_mma_64(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_mma<64>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_packed_mma_80(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_mma<80>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_packed_mma_96(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_mma<96>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_packed_mma_128(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_mma<128>(a);
}

}  // namespace isotope::cuda::gpu
