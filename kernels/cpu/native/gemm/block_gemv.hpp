#pragma once
/// A gemv for one to eight rows times a weight in blocks (core/quantized.hpp), which is read once, in place.
///
/// Bound by the bytes of the weight, or by conversions: 4 instructions for a vector of elements. Elements are widened to f32 exactly and summed in the order
/// of the blocked gemm, so each row of the result has the same bits whatever the number of rows. A vector holds rows of the weight; two panels at once
/// give enough sums to hide the latency of additions, and two contiguous streams.
#include <isotope/kernels/cpu/gemm/blocks.hpp>
#include <isotope/kernels/cpu/native/gemm/few_rows.hpp>
#include <isotope/kernels/cpu/native/gemm/pack.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

class block_gemv {
 public:
  static constexpr std::int64_t most_rows = 8;
  static bool takes(const portable::matmul_shape& s) {
    return lanes >= 8 && s.M <= most_rows && s.K <= blocking::chunk_rows * blocking::longest / most_rows;
  }

  /// @param rows  most_rows K floats
  block_gemv(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue, float* rows)
      : l_(l), s_(s), epilogue_(epilogue), rows_(rows), weight_(l.in[1]) {}

  void run() const {
    const std::int64_t record = quantized::record_bytes(weight_.type), panel = s_.K / quantized::block * record;
    // A task reads about 64 KB: whole pairs of panels, which are then two streams.
    const std::int64_t each = smaller(most_panels, larger_of(2, whole(divide_up(65536, larger_of(panel, 1)), 2)));
    const std::int64_t cols = each * quantized::panel_rows;
    for (std::int64_t batch = 0; batch < s_.batches; ++batch) {
      const few_rows a(l_, s_, batch, rows_);
      portable::for_tasks(l_, divide_up(s_.N, cols), double(s_.N) / 16 * double(panel) * 0.06, [&](std::int64_t t, int) {
        alignas(64) float tile[most_rows * most_panels * quantized::panel_rows];
        const std::int64_t n0 = t * cols, n1 = smaller(s_.N, n0 + cols);
        for (std::int64_t m = 0; m < s_.M; m += 4) {
          const float* const first = a.data + m * a.stride;
          if (weight_.type == dtype::q8_0) rows<dtype::q8_0>(first, a.stride, smaller(4, s_.M - m), n0, n1, tile + m * cols, cols);
          else rows<dtype::q4_0>(first, a.stride, smaller(4, s_.M - m), n0, n1, tile + m * cols, cols);
        }
        epilogue_.finish(batch, 0, s_.M, n0, n1, tile, cols);
      });
    }
  }

 private:
  static constexpr std::int64_t most_panels = 8;
  static constexpr int parts = lanes >= 16 ? 1 : int(quantized::panel_rows / lanes);  // vectors of a panel

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  float* rows_;
  portable::block_weight weight_;

  /// Makes C[0:count, n0:n1] in rows of ld; whole panels are written.
  template <dtype Type>
  void rows(const float* a, std::int64_t lda, std::int64_t count, std::int64_t n0, std::int64_t n1, float* tile, std::int64_t ld) const {
    switch (count) {
      case 1: panels<Type, 1, 2>(a, lda, n0, n1, tile, ld); break;
      case 2: panels<Type, 2, 2>(a, lda, n0, n1, tile, ld); break;
      case 3: panels<Type, 3, 1>(a, lda, n0, n1, tile, ld); break;
      default: panels<Type, 4, 1>(a, lda, n0, n1, tile, ld); break;
    }
  }
  template <dtype Type, int Rows, int Streams>
  void panels(const float* a, std::int64_t lda, std::int64_t n0, std::int64_t n1, float* tile, std::int64_t ld) const {
    constexpr std::int64_t high = quantized::panel_rows;
    const std::int64_t count = divide_up(n1 - n0, high), apart = count / Streams;
    for (std::int64_t p = 0; p < apart; ++p)
      columns<Type, Rows, Streams>(a, lda, weight_.record(n0 + p * high, 0),
                                   apart * s_.K / quantized::block * quantized::record_bytes(Type), tile + p * high, ld, apart * high);
    for (std::int64_t p = apart * Streams; p < count; ++p)
      columns<Type, Rows, 1>(a, lda, weight_.record(n0 + p * high, 0), 0, tile + p * high, ld, 0);
  }

  /// The sums of `Streams` panels in a block of K.
  template <dtype Type, int Rows, int Streams> struct sums {
    static constexpr int vectors = Streams * parts;
    using words __attribute__((vector_size(config::vector_bytes))) = std::int32_t;
    vector sum[Rows][vectors] = {};

    /// Adds elements [first, last) of a record of each stream; a[r lda + j] is the factor of element j.
    ISOTOPE_INLINE void add(const float* a, std::int64_t lda, const std::byte* record, std::int64_t apart, int first, int last) {
      vector scale[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        scale[v] = load_vector(reinterpret_cast<const float16*>(record + v / parts * apart) + v % parts * lanes);
      const std::byte* codes = record + 2 * quantized::panel_rows;
      if constexpr (Type == dtype::q8_0) {
#pragma GCC unroll 4
        for (int j = first; j < last; ++j)
          add(a + j, lda, [&](int v) ISOTOPE_INLINE_LAMBDA {
            words w;
            isa::widen_bytes(w, codes + v / parts * apart + quantized::panel_rows * j + v % parts * lanes);
            return __builtin_convertvector(w, vector) * scale[v];
          });
      } else {
        // The codes of elements 4 i to 4 i + 3 are i half bytes from the right of their words, so the scale is divided by 16^i.
        vector centre[vectors];
        words mask = words{} + 15;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) centre[v] = scale[v] * -8.0f;
        for (int i = 0; i < 8; ++i) {
          const auto one = [&](int j) ISOTOPE_INLINE_LAMBDA {
            add(a + 4 * i + j, lda, [&](int v) ISOTOPE_INLINE_LAMBDA {
              words w;
              __builtin_memcpy(&w, codes + v / parts * apart + 4 * (quantized::panel_rows * j + v % parts * lanes), sizeof w);
              return isa::fma_lanes(__builtin_convertvector(w & mask, vector), scale[v], centre[v]);
            });
          };
          asm volatile("" ::: "memory");  // words are read again: they would not fit into registers
          if (first <= 4 * i && 4 * i + 4 <= last) {
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) one(j);
          } else {
            for (int j = 0; j < 4; ++j)
              if (first <= 4 * i + j && 4 * i + j < last) one(j);
          }
          mask <<= 4;
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) {
            scale[v] *= 0.0625f;
            if (i == 6) centre[v] = vector{};  // the last codes are signed
          }
        }
      }
    }
    /// Adds one element of each row of the weight: element(v) is a vector of them, a[r lda] the factor.
    template <class Element> ISOTOPE_INLINE void add(const float* a, std::int64_t lda, const Element& element) {
      vector x[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) x[r] = a[r * lda] - vector{};
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const vector w = element(v);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) sum[r][v] = isa::fma_lanes(x[r], w, sum[r][v]);
      }
    }
  };

  /// Makes the panels at `record` and `apart` bytes behind it: tile[r ld + i] and tile[r ld + tile_apart + i], i < 16.
  template <dtype Type, int Rows, int Streams>
  ISOTOPE_NOINLINE ISOTOPE_CONTRACT void columns(const float* a, std::int64_t lda, const std::byte* record, std::int64_t apart, float* tile,
                                                 std::int64_t ld, std::int64_t tile_apart) const {
    ISOTOPE_CONTRACT_HERE
    constexpr std::int64_t size = quantized::record_bytes(Type), ahead = 2 * size;
    const std::int64_t depth = gemm_partition::depth_of(s_.K, 1, 1);
    constexpr int all = quantized::block;
    vector total[Rows][Streams * parts] = {};
    for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth) {
      const std::int64_t end = smaller(s_.K, k0 + depth);
      sums<Type, Rows, Streams> s;
      for (std::int64_t k = k0; k < end;) {
        const int first = int(k % all), last = int(smaller(all, first + end - k));
        const std::byte* at = record + k / all * size;
        for (int i = 0; i < Streams; ++i)
          for (std::int64_t line = 0; line < size; line += 64) __builtin_prefetch(at + i * apart + ahead + line, 0, 3);
        if (first == 0 && last == all) s.add(a + k, lda, at, apart, 0, all);
        else s.add(a + k - first, lda, at, apart, first, last);
        k += last - first;
      }
      for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < Streams * parts; ++v) total[r][v] = k0 == 0 ? s.sum[r][v] : total[r][v] + s.sum[r][v];
    }
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Streams * parts; ++v)
        __builtin_memcpy(tile + r * ld + v / parts * tile_apart + v % parts * lanes, &total[r][v], sizeof(vector));
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
