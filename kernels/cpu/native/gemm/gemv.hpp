#pragma once
/// A gemv for one to four rows, as in a decoder that makes one token at a time: B is read once, in place, and never copied.
///
/// Bound by the bytes of B. Where columns of B are contiguous, the kernel takes their dot products with the rows of A, a vector of columns at a time.
/// Where rows of B are contiguous, it sums them in registers, each scaled by an element of A.
#include <isotope/backend/cpu/vendor.hpp>
#include <isotope/kernels/cpu/native/gemm/few_rows.hpp>
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

class gemv {
 public:
  static constexpr std::int64_t most_rows = 4;
  static constexpr std::int64_t longest =
      blocking::chunk_rows * blocking::longest / most_rows;  // largest K for which the rows fit into the scratch memory
  static constexpr bool takes(const portable::matmul_shape& s) {
    return s.M <= most_rows && s.N >= lanes && s.K <= longest && (s.b_k == 1 || s.b_col == 1);
  }

  /// The columns of a task that reads about `task_bytes` of B, whose elements have so many bytes. Rows of B are read in runs of at least 1 KB, columns `runs`
  /// vectors of them at a time.
  static constexpr std::int64_t columns(const portable::matmul_shape& s, std::int64_t bytes, std::int64_t task_bytes) {
    const std::int64_t least = s.b_k == 1 ? runs * lanes : 256, unit = s.b_k == 1 ? least : lanes;
    return smaller(tile_cols, larger_of(least, task_bytes / (bytes * larger_of(s.K, 1)) / unit * unit));
  }

  /// @param rows  most_rows K floats
  gemv(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue, float* rows)
      : l_(l), s_(s), epilogue_(epilogue), rows_(rows) {}

  /// A task reads about `task_bytes` of B. It has whole vectors of columns.
  void run(std::int64_t task_bytes) const {
    const auto bytes = double(size_of(l_.in[1].type));
    const std::int64_t cols = columns(s_, size_of(l_.in[1].type), task_bytes), tasks = divide_up(s_.N, cols);
    for (std::int64_t batch = 0; batch < s_.batches; ++batch) {
      const few_rows a(l_, s_, batch, rows_);
      portable::for_tasks(l_, tasks, double(s_.N * s_.K) * bytes * 0.05, [&](std::int64_t t, int) {
        alignas(64) float tile[most_rows * tile_cols];
        const std::int64_t n0 = t * cols, n1 = smaller(s_.N, n0 + cols);
        portable::with_type(l_.in[1], [&](const auto* b) {
          b += s_.offset_b(batch);
          switch (s_.M) {
            case 1: part<1>(a, b, n0, n1, tile); break;
            case 2: part<2>(a, b, n0, n1, tile); break;
            case 3: part<3>(a, b, n0, n1, tile); break;
            default: part<4>(a, b, n0, n1, tile); break;
          }
        });
        epilogue_.finish(batch, 0, s_.M, n0, n1, tile, n1 - n0);
      });
    }
  }

 private:
  static constexpr std::int64_t tile_cols = 512;
  static constexpr int runs = 4;  // of columns that are read at once
  // Length of a part of K. Each element's sum is made of `lanes` sums of at most `depth / 2` terms, added as a tree, plus one sum for each further
  // part.
  static constexpr std::int64_t part_of_k = lanes * blocking::depth / 2;

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  float* rows_;

  /// Whether contiguous columns are read one after the other, as one run of bytes: AMD's processors with AVX-512 then reach 28 to 32 GB/s, with four runs 24 in
  /// bf16 and f16 and 28 in f32 (Zen 4, one thread). On other processors four long runs reach the bandwidth of memory, while one, or a short one of each column,
  /// does not (bench/INFERENCE.md). Several rows stay in L1 if they are short; multiplying them by 16-bit numbers takes longer than reading those.
  template <class T> bool in_one_run() const {
    return lanes == 16 && !made_by_intel() && (s_.M == 1 || (sizeof(T) == 4 && s_.M * s_.K <= 3072));
  }

  /// Makes C[0:Rows, n0:n1] in rows of n1 - n0.
  template <int Rows, class T> void part(const few_rows& left, const T* b, std::int64_t n0, std::int64_t n1, float* tile) const {
    const float* const a = left.data;
    const std::int64_t a_row = left.stride, ld = n1 - n0;
    if (s_.b_k == 1 && s_.b_col != 1) {
      std::int64_t n = n0;
      if (in_one_run<T>())
        for (; n + lanes <= n1; n += lanes) dot_runs<Rows, 1>(a, a_row, b + n * s_.b_col, tile + n - n0, ld);
      for (; n + runs * lanes <= n1; n += runs * lanes) dot_runs<Rows, runs>(a, a_row, b + n * s_.b_col, tile + n - n0, ld);
      for (; n < n1; n += lanes) {
        const std::int64_t some = smaller(lanes, n1 - n);
        vector sum[Rows] = {};
        for (std::int64_t k = 0; k < s_.K; k += part_of_k)
          dot_columns<Rows>(a + k, a_row, b + n * s_.b_col + k, s_.b_col, some, smaller(part_of_k, s_.K - k), sum);
        for (int r = 0; r < Rows; ++r) __builtin_memcpy(tile + r * ld + n - n0, &sum[r], std::size_t(some) * 4);
      }
      return;
    }
    constexpr std::int64_t wide = 16 / Rows < 4 ? 4 : 16 / Rows;  // in vectors
    std::int64_t n = n0;
    for (; n + wide * lanes <= n1; n += wide * lanes) add_rows<Rows, int(wide)>(a, a_row, b + n, tile + n - n0, ld);
    for (; n + lanes <= n1; n += lanes) add_rows<Rows, 1>(a, a_row, b + n, tile + n - n0, ld);
    for (; n < n1; ++n) {
      for (int r = 0; r < Rows; ++r) {
        float total = 0;
        for (std::int64_t k0 = 0; k0 < s_.K; k0 += blocking::depth) {
          float sum = 0;
          for (std::int64_t k = k0; k < smaller(s_.K, k0 + blocking::depth); ++k) sum += a[r * a_row + k] * float(b[k * s_.b_k + n]);
          total += sum;
        }
        tile[r * ld + n - n0] = total;
      }
    }
  }

  /// Loads 32 numbers of 16 bits, a cache line, by one instruction. Where each half is read by itself, Zen 4 takes lines from memory with 18 to 30 GB/s, depending on the
  /// address of the loop, instead of 27 to 30.
  template <class T> static ISOTOPE_INLINE void load_line(const T* x, vector& low, vector& high) {
    using line __attribute__((vector_size(64))) = std::uint16_t;
    line both;
    __builtin_memcpy(&both, x, sizeof both);
    isa::hold_lanes(both);
    widen<T>(__builtin_shufflevector(both, both, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), low);
    widen<T>(__builtin_shufflevector(both, both, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31), high);
  }
  template <class T, class Halves> static ISOTOPE_INLINE void widen(const Halves& x, vector& y) {
    if constexpr (std::is_same_v<T, bfloat16>) {
      const auto wide = math::bf16_lanes::widened(x);
      __builtin_memcpy(&y, &wide, sizeof y);
    } else {
      isa::convert_halves(y, x);
    }
  }

  /// s[r][c] = the sums of a[r, 0:k] column[c][0:k], each as one vector.
  template <int Rows, int Count, class T>
  static ISOTOPE_INLINE void dot(const float* a, std::int64_t lda, const T* const (&column)[Count], std::int64_t k,
                                 vector (&s)[Rows][Count]) {
    std::int64_t i = 0;
    if constexpr (Count == 1 && sizeof(T) == 2 && lanes == 16) {
      for (; i + 2 * lanes <= k; i += 2 * lanes) {
        vector low, high;
        load_line(column[0] + i, low, high);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          s[r][0] += load_vector(a + r * lda + i) * low;
          s[r][0] += load_vector(a + r * lda + i + lanes) * high;
        }
      }
    }
    for (; i + lanes <= k; i += lanes) {
      vector x[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) __builtin_memcpy(&x[r], a + r * lda + i, sizeof x[r]);
#pragma GCC unroll 8
      for (int c = 0; c < Count; ++c) {
        const vector y = load_vector(column[c] + i);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) s[r][c] += x[r] * y;
      }
    }
    if (i < k) {
#pragma GCC unroll 8
      for (int c = 0; c < Count; ++c) {
        const vector y = load_some(column[c] + i, k - i);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) s[r][c] += load_some(a + r * lda + i, k - i) * y;
      }
    }
  }
  /// Returns the sum of each of these vectors.
  static ISOTOPE_INLINE vector totals(vector (&all)[lanes]) {
    transpose(all);
#pragma GCC unroll 4
    for (int half = int(lanes) / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int c = 0; c < half; ++c) all[c] += all[c + half];
    return all[0];
  }

  /// sum[r][j] += a[r, 0:k] b[j, 0:k] for j < cols <= lanes; columns of B lie `ldb` apart.
  template <int Rows, class T>
  ISOTOPE_NOINLINE ISOTOPE_CONTRACT static void dot_columns(const float* a, std::int64_t lda, const T* b, std::int64_t ldb,
                                                            std::int64_t cols, std::int64_t k, vector (&sum)[Rows]) {
    ISOTOPE_CONTRACT_HERE
    constexpr int at_once = Rows == 1 ? 8 : 4;  // in columns: enough sums to hide the latency of their additions
    vector all[Rows][lanes] = {};
    for (std::int64_t j = 0; j < cols; j += at_once) {
      const T* column[at_once];
#pragma GCC unroll 8
      for (int c = 0; c < at_once; ++c)
        column[c] = b + smaller(j + c, cols - 1) * ldb;  // repeats the last column; the extra sums are not used
      vector s[Rows][at_once] = {};
      dot(a, lda, column, k, s);
      for (int r = 0; r < Rows; ++r)
        for (int c = 0; c < at_once && j + c < lanes; ++c) all[r][j + c] = s[r][c];
    }
    for (int r = 0; r < Rows; ++r) sum[r] += totals(all[r]);
  }

  /// c[r, j] = a[r, 0:K] b[j, 0:K] for j < Runs lanes, with the sums of dot_columns. Each of the runs of adjacent columns is read from its first to its last byte.
  template <int Rows, int Runs, class T>
  ISOTOPE_NOINLINE ISOTOPE_CONTRACT void dot_runs(const float* a, std::int64_t lda, const T* b, float* c, std::int64_t ldc) const {
    ISOTOPE_CONTRACT_HERE
    constexpr std::int64_t parts =
        larger_of(1, 12288 / part_of_k);  // whose sums wait for their totals: columns so long are read in one run
    vector all[parts][Rows][Runs][lanes];
    vector sum[Rows][Runs] = {};
    for (std::int64_t first = 0; first < s_.K; first += parts * part_of_k) {
      const std::int64_t count = smaller(parts, divide_up(s_.K - first, part_of_k));
      for (int j = 0; j < int(lanes); ++j)
        for (std::int64_t p = 0; p < count; ++p) {
          const std::int64_t k = first + p * part_of_k;
          const T* column[Runs];
#pragma GCC unroll 8
          for (int i = 0; i < Runs; ++i) column[i] = b + (i * lanes + j) * s_.b_col + k;
          vector s[Rows][Runs] = {};
          dot(a + k, lda, column, smaller(part_of_k, s_.K - k), s);
          for (int r = 0; r < Rows; ++r)
            for (int i = 0; i < Runs; ++i) all[p][r][i][j] = s[r][i];
        }
      for (std::int64_t p = 0; p < count; ++p)
        for (int r = 0; r < Rows; ++r)
          for (int i = 0; i < Runs; ++i) sum[r][i] += totals(all[p][r][i]);
    }
    for (int r = 0; r < Rows; ++r) __builtin_memcpy(c + r * ldc, sum[r], sizeof sum[r]);
  }

  /// c[r, 0:lanes Vectors] = sum_k a[r, k] b[k, 0:lanes Vectors], in blocks of K.
  template <int Rows, int Vectors, class T>
  ISOTOPE_NOINLINE ISOTOPE_CONTRACT void add_rows(const float* a, std::int64_t lda, const T* b, float* c, std::int64_t ldc) const {
    ISOTOPE_CONTRACT_HERE
    constexpr std::int64_t ahead = 8;  // in rows, which lie too far apart for the hardware prefetcher
    vector total[Rows][Vectors] = {};
    for (std::int64_t k0 = 0; k0 < s_.K; k0 += blocking::depth) {
      const std::int64_t end = smaller(s_.K, k0 + blocking::depth);
      vector sum[Rows][Vectors] = {};
      for (std::int64_t k = k0; k < end; ++k) {
        const T* row = b + k * s_.b_k;
        if (k + ahead < s_.K) {
#pragma GCC unroll 16
          for (int v = 0; v < Vectors; ++v) __builtin_prefetch(row + ahead * s_.b_k + lanes * v, 0, 3);
        }
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) {
          const vector y = load_vector(row + lanes * v);
#pragma GCC unroll 4
          for (int r = 0; r < Rows; ++r) sum[r][v] += (a[r * lda + k] - vector{}) * y;
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) total[r][v] += sum[r][v];
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) __builtin_memcpy(c + r * ldc + lanes * v, &total[r][v], sizeof(vector));
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
