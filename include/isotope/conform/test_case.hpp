#pragma once
/// A case: an op, its attributes and its operands, as a recipe. The numbers are made when it runs.
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "../core/op_info.hpp"
#include "../core/step.hpp"
#include "generator.hpp"
#include "hash.hpp"

namespace isotope::conform {

struct spec;

/// The axes of an operand in memory order, outermost first; the op sees them in the shape's own order.
using memory_order = std::array<std::int8_t, max_rank>;
inline constexpr memory_order row_major{0, 1, 2, 3, 4, 5};

struct operand_recipe {
  shape dims;
  dtype type = dtype::f32;
  const generator* from = &generator_of<generators::uniform>;
  double low = -2, high = 2;
  memory_order order = row_major;
};

enum class case_kind : std::uint8_t {
  forward,   // outputs against the reference
  gradient,  // gradients of sum(y cotangent) against the reference
  law,       // two ways to the same result
  refusal,   // the op must refuse, with a message
};
constexpr std::string_view name_of(case_kind k) {
  constexpr std::string_view names[] = {"forward", "gradient", "law", "refusal"};
  return names[std::size_t(k)];
}

/// Case numbers are below this, so that JSON holds them as integers, and none marks the end of a checkpoint.
inline constexpr std::uint64_t case_id_end = (std::uint64_t(1) << 63) - 1;

struct test_case {
  const spec* of = nullptr;
  case_kind kind = case_kind::forward;
  std::int32_t law = -1;  // of spec::laws
  attributes attr{};
  std::vector<operand_recipe> in{};
  step_scalars scalars{};
  std::string_view made_by{};                              // the generator of the whole case; empty: its specification
  std::uint64_t id = 0;                                    // position among all cases of a run, before sharding
  std::uint64_t seed = 0;                                  // of its generators
  std::uint32_t stream = 0;                                // of random numbers: the number of earlier ops in its program that draw
  std::int32_t cotangents_of = 1;                          // number of results that have a cotangent
  bool ill_conditioned = false;                            // errors are bounded by magnitudes alone, not by a mean square
  std::shared_ptr<const std::vector<array>> given{};       // numbers that replace the generators': shrunk cases and files
  std::shared_ptr<const std::vector<array>> cotangents{};  // given cotangents, likewise
};

/// Returns the seed of a case: a hash of op, version, number of the case within its op, and the run's seed.
constexpr std::uint64_t seed_of(std::string_view op, std::uint32_t version, std::uint64_t number, std::uint64_t run) {
  return stable_hash().add(op).add(version).add(number).add(run).value();
}

/// Whether operands have about one size, so that means are meaningful.
inline bool spread(const test_case& c) {
  if (c.ill_conditioned || c.given != nullptr) return false;
  for (const operand_recipe& x : c.in)
    if (is_floating(x.type) && x.dims.count() != 1 && x.from->name != "uniform" && x.from->name != "normal" && x.from->name != "whole" &&
        x.from->name != "key_mask" && x.from->name != "distinct")
      return false;
  return true;
}

}  // namespace isotope::conform
