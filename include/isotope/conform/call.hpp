#pragma once
/// The arguments and the results of an op's reference.
#include <cstdint>
#include <span>
#include <vector>

#include "../core/op_info.hpp"
#include "../core/step.hpp"
#include "array.hpp"
#include "numeric_policy.hpp"

namespace isotope::conform {

/// What a bound may depend on besides the numbers.
struct conditions {
  dtype program = dtype::f32;
  bool gpu = false;  // the device's own elementary functions apply; subnormal numbers may become zero
  /// Returns the longest serial sum of the matmul kernel that runs, for K terms: what the kernel declares, else K.
  std::int64_t (*chain)(std::int64_t K) = nullptr;
  numeric_policy policy{};  // of the op

  dtype accum() const { return accum_of(program); }
  double u() const { return facts_of(accum()).roundoff(); }  // of the arithmetic
  double stored() const {
    return program == accum() ? 0 : facts_of(program).roundoff();
  }  // of a result in 16 bits; 0 if it is not narrower
  /// Returns the units in the last place of the op's elementary functions.
  double ulps() const { return double(policy.ulps(gpu)); }
  /// Returns how far an elementary function may miss a result that is rounded to 16 bits: 1/128 of the rounding, on a processor.
  double short_of_rounding() const { return gpu || ulps() == 0 ? 0 : stored() / 128; }
  double chain_of(std::int64_t K) const { return double(chain != nullptr ? chain(K) : K); }
};

struct call {
  std::span<const array> in;
  const attributes& attr;
  const step_scalars& scalars;
  conditions on;
  std::uint32_t stream = 0;  // of random numbers

  /// The constants of Op, whose attributes these are.
  template <class Op> auto constants() const { return Op::constants::of(attr); }
};

/// One result: numbers, and how far each may be off beyond its rounding to the format: condition times roundoff.
struct answer {
  std::vector<double> value, slack;
  double nmse = 0;       // limit on the mean squared error relative to the mean square; 0: the format's limit, < 0: none
  double roundings = 1;  // how often the value is rounded to its storage format

  void resize(std::int64_t n) {
    value.assign(std::size_t(n), 0);
    slack.assign(std::size_t(n), 0);
  }
  void set(std::int64_t i, double v, double s = 0) {
    value[std::size_t(i)] = v;
    slack[std::size_t(i)] = s;
  }
  /// For sums collected term by term: adds v and its magnitude.
  void add(std::int64_t i, double v, double magnitude) {
    value[std::size_t(i)] += v;
    slack[std::size_t(i)] += magnitude;
  }
  void scale_slack(double by) {
    for (double& s : slack) s *= by;
  }
};

using reference_function = void (*)(const call&, std::span<answer>);
/// Returns dx of every input from the cotangents of the outputs that have one. Inputs without a gradient get empty answers.
using gradient_function = void (*)(const call&, std::span<const array> dy, std::span<answer> dx);

}  // namespace isotope::conform
