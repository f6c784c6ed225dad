#pragma once
/// A fused body as code generators see it: everything but addresses. Equal forms make equal code.
#include <array>
#include <cstdint>
#include <span>

#include "../../core/trace.hpp"

namespace isotope::vulkan {

/// How the four elements of one invocation lie in an operand.
enum class quad : std::uint8_t { strided, contiguous, broadcast };

struct body_form {
  std::array<micro_op, max_micro_ops> body{};
  int instructions = 0, inputs = 0, outputs = 0;
  std::uint32_t reads = 0;  // bit k: some instruction reads operand k
  std::array<dtype, max_inputs> in{};
  std::array<dtype, max_outputs> out{};
  std::uint8_t accumulate = 0;
  // Axes that follow one another in every operand that is read are one. Innermost first, sizes of 1 left out, at least one axis.
  int rank = 1;
  extents dims{1, 1, 1, 1, 1, 1};
  std::array<extents, max_inputs> strides{};
  bool wide = false;  // four elements at a time: the inner axis is a multiple of 4 and all outputs are aligned for it
  std::array<quad, max_inputs> quads{};

  constexpr bool read(int k) const { return ((reads >> k) & 1u) != 0; }
  constexpr bool adds(int k) const { return ((accumulate >> k) & 1u) != 0; }
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[std::size_t(i)];
    return n;
  }
};

/// The stride of a tensor along axis i of `rank` axes, aligned at the last one: 0 where it repeats.
template <class View> constexpr std::int64_t stride_along(const View& x, int i, int rank) {
  const int k = i - (rank - x.dims.rank);
  return k < 0 || x.dims[k] == 1 ? 0 : x.strides[std::size_t(k)];
}

/// The form of a body over tensors with members at (bytes), dims, strides, type: views of a launch, operands of a plan. The outputs are dense,
/// of the same dims; the body's operands broadcast to them. The first `own` operands belong to the body's host.
template <class View>
constexpr body_form form_of(std::span<const View> in, std::span<const View> out, std::span<const micro_op> body, std::uint8_t accumulate,
                            int own = 0) {
  body_form f;
  f.instructions = int(body.size());
  f.inputs = int(in.size());
  f.outputs = int(out.size());
  for (std::size_t j = 0; j < body.size(); ++j) {
    f.body[j] = body[j];
    for (const auto a : body[j].arg)
      if (a >= own && a < max_inputs) f.reads |= 1u << a;
  }
  for (std::size_t k = 0; k < in.size(); ++k) f.in[k] = in[k].type;
  for (std::size_t k = 0; k < out.size(); ++k) {
    f.out[k] = out[k].type;
    f.accumulate = std::uint8_t(f.accumulate | (accumulate & (1u << k)));
  }
  const shape& s = out[0].dims;
  int rank = 0;
  for (int i = s.rank - 1; i >= 0; --i) {
    if (s[i] == 1) continue;
    bool joins = rank > 0;
    for (int k = 0; k < f.inputs && joins; ++k)
      if (f.read(k))
        joins =
            stride_along(in[std::size_t(k)], i, s.rank) == f.strides[std::size_t(k)][std::size_t(rank - 1)] * f.dims[std::size_t(rank - 1)];
    if (joins) {
      f.dims[std::size_t(rank - 1)] *= s[i];
      continue;
    }
    f.dims[std::size_t(rank)] = s[i];
    for (int k = 0; k < f.inputs; ++k)
      if (f.read(k)) f.strides[std::size_t(k)][std::size_t(rank)] = stride_along(in[std::size_t(k)], i, s.rank);
    ++rank;
  }
  f.rank = rank > 0 ? rank : 1;
  f.wide = f.dims[0] % 4 == 0;
  const auto aligned = [](const View& x) { return std::int64_t(x.at) % (4 * size_of(x.type)) == 0; };
  for (const View& y : out) f.wide = f.wide && aligned(y);
  for (int k = 0; k < f.inputs; ++k) {
    const View& x = in[std::size_t(k)];
    const auto& strides = f.strides[std::size_t(k)];
    if (strides[0] == 0) f.quads[std::size_t(k)] = quad::broadcast;
    if (strides[0] != 1 || x.type == dtype::boolean) continue;
    bool contiguous = aligned(x);
    for (int i = 1; i < f.rank; ++i) contiguous = contiguous && strides[std::size_t(i)] % 4 == 0;
    if (contiguous) f.quads[std::size_t(k)] = quad::contiguous;
  }
  return f;
}

}  // namespace isotope::vulkan
