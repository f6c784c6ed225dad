#pragma once
/// The numbers of a case: operands by their generators, cotangents, and the bytes that hold them.
#include <span>
#include <vector>

#include "batch.hpp"
#include "block_numbers.hpp"

namespace isotope::conform {

/// Returns operand k as the op sees it, in the shape's own axis order.
inline array operand_numbers(const test_case& c, std::size_t k) {
  const operand_recipe& x = c.in[k];
  const drawing d{c.seed, x.type, int(k), x.dims.cols(), x.low, x.high};
  array a = c.given != nullptr ? (*c.given)[k] : array(x.dims, x.type);
  if (in_blocks(x.type)) {
    if (c.given == nullptr) x.from->fill(d, 0, a.at);
    round_in_blocks(a, x.order);
  } else if (c.given == nullptr) {
    fill_all(*x.from, d, a.at);
  }
  return a;
}
/// Returns cotangent k: uniform over [-1, 1), with a few zeros.
inline array cotangent_numbers(const test_case& c, const traced_case& t, std::size_t k) {
  if (c.cotangents != nullptr) return (*c.cotangents)[k];
  array a(t.cotangent_dims[k], t.cotangent_types[k]);
  const drawing d{c.seed, a.type, int(max_inputs + k), 1, -1, 1};
  fill_all(generator_of<generators::uniform>, d, a.at);
  for (std::size_t i = 7; i < a.at.size(); i += 11) a.at[i] = 0;
  return a;
}
/// Writes x to memory with its axes in the order of the recipe.
inline void write_numbers(const array& x, const memory_order& order, std::byte* to) {
  if (in_blocks(x.type)) return write_in_blocks(x, order, to);
  if (order == row_major) return encode(x.type, to, x.at);
  const auto size = size_of(x.type);
  extents strides{};  // strides of the shape's axes in memory
  std::int64_t n = 1;
  for (int k = x.dims.rank - 1; k >= 0; --k) {
    strides[std::size_t(order[std::size_t(k)])] = n;
    n *= x.dims[order[std::size_t(k)]];
  }
  for_each_index(x.dims, [&](std::int64_t i, const extents& at) {
    std::int64_t p = 0;
    for (int k = 0; k < x.dims.rank; ++k) p += at[std::size_t(k)] * strides[std::size_t(k)];
    encode(x.type, to + p * size, x[i]);
  });
}
/// The bytes of all operands of a batch, surrounded by NaN. The memory is reused from one batch to the next.
struct input_image {
  std::vector<std::byte> bytes;
  /// @param chosen  the cases of the batch, whose numbers are `numbers`
  void fill(std::span<const test_case> cases, std::span<const std::size_t> chosen, const planned_batch& b,
            const std::vector<std::vector<array>>& numbers) {
    bytes.assign(std::size_t(b.input_bytes), std::byte{0xff});
    for (std::size_t n = 0; n < chosen.size(); ++n)
      for (std::size_t k = 0; k < numbers[n].size(); ++k) {
        const auto& in = cases[chosen[n]].in;
        write_numbers(numbers[n][k], k < in.size() ? in[k].order : row_major, bytes.data() + b.cases[n].in[k].at);
      }
  }
};
inline array read_numbers(const tensor_place& p, const std::byte* region) {
  array a(p.dims, p.type);
  decode(p.type, region + p.at, a.at);
  return a;
}

}  // namespace isotope::conform
