#pragma once
/// How a native product is cut into chunks, and the sums of a chunk into blocks of K. The cut follows from the shape alone; an element's bits
/// follow from the blocks of K alone.
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

/// Positions and lengths: batches, the axis v of the operand that is packed at once, the axis r of the one that passes, K.
struct gemm_chunk {
  std::int64_t batch, batches, v, vs, r, rs, k, ks;
};

struct gemm_partition {
  std::int64_t depth, k_chunk;    // of a block of K, of a chunk
  std::int64_t v_chunk, r_chunk;  // whole vectors
  std::int64_t group;             // batches of a chunk
  bool waits;                     // sums wait in memory for the next chunk of K

  /// @param per_step  terms of K that a step of the register tile multiplies
  /// @param k_unit    terms that it takes at least: zeros fill them up
  /// @param v_unit    elements of v that it takes at least, or whole panels if they are more
  constexpr gemm_partition(std::int64_t V, std::int64_t R, std::int64_t K, std::int64_t per_step, std::int64_t k_unit, std::int64_t v_unit)
      : waits(K > per_step * blocking::longest) {
    depth = larger_of(k_unit, even_part(K, per_step * blocking::depth, k_unit));
    k_chunk = waits ? per_step * blocking::longest / depth * depth : larger_of(1, K);
    const std::int64_t fit = most_packed / packed_by_k(divide_up(k_chunk, per_step)) / v_unit * v_unit;
    v_chunk = smaller(whole(V, v_unit), waits ? blocking::chunk_rows : fit);
    r_chunk = whole(waits ? smaller(R, blocking::longest) : R, lanes);
    group = v_chunk >= V && !waits ? larger_of(1, fit / larger_of(1, v_chunk)) : 1;
  }
  /// Calls make(chunk) for all chunks; the parts of K of a place in order.
  template <class F> void chunks(std::int64_t batches, std::int64_t V, std::int64_t R, std::int64_t K, const F& make) const {
    for (std::int64_t b = 0; b < batches; b += group)
      for (std::int64_t v = 0; v < V; v += v_chunk)
        for (std::int64_t r = 0; r < R; r += r_chunk)
          for (std::int64_t k = 0; k < K || k == 0; k += k_chunk)
            make(gemm_chunk{b, smaller(group, batches - b), v, smaller(v_chunk, V - v), r, smaller(r_chunk, R - r), k,
                            smaller(k_chunk, K - k)});
  }

  // What is packed in units of 48 or 32, two terms in a float, fits into units of 48 of one term each; sums need units of 96.
  /// Floats for packed operands, and for sums that wait, of this product and of any smaller one, whichever axis is v and whatever a step multiplies.
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
  /// Floats that a row of k steps takes, packed: a copy of rows has up to 35 more for each of them and block, a panel of 16 rows and more a head of 16
  /// and, for a matrix unit, up to 15 steps of zeros.
  static constexpr std::int64_t packed_by_k(std::int64_t k) { return larger_of(1, k) + 36 * larger_of(1, divide_up(k, blocking::depth)); }
  static constexpr std::int64_t most_packed = blocking::chunk_rows * (blocking::longest + 36 * blocking::longest / blocking::depth);
};

/// The part of an operand that is taken next, asked for from memory while other work runs: element i, k at data[i stride + k k_stride].
template <class T> class coming {
 public:
  coming(const T* data, std::int64_t k_stride, std::int64_t stride, std::int64_t k, std::int64_t elems)
      : data_(data), stride_(k_stride == 1 ? stride : k_stride), runs_(k_stride == 1 ? elems : k), length_(k_stride == 1 ? k : elems) {}
  /// Part `step` of `steps`.
  void fetch(std::int64_t step, std::int64_t steps) const {
    constexpr std::int64_t line = 64 / std::int64_t(sizeof(T));
    for (std::int64_t r = runs_ * step / steps; r < runs_ * (step + 1) / steps; ++r) {
      const T* run = data_ + r * stride_;
      for (std::int64_t i = 0; i < length_; i += line) __builtin_prefetch(run + i, 0, 2);
      if (length_ > 0) __builtin_prefetch(run + length_ - 1, 0, 2);  // runs need not begin at a line
    }
  }

 private:
  const T* data_;
  std::int64_t stride_, runs_, length_;
};

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
