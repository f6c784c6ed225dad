#pragma once
#include <bit>

#include "../core/tape.hpp"
#include "concat.hpp"

namespace isotope {
/// Llama 3's scaling of rotation frequencies to a longer context. With the wavelength w = 2 pi / f of a frequency and L = context:
/// f where w < L / high, f / factor where w > L / low, and in between (1 - t) f / factor + t f with t = (L / w - low) / (high - low).
/// Source: Grattafiori et al. 2024, arXiv:2407.21783; huggingface/transformers, modeling_rope_utils.py, rope type "llama3".
struct rope_scaling {
  std::int64_t context = 0;  // positions that the model first learned; 0: frequencies are not scaled
  double factor = 0;
  double low = 0, high = 0;  // how many wavelengths fit into the context at the two bounds
  friend constexpr bool operator==(const rope_scaling&, const rope_scaling&) = default;
};

namespace op {
/// Operands x (B, S, H, D), and optionally positions (S) i32.
struct rope {
  struct constants {
    std::int64_t first = 0;      // the position of the first row, if they are no operand
    std::int64_t direction = 1;  // -1: the inverse rotation
    std::int64_t heads = 0;      // heads from this one on are copied; 0: all rotate
    double base = 10000;         // of the rotation frequencies
    rope_scaling scaling{};
    static constexpr constants of(const attributes& a) {
      return {.first = a.i[0],
              .direction = a.i[1],
              .heads = a.i[2],
              .base = a.f[0],
              .scaling = {.context = a.i[3], .factor = std::bit_cast<double>(a.i[4]), .low = a.f[1], .high = a.f[2]}};
    }
    /// The factor, a fourth number beside the three of `f`, is stored as its bits.
    constexpr operator attributes() const {
      return {.i = {first, direction, heads, scaling.context, std::bit_cast<std::int64_t>(scaling.factor)},
              .f = {base, scaling.low, scaling.high}};
    }
    /// How many of `all` heads rotate.
    constexpr std::int64_t rotated(std::int64_t all) const { return heads == 0 || heads > all ? all : heads; }
  };
  static constexpr std::string_view name = "rope";
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    const auto c = constants::of(r.attr);
    const auto& scaling = c.scaling;
    message m;
    if (c.direction != 1 && c.direction != -1) r.fail(m << "direction " << c.direction << " is neither 1 nor -1");
    else if (!(c.base > 0)) r.fail(m << "base " << c.base << " is not positive");
    else if (c.first < -max_elements || c.first > max_elements) r.fail(m << "first position " << c.first << " is beyond 2^40");
    else if (scaling.context < 0 || scaling.context > max_elements) r.fail(m << "context " << scaling.context << " is not in [0,2^40]");
    else if (!r.require(x.rank == 4 && x[3] % 2 == 0, "x must be [B,S,heads,head size] with an even head size") ||
             !r.require(!x.late(3), "the head size is a late size: give a constant one") ||
             !r.require(scaling.context == 0 || (scaling.factor > 0 && scaling.low > 0 && scaling.high > scaling.low),
                        "scaling needs a positive factor and 0 < low < high"))
      return;
    else if (c.heads < 0 || c.heads > x[2]) r.fail(m << "rotates " << c.heads << " heads of " << x);
    else if (r.inputs() < 2 || (r.require(r.dims(1) == shape{x.axis(1)} && r.type(1) == dtype::i32, "positions must be [S] of i32") &&
                                r.require(c.first == 0, "rows with positions of their own have no first position")))
      r.yield(x, r.type(0));
  }
  /// Heads may be divided.
  static constexpr void shard(sharding& s) {
    if (!s.divided(0)) return;
    auto c = constants::of(s.attr);
    if (!s.require(s.along(0).axis == 2, "another axis than that of the heads is divided")) return;
    if (c.heads != 0) {
      const auto turned = group_range::of(s.along(0), 0, c.heads, s.parts());
      if (!s.require(turned.along.divides(), "the heads that turn are not whole groups of the divided axis")) return;
      c.heads = turned.along.local(s.parts());
    }
    s.attr = c;
    s.yield(0, s.at(0));
  }
  static constexpr void gradient(pullback& g) {
    auto c = constants::of(g.attr);
    c.direction = -c.direction;
    if (g.inputs() == 1) g.give(0, apply<rope>(place::current(), c, g.dy()));
    else g.give(0, apply<rope>(place::current(), c, g.dy(), g.x(1)));
  }
};
}  // namespace op

struct rope_options {
  double base = 10000;
  rope_scaling scaling{};
  int heads = 0;             // only so many heads rotate, the others are copied; 0: all rotate
  std::int64_t width = 0;    // only so many first elements of each head rotate, D of the formula being this width; 0: all
  bool interleaved = false;  // elements 2 d and 2 d + 1 are a pair instead of d and d + D/2
};

namespace op {
/// The pairs of the last axis as halves (..., D/2 firsts, D/2 seconds), or the other way round.
template <Machine M> constexpr tensor<M> pairs_as_halves(tensor<M> x, bool back, place at) {
  const shape& s = x.dims();
  shape parts;
  for (int i = 0; i + 1 < s.rank; ++i) parts.push(s.axis(i));
  parts.push(back ? dim(2) : dim(s[-1] / 2));
  parts.push(back ? dim(s[-1] / 2) : dim(2));
  return isotope::reshape(isotope::transpose(isotope::reshape(x, parts, at), at), s, at);
}
/// What `rotate` does to x in the form that the options name.
template <Machine M, class F> constexpr tensor<M> rotated_as(tensor<M> x, const rope_options& o, place at, const F& rotate) {
  if (x.rank() != 4 || (o.width == 0 && !o.interleaved)) return rotate(x);
  message m;
  const std::int64_t width = o.width == 0 ? x[3] : o.width;
  if (width < 0 || width > x[3] || width % 2 != 0) {
    x.machine->fail(m << "rope: a width of " << width << " of " << x.dims() << " must be even and at most the head size", at);
    return x;
  }
  auto part = isotope::narrow(x, 3, 0, width, at);
  part = o.interleaved ? pairs_as_halves(rotate(pairs_as_halves(part, false, at)), true, at) : rotate(part);
  return width == x[3] ? part : isotope::concat({part, isotope::narrow(x, 3, width, x[3] - width, at)}, 3, at);
}
}  // namespace op

/// Rotary position embedding: with t = (first + s) base^(-2 d / D), for d < D/2
///   y[d] = x[d] cos t - x[d + D/2] sin t,   y[d + D/2] = x[d + D/2] cos t + x[d] sin t.
/// Angles and their sine and cosine are computed in f64.
///
/// @param x  (B, S, H, D)  D even
/// @return   (B, S, H, D)
/// @error    another rank, odd D, a base that is not positive
/// Source: Su et al. 2021, arXiv:2104.09864; halves paired as in GPT-NeoX.
template <Machine M> constexpr tensor<M> rope(tensor<M> x, double base = 10000, std::int64_t first = 0, place at = place::current()) {
  return apply<op::rope>(at, op::rope::constants{.first = first, .base = base}, x);
}
/// The same of sequences that start at position 0, with the options' frequencies, heads, width and pairs.
/// @error  as above; more heads than x has; a scaling factor that is not positive, bounds that are not ordered; an odd width, or one beyond D
template <Machine M> constexpr tensor<M> rope(tensor<M> x, rope_options o, place at = place::current()) {
  return op::rotated_as(x, o, at, [&](tensor<M> part) {
    return apply<op::rope>(at, op::rope::constants{.heads = o.heads, .base = o.base, .scaling = o.scaling}, part);
  });
}
/// The same of packed tokens, each with a position of its own: t = positions[s] base^(-2 d / D), positions (S) i32, or (B, S) for rows of x that have different
/// ones. They have no gradient. At positions up to 2^20 the angle is exact to 2^-31 of a turn.
template <Machine M> constexpr tensor<M> rope(tensor<M> x, tensor<M> positions, rope_options o = {}, place at = place::current()) {
  if (positions.rank() == 2 && x.rank() == 4) {
    const auto rows = reshape(x, {1, x[0] * x[1], x[2], x[3]}, at);
    return reshape(rope(rows, reshape(positions, {positions[0] * positions[1]}, at), o, at), x.dims(), at);
  }
  return op::rotated_as(x, o, at, [&](tensor<M> part) {
    return apply<op::rope>(at, op::rope::constants{.heads = o.heads, .base = o.base, .scaling = o.scaling}, part, positions);
  });
}
}  // namespace isotope
