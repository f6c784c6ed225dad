#pragma once
/// Partitions a native gemm into chunks, and the sums of a chunk into blocks of K. The partition depends on the shape alone, and an element's bits on
/// the blocks of K alone.
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Positions and lengths of a chunk: batches, axis v of the operand that is packed at once, axis r of the operand that is streamed, and K.
struct gemm_chunk {
  std::int64_t batch, batches, v, vs, r, rs, k, ks;
};

struct gemm_partition {
  std::int64_t depth, k_chunk;    // lengths along K: of a block, of a chunk
  std::int64_t v_chunk, r_chunk;  // whole vectors
  std::int64_t group;             // batches of a chunk
  bool waits;                     // sums wait in memory for the next chunk of K

  /// @param per_step  terms of K that a step of the microkernel multiplies
  /// @param k_unit    K is padded with zeros to a multiple of so many terms
  /// @param v_unit    v is padded to a multiple of so many elements, or to whole panels if they are larger
  constexpr gemm_partition(std::int64_t V, std::int64_t R, std::int64_t K, std::int64_t per_step, std::int64_t k_unit, std::int64_t v_unit)
      : waits(K > per_step * blocking::longest) {
    depth = depth_of(K, per_step, k_unit);
    k_chunk = waits ? per_step * blocking::longest / depth * depth : larger_of(1, K);
    const std::int64_t fit = most_packed / packed_by_k(divide_up(k_chunk, per_step)) / v_unit * v_unit;
    v_chunk = smaller(whole(V, v_unit), waits ? blocking::chunk_rows : fit);
    r_chunk = whole(waits ? smaller(R, blocking::longest) : R, lanes);
    group = v_chunk >= V && !waits ? larger_of(1, fit / larger_of(1, v_chunk)) : 1;
  }
  /// Returns the length of a block of K.
  static constexpr std::int64_t depth_of(std::int64_t K, std::int64_t per_step, std::int64_t k_unit) {
    return larger_of(k_unit, even_part(K, per_step * blocking::depth, k_unit));
  }
  /// Calls make(chunk) for all chunks; the chunks along K of one place come in order.
  template <class F> void chunks(std::int64_t batches, std::int64_t V, std::int64_t R, std::int64_t K, const F& make) const {
    for (std::int64_t b = 0; b < batches; b += group)
      for (std::int64_t v = 0; v < V; v += v_chunk)
        for (std::int64_t r = 0; r < R; r += r_chunk)
          for (std::int64_t k = 0; k < K || k == 0; k += k_chunk)
            make(gemm_chunk{b, smaller(group, batches - b), v, smaller(v_chunk, V - v), r, smaller(r_chunk, R - r), k,
                            smaller(k_chunk, K - k)});
  }

  // packed_floats and waiting_floats return scratch sizes in floats, for packed operands and for waiting sums. They hold for this gemm and any
  // smaller one, whichever axis is v and for every operand format: operands packed in units of 48 or 32, two terms a float, fit into units of 48 of
  // one term each; sums need units of 96.
  static constexpr std::int64_t packed_floats(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t batches) {
    return smaller(batches * whole(larger_of(M, N), blocking::chunk_unit) * packed_by_k(K), most_packed);
  }
  static constexpr std::int64_t waiting_floats(std::int64_t M, std::int64_t N, std::int64_t K) {
    if (K <= blocking::longest) return 0;
    const auto sums = [](std::int64_t V, std::int64_t R) {
      return smaller(whole(V, 2 * blocking::chunk_unit), blocking::chunk_rows) * whole(smaller(R, blocking::longest), lanes);
    };
    return larger_of(sums(M, N), sums(N, M));
  }

 private:
  /// Returns the floats of a packed row of k steps. For each row and block, a copy of rows takes up to 35 more; a panel of at least 16 rows takes a
  /// head of 16 and, for a matrix unit, up to 15 steps of zeros.
  static constexpr std::int64_t packed_by_k(std::int64_t k) { return larger_of(1, k) + 36 * larger_of(1, divide_up(k, blocking::depth)); }
  static constexpr std::int64_t most_packed = blocking::chunk_rows * (blocking::longest + 36 * blocking::longest / blocking::depth);
};

/// Prefetches the next part of an operand while other work runs: element (i, k) is at data[i stride + k k_stride].
template <class T> class coming {
 public:
  coming(const T* data, std::int64_t k_stride, std::int64_t stride, std::int64_t k, std::int64_t elems)
      : data_(data), stride_(k_stride == 1 ? stride : k_stride), runs_(k_stride == 1 ? elems : k), length_(k_stride == 1 ? k : elems) {}
  /// Prefetches part `step` of `steps`.
  void fetch(std::int64_t step, std::int64_t steps) const {
    constexpr std::int64_t line = 64 / std::int64_t(sizeof(T));
    for (std::int64_t r = runs_ * step / steps; r < runs_ * (step + 1) / steps; ++r) {
      const T* run = data_ + r * stride_;
      for (std::int64_t i = 0; i < length_; i += line) __builtin_prefetch(run + i, 0, 2);
      if (length_ > 0) __builtin_prefetch(run + length_ - 1, 0, 2);  // runs need not begin at a cache line
    }
  }

 private:
  const T* data_;
  std::int64_t stride_, runs_, length_;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
