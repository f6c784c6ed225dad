#pragma once
/// Rounds activations to 8 bits as quantized::round_activations, with the same bits, a vector at a time: 32 divisions one by one would take longer than the
/// products of a narrow layer.
#include <isotope/kernels/cpu/gemm/a8.hpp>
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Where the codes of a block stand, and what codes of the weight are larger by as unsigned numbers; those of q8_0 are signed here.
struct a8_order {
  /// Elements that meet the bytes of one 32-bit word stand together: of eight elements of q8_0 the even ones, then the odd ones; of q4_0 each eighth one.
  static constexpr int place(dtype t, int j) { return t == dtype::q8_0 ? j / 8 * 8 + j % 2 * 4 + j % 8 / 2 : j % 8 * 4 + j / 8; }
  static constexpr int element(dtype t, int at) {
    int j = 0;
    while (place(t, j) != at) ++j;
    return j;
  }
  static constexpr int excess(dtype t) { return t == dtype::q8_0 ? 0 : 8; }
};

/// A block of rounded activations whose codes stand as the activations do, and the sum of the codes.
struct a8_natural_block {
  alignas(32) std::int8_t code[quantized::block];
  float scale;
  std::int32_t sum;
};

class a8_round {
 public:
  /// Rounds `blocks` blocks, which are contiguous.
  /// @tparam Order  as a8_order
  template <dtype Type, class Order = a8_order>
  ISOTOPE_NOINLINE static void row(const float* x, std::int64_t blocks, portable::a8_block* to) {
    for (std::int64_t b = 0; b < blocks; ++b) block<Type, Order>(x + b * quantized::block, to[b]);
  }
  ISOTOPE_INLINE static a8_natural_block natural(const float* x) {
    vector v[vectors], most{}, poison{};
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) {
      v[i] = load_vector(x + i * lanes);
      const vector size = v[i] < 0.0f ? -v[i] : v[i];
      most = size > most ? size : most;
      poison += v[i] * 0.0f;
    }
    const float largest = folded(most, [](const vector& a, const vector& b) ISOTOPE_INLINE_LAMBDA { return a > b ? a : b; });
    const float scale = largest / 127.0f + folded(poison, plus);  // NaN where a number is infinite or NaN
    a8_natural_block r = {.code = {}, .scale = scale, .sum = 0};
    integers sum{};
    if (scale > 0)
#pragma GCC unroll 8
      for (int i = 0; i < vectors; ++i) {
        constexpr float whole = 0x1.8p23f;  // as in round_activations
        const vector y = v[i] / scale, above = y > 127.0f ? vector{} + 127.0f : y, limited = y < -127.0f ? vector{} - 127.0f : above;
        const auto rounded = __builtin_convertvector((limited + whole) - whole, integers);
        const auto narrow = __builtin_convertvector(rounded, some_bytes);
        __builtin_memcpy(r.code + i * lanes, &narrow, sizeof narrow);
        sum += rounded;
      }
    r.sum = folded(sum, plus);
    return r;
  }

 private:
  static constexpr int vectors = int(quantized::block / lanes);
  using integers __attribute__((vector_size(config::vector_bytes))) = std::int32_t;
  using some_bytes __attribute__((vector_size(lanes))) = std::int8_t;
  using bytes __attribute__((vector_size(32))) = std::int8_t;

  template <dtype Type, class Order> ISOTOPE_INLINE static void block(const float* x, portable::a8_block& to) {
    const a8_natural_block r = natural(x);
    to.scale = r.scale;
    to.offset = -r.sum * Order::excess(Type);
    put<Type, Order>(r.code, to.code, std::make_integer_sequence<int, quantized::block>{});
  }
  static constexpr auto plus = [](const auto& a, const auto& b) ISOTOPE_INLINE_LAMBDA { return a + b; };
  /// All lanes combined by f.
  template <class V, class F> ISOTOPE_INLINE static auto folded(V v, const F& f) -> std::decay_t<decltype(v[0])> {
    [&]<int... K>(std::integer_sequence<int, K...>) ISOTOPE_INLINE_LAMBDA {
      if constexpr (lanes >= 16) v = f(v, V(__builtin_shufflevector(v, v, (K ^ 8)...)));
      v = f(v, V(__builtin_shufflevector(v, v, (K ^ 4)...)));
      v = f(v, V(__builtin_shufflevector(v, v, (K ^ 2)...)));
      v = f(v, V(__builtin_shufflevector(v, v, (K ^ 1)...)));
    }(std::make_integer_sequence<int, int(lanes)>{});
    return v[0];
  }
  template <dtype Type, class Order, int... K>
  ISOTOPE_INLINE static void put(const std::int8_t* from, std::int8_t* to, std::integer_sequence<int, K...>) {
    bytes x;
    __builtin_memcpy(&x, from, sizeof x);
    const bytes y = __builtin_shufflevector(x, x, Order::element(Type, K)...);
    __builtin_memcpy(to, &y, sizeof y);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
