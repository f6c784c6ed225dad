#pragma once
// Element-wise bodies with operands in memory, for tests of emitted code.
#include <bit>
#include <cstring>
#include <isotope/core/philox.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <limits>
#include <vector>

#include "host_formulas.hpp"

namespace isotope::cuda_test {

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t word() { return philox(seed_, next_++, 1, 0)[0]; }
  int below(int n) { return int(word() % std::uint32_t(n)); }

 private:
  std::uint64_t seed_, next_ = 0;
};

/// A tensor in memory of its own, behind a guard and before one.
struct stored {
  static constexpr std::size_t guard = 256;
  shape dims;
  extents strides{};
  dtype type = dtype::f32;
  std::size_t shift = 0;  // bytes from an aligned address
  std::vector<unsigned char> memory;

  stored(const shape& s, dtype t) : dims(s), strides(dense_strides(s)), type(t) {}
  std::int64_t bytes() const {
    std::int64_t last = 0;
    for (int k = 0; k < dims.rank; ++k) last += (dims[k] - 1) * strides[std::size_t(k)];
    return (last + 1) * size_of(type);
  }
  /// Fills with numbers of all magnitudes, with zeros, infinities, NaN and subnormals; booleans with 0 and 1.
  void fill(random_numbers& r) {
    memory.assign(3 * guard + std::size_t(bytes()), 0xcd);
    for (std::int64_t i = 0; i < bytes() / size_of(type); ++i) {
      constexpr float infinity = std::numeric_limits<float>::infinity();
      const float some[] = {0.0f,  -0.0f,    infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 1e-40f, -1e-40f, 1.0f, -1.0f,
                            3e38f, 65504.0f, 6e-8f,    -3e-6f};
      const std::uint32_t kind = r.word() % 8, w = r.word();
      const float x = kind == 0 ? some[w % std::size(some)] : kind == 1 ? std::bit_cast<float>(w) : 8 * unit_interval(w) - 4;
      store(address(), i, type, type == dtype::boolean ? float(w & 1u) : x);
    }
  }
  std::uint64_t address() const {
    const auto first = reinterpret_cast<std::uint64_t>(memory.data()) + guard;
    return (first + guard - 1) / guard * guard + shift;
  }
  cuda::view view() const { return {address(), bytes(), dims, strides, type}; }
  /// The same contents elsewhere, at the same place behind an aligned address.
  stored copy() const {
    stored c = *this;
    std::memset(c.memory.data(), 0xcd, c.memory.size());
    std::memcpy(reinterpret_cast<void*>(c.address()), reinterpret_cast<const void*>(address()), std::size_t(bytes()));
    return c;
  }
  /// Whether memory outside the tensor is as it was.
  bool guarded() const {
    const auto first = std::size_t(address() - reinterpret_cast<std::uint64_t>(memory.data())), end = first + std::size_t(bytes());
    for (std::size_t i = 0; i < memory.size(); ++i)
      if ((i < first || i >= end) && memory[i] != 0xcd) return false;
    return true;
  }
};

struct sample {
  std::vector<stored> in, out;
  std::vector<micro_op> body;
  std::uint8_t accumulate = 0;
};
inline int operands_of(const op_info& op) {
  if (&op == &info<op::select> || &op == &info<op::div_grad>) return 3;
  for (const op_info* two : {&info<op::add>, &info<op::sub>, &info<op::mul>, &info<op::div>, &info<op::less>, &info<op::equal>})
    if (&op == two) return 2;
  return op.name.ends_with("_grad") ? 2 : 1;
}
inline bool compares(const op_info& op) { return &op == &info<op::less> || &op == &info<op::equal>; }

inline sample random_sample(std::uint64_t seed) {
  random_numbers r(seed);
  sample s;
  shape dims;
  const dtype floating[] = {dtype::f32, dtype::bf16, dtype::f16};
  const bool narrow = r.below(2) == 0;
  const auto format = [&] { return narrow ? floating[1 + r.below(2)] : floating[r.below(3)]; };
  const int rank = 1 + r.below(5), inner[] = {1, 4, 8, 16, 5, 24};
  for (int i = 0; i + 1 < rank; ++i) dims.push(1 + r.below(5));
  dims.push(inner[r.below(6)]);
  const int inputs = 1 + r.below(max_inputs);
  for (int k = 0; k < inputs; ++k) {
    shape d;
    for (int i = r.below(3) == 0 ? r.below(rank) : 0; i < rank; ++i) d.push(r.below(3) == 0 ? 1 : dims[i]);
    stored t(d, k == 0 ? dtype::boolean : format());
    if (r.below(4) == 0 && d.rank == 2) t.strides = {1, d[0] + 3};  // column-major, with a gap
    if (r.below(4) == 0) t.shift = std::size_t(2 * size_of(t.type));
    t.fill(r);
    s.in.push_back(std::move(t));
  }
  const int count = 1 + r.below(r.below(3) == 0 ? max_micro_ops : 4);
  for (int j = 0; j < count; ++j) {
    const op_info& op = *cuda::instructions[std::size_t(r.below(int(cuda::instructions.size())))];
    micro_op m{&op, {-1, -1, -1}, -1, compares(op) ? dtype::boolean : format(), 0.1 * r.below(30) - 1.5};
    for (int k = 0; k < operands_of(op); ++k) {
      const int of = r.below(inputs + j);
      m.arg[std::size_t(k)] = std::int8_t(of < inputs ? of : max_inputs + of - inputs);
    }
    if (s.out.size() < std::size_t(max_outputs) && (j + 1 == count || r.below(3) == 0)) {
      m.store = std::int8_t(s.out.size());
      if (m.type != dtype::boolean && r.below(4) == 0) s.accumulate = std::uint8_t(s.accumulate | (1u << s.out.size()));
      stored t(dims, m.type);
      t.fill(r);
      s.out.push_back(std::move(t));
    }
    s.body.push_back(m);
  }
  return s;
}

inline std::vector<cuda::view> views(const std::vector<stored>& all) {
  std::vector<cuda::view> v;
  for (const stored& t : all) v.push_back(t.view());
  return v;
}

}  // namespace isotope::cuda_test
