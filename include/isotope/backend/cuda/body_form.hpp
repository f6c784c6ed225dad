#pragma once
/// Everything about a fused body that its generated code depends on. Addresses are not part of it. Equal forms give equal code.
#include <array>
#include <cstdint>
#include <span>

#include "../../core/trace.hpp"

namespace isotope::cuda {

/// Where consecutive output elements find their elements in an operand: apart, contiguous (one load), or all in the same place.
enum class lie : std::uint8_t { strided, contiguous, broadcast };

struct body_form {
  std::array<micro_op, max_micro_ops> body{};
  int instructions = 0, inputs = 0, outputs = 0;
  std::uint32_t reads = 0;  // bit k: some instruction reads operand k
  std::array<dtype, max_inputs> in{};
  std::array<dtype, max_outputs> out{};
  std::uint8_t accumulate = 0;
  // Adjacent axes are merged if their strides allow it in every operand that is read. Innermost axis first, without axes of size 1, at
  // least one axis.
  int rank = 1;
  extents dims{1, 1, 1, 1, 1, 1};
  std::array<extents, max_inputs> strides{};
  int width = 1;  // elements that a thread computes: 1, 4 or 8; the inner axis is a multiple of it and all outputs are aligned to it
  std::array<lie, max_inputs> lies{};

  constexpr bool read(int k) const { return ((reads >> k) & 1u) != 0; }
  constexpr bool adds(int k) const { return ((accumulate >> k) & 1u) != 0; }
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[std::size_t(i)];
    return n;
  }
};

/// The stride of a tensor along axis i of `rank` axes, where its own axes are the last ones; 0 along axes that it broadcasts along.
template <class View> constexpr std::int64_t stride_along(const View& x, int i, int rank) {
  const int k = i - (rank - x.dims.rank);
  return k < 0 || x.dims[k] == 1 ? 0 : x.strides[std::size_t(k)];
}

/// Merges the axes of the outputs, of which all have the dims `s`.
template <class View> constexpr void merge_axes(body_form& f, std::span<const View> in, const shape& s) {
  int rank = 0;
  for (int i = s.rank - 1; i >= 0; --i) {
    if (s[i] == 1) continue;
    const auto last = std::size_t(rank > 0 ? rank - 1 : 0);
    bool joins = rank > 0;
    for (std::size_t k = 0; k < in.size() && joins; ++k)
      if (f.read(int(k))) joins = stride_along(in[k], i, s.rank) == f.strides[k][last] * f.dims[last];
    if (joins) {
      f.dims[last] *= s[i];
      continue;
    }
    f.dims[std::size_t(rank)] = s[i];
    for (std::size_t k = 0; k < in.size(); ++k)
      if (f.read(int(k))) f.strides[k][std::size_t(rank)] = stride_along(in[k], i, s.rank);
    ++rank;
  }
  f.rank = rank > 0 ? rank : 1;
}

/// The form of a body. View is the `view` of a launch or the `operand` of a plan: it has members at, dims, strides and type. The outputs
/// are dense and have the same dims; the body's operands broadcast to them. The first `own` operands belong to the kernel that the body is
/// fused into.
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
  merge_axes(f, in, out[0].dims);
  const auto aligned = [](const View& x, int width) { return std::int64_t(x.at) % (width * size_of(x.type)) == 0; };
  const auto contiguous = [&](std::size_t k, int width) {
    bool all = f.strides[k][0] == 1 && aligned(in[k], width);
    for (int i = 1; i < f.rank; ++i) all = all && f.strides[k][std::size_t(i)] % width == 0;
    return all;
  };
  // 8 elements of 16 bits make the widest access; with an operand in f32, 4 do.
  bool eight = true;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (f.read(int(k)) && f.strides[k][0] != 0) eight = eight && size_of(in[k].type) <= 2 && contiguous(k, 8);
  for (const View& y : out) eight = eight && size_of(y.type) <= 2;
  for (const int width : {4, 8}) {
    bool fits = f.dims[0] % width == 0 && (width == 4 || eight);
    for (const View& y : out) fits = fits && aligned(y, width);
    if (fits) f.width = width;
  }
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!f.read(int(k)) || f.strides[k][0] == 0) f.lies[k] = lie::broadcast;
    else if (f.width > 1 && contiguous(k, f.width)) f.lies[k] = lie::contiguous;
  }
  return f;
}

}  // namespace isotope::cuda
