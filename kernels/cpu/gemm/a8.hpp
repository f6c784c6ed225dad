#pragma once
/// Products of activations that are rounded to 8 bits (quantized::round_activations) and weights in blocks (core/quantized.hpp).
///
/// Codes of a block are multiplied and summed as integers, which is exact in any order. The blocks of K are added in ascending order, 64 blocks at a time:
/// part = fma(f32(sum of codes) x scale of the weight, scale of the activations, part), which rounds twice. So a row of the result has the same bits for any
/// number of rows, threads and with any instructions. Scales of weights have 11 significant bits, so (c + sum) scale - c scale is the first product, rounded
/// once, where c is the f32 of an integer of few bits. Bound by the bytes of the weight where there are few rows: a task reads about 64 KB of it, for all rows.
#include <cstring>

#include <isotope/kernels/cpu/gemm/blocks.hpp>
#include <isotope/kernels/cpu/gemm/epilogue.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Rounded activations in memory. The codes are in the order that the products want.
struct a8_block {
  std::int8_t code[quantized::block];
  float scale;
  std::int32_t offset;  // of products with unsigned codes: minus the sum of these codes times what those are too large
};
/// How many blocks are added up before the others.
inline constexpr std::int64_t a8_joined = 64;

/// Functions that multiply panels, 16 rows of the weight each, and a few rows of activations.
struct a8_panels {
  /// Makes tile[r ld + i], i < 16, for some rows r from `blocks` blocks of each row and the records at `record`; with several streams also
  /// tile[r ld + s tile_apart + i] from the records `s apart` bytes behind those.
  using make = void (*)(const a8_block* a, std::int64_t lda, const std::byte* record, std::int64_t apart, std::int64_t blocks, float* tile,
                        std::int64_t ld, std::int64_t tile_apart);
  struct of_format {
    make streams;  // of one row and several panels at once, each a stream of bytes of its own
    make two;      // of two rows and one panel; null: there is none
    void (*round)(const float* x, std::int64_t blocks, a8_block* to);  // of contiguous numbers; null: one by one
  };
  of_format q8_0, q4_0;
  int most_rows, streams;    // of the first two functions
  int (*excess)(dtype);      // what unsigned codes of the weight are larger by
  int (*place)(dtype, int);  // where element j of a block is among its codes
};

/// part = fma(sum scale, x, part). A product of 0 is +0, and one with a scale that is not finite is NaN.
ISOTOPE_INLINE void a8_add(sixteen& part, const code_words& sum, const sixteen& scale, float x) {
  const sixteen product = __builtin_convertvector(sum, sixteen) * scale + (scale - scale);
  float y[16], total[16];
  std::memcpy(y, &product, sizeof y);
  std::memcpy(total, &part, sizeof total);
  for (int i = 0; i < 16; ++i) total[i] = __builtin_fmaf(y[i], x, total[i]);
  std::memcpy(&part, total, sizeof part);
}
ISOTOPE_NOINLINE inline void a8_columns(dtype type, const a8_block* a, const std::byte* record, std::int64_t blocks, float* tile) {
  sixteen total{}, part{};
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::byte* at = record + b * quantized::record_bytes(type);
    sixteen scale;
    load_sixteen(reinterpret_cast<const float16*>(at), scale);
    code_words sum{};
#pragma GCC unroll 1
    for (int j = 0; j < quantized::block; ++j) {
      code_words w;
      load_code_words(type, at, j, w);
      sum += w * std::int32_t(a[b].code[j]);
    }
    a8_add(part, sum, scale, a[b].scale);
    if (b % a8_joined == a8_joined - 1) total += part, part = sixteen{};
  }
  total += part;
  std::memcpy(tile, &total, sizeof total);
}
inline int a8_place(dtype, int j) { return j; }
inline int a8_excess(dtype) { return 0; }
template <dtype Type>
void a8_columns_of(const a8_block* a, std::int64_t, const std::byte* record, std::int64_t, std::int64_t blocks, float* tile, std::int64_t,
                   std::int64_t) {
  a8_columns(Type, a, record, blocks, tile);
}
inline constexpr a8_panels plain_a8_panels = {
    {&a8_columns_of<dtype::q8_0>, nullptr, nullptr}, {&a8_columns_of<dtype::q4_0>, nullptr, nullptr}, 1, 1, &a8_excess, &a8_place};

class a8_gemm {
 public:
  /// Bytes of scratch memory for M rows of a batch.
  static constexpr std::int64_t bytes(std::int64_t M, std::int64_t K) {
    return smaller(M, most_rows) * (K / quantized::block) * std::int64_t(sizeof(a8_block));
  }
  a8_gemm(const launch& l, const matmul_shape& s, const gemm_epilogue& epilogue, const a8_panels& panels)
      : l_(l),
        s_(s),
        epilogue_(epilogue),
        panels_(panels),
        rows_(static_cast<a8_block*>(l.scratch)),
        weight_(l.in[1]),
        blocks_(s.K / quantized::block) {}

  ISOTOPE_NOINLINE void run() const {
    for (std::int64_t batch = 0; batch < s_.batches; ++batch)
      for (std::int64_t m = 0; m < s_.M; m += most_rows) {
        const std::int64_t count = smaller(most_rows, s_.M - m), from = s_.offset_a(batch) + m * s_.a_row;
        with_type(l_.in[0], [&](const auto* a) {
          for_tasks(l_, count, double(count * s_.K), [&](std::int64_t r, int) { round_row(a + from + r * s_.a_row, rows_ + r * blocks_); });
        });
        multiply(batch, m, count);
      }
  }

 private:
  static constexpr std::int64_t high = quantized::panel_rows;
  static constexpr std::int64_t most_rows = 512;   // 1.3 MB for K = 2048
  static constexpr std::int64_t most_panels = 16;  // of a task: its part of a row in f32 takes 1 KB

  const launch& l_;
  const matmul_shape& s_;
  const gemm_epilogue& epilogue_;
  const a8_panels& panels_;
  a8_block* rows_;
  block_weight weight_;
  std::int64_t blocks_;

  const a8_panels::of_format& make() const { return weight_.type == dtype::q8_0 ? panels_.q8_0 : panels_.q4_0; }

  template <class T> ISOTOPE_NOINLINE void round_row(const T* x, a8_block* to) const {
    const auto round = make().round;
    if constexpr (std::is_same_v<T, float>)
      if (s_.a_k == 1 && round != nullptr) return round(x, blocks_, to);
    for (std::int64_t b = 0; b < blocks_; ++b) {
      float v[quantized::block];
      for (std::int64_t j = 0; j < quantized::block; ++j) v[j] = float(x[(b * quantized::block + j) * s_.a_k]);
      if (round != nullptr) round(v, 1, to + b);
      else put(quantized::round_activations(v), to[b]);
    }
  }
  void put(const quantized::rounded_block& from, a8_block& to) const {
    std::int32_t sum = 0;
    for (int j = 0; j < quantized::block; ++j) {
      to.code[panels_.place(weight_.type, j)] = from.code[j];
      sum += from.code[j];
    }
    to.scale = from.scale;
    to.offset = -sum * panels_.excess(weight_.type);
  }

  /// Makes rows m0 to m0 + count - 1 of a batch.
  void multiply(std::int64_t batch, std::int64_t m0, std::int64_t count) const {
    const std::int64_t panel = blocks_ * quantized::record_bytes(weight_.type), unit = panels_.streams;
    const std::int64_t each = smaller(most_panels, larger_of(1, 65536 / larger_of(unit * panel, 1)) * unit), cols = each * high;
    const double nsec = double(divide_up(s_.N, high) * panel * count) * 0.03;
    for_tasks(l_, divide_up(s_.N, cols), nsec,
              [&](std::int64_t t, int) { part(batch, m0, count, t * cols, smaller(s_.N, (t + 1) * cols)); });
  }
  /// Makes columns [n0, n1) of these rows.
  ISOTOPE_NOINLINE void part(std::int64_t batch, std::int64_t m0, std::int64_t count, std::int64_t n0, std::int64_t n1) const {
    alignas(64) float tile[2 * most_panels * high];
    const a8_panels::of_format& functions = make();
    const std::int64_t panels = divide_up(n1 - n0, high), cols = panels * high, apart = panels / panels_.streams;
    const std::int64_t panel = blocks_ * quantized::record_bytes(weight_.type);
    for (std::int64_t m = 0, some = 0; m < count; m += some) {
      some = smaller(panels_.most_rows, count - m);
      const a8_block* a = rows_ + m * blocks_;
      const std::byte* records = weight_.record(n0, 0);
      if (some == 2) {
        for (std::int64_t p = 0; p < panels; ++p) functions.two(a, blocks_, records + p * panel, 0, blocks_, tile + p * high, cols, 0);
      } else {
        for (std::int64_t p = 0; p < apart; ++p)
          functions.streams(a, blocks_, records + p * panel, apart * panel, blocks_, tile + p * high, cols, apart * high);
        for (std::int64_t p = apart * panels_.streams; p < panels; ++p)  // all streams are of this panel
          functions.streams(a, blocks_, records + p * panel, 0, blocks_, tile + p * high, cols, 0);
      }
      epilogue_.finish(batch, m0 + m, m0 + m + some, n0, n1, tile, cols);
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
