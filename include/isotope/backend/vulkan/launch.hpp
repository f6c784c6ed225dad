#pragma once
/// The arguments of a vulkan kernel, and the dispatches that it records. Nothing here uses a device, so dispatches can be recorded and checked anywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/op_info.hpp"
#include "../../core/step.hpp"
#include "../../core/target.hpp"
#include "../../plan/report/launch_row.hpp"
#include "../queue/hazards.hpp"
#include "../queue/known_choices.hpp"
#include "launch_size.hpp"
#include "limits.hpp"

namespace isotope::vulkan {

/// A compiled shader module. `words` is empty if the build's shader compiler lacks a feature that the source needs; `missing` names it.
struct shader {
  std::string_view name;
  std::span<const std::uint32_t> words;
  std::string_view missing, needs{};  // needs: the compiler feature that the source needs, also if the build has it
  bool there() const { return !words.empty(); }
};

/// A shader of the library, its source file below kernels/vulkan/, and the macros and options that this variant was compiled with.
struct shader_variant {
  const shader* is;
  std::string_view source, flags;
};
/// Every variant of every source, ordered by source. For programs that link the compiled shaders: there ISOTOPE_COMPILED_SHADERS is defined.
std::span<const shader_variant> shader_variants();

/// A strided tensor in device memory: `at` is the address of its first element, `strides` count elements.
struct view {
  std::uint64_t at = 0;
  std::int64_t bytes = 0;  // from the first element to the last
  shape dims;
  extents strides{};
  dtype type = dtype::f32;
  operator byte_range() const { return {at, bytes}; }
};
using range = byte_range;

/// Specialization constants by id: 0 is the workgroup size, 1 the subgroup size, and each shader defines the others.
class constants {
 public:
  constants() = default;
  constants(std::initializer_list<std::uint32_t> l) : words_(l) {}
  constants& add(std::uint32_t x) { return words_.push_back(x), *this; }
  constants& add(std::int64_t x) { return add(std::uint32_t(x)); }
  constants& add(int x) { return add(std::uint32_t(x)); }
  constants& add(bool x) { return add(std::uint32_t(x)); }
  constants& add(dtype x) { return add(std::uint32_t(x)); }
  constants& add(float x) {
    std::uint32_t u = 0;
    std::memcpy(&u, &x, sizeof u);
    return add(u);
  }
  constants& set_invocations(std::uint32_t n) { return words_.at(0) = n, *this; }
  const std::vector<std::uint32_t>& words() const { return words_; }

 private:
  std::vector<std::uint32_t> words_;
};

/// One vkCmdDispatch. Barriers are derived from `reads` and `writes`, so a range that is left out is a race.
struct dispatch {
  static constexpr std::size_t push_limit = 128;  // bytes of push constants that every device supports
  const shader* code = nullptr;
  constants specialization;
  std::uint32_t subgroup = 0;  // required subgroup size, with full subgroups; 0: any
  std::array<std::byte, push_limit> push{};
  std::uint32_t push_bytes = 0;
  groups count;
  std::uint32_t default_invocations = 0;  // the workgroup size that the kernel chose; constant 0 is the one that is used
  std::vector<range> reads, writes;
  std::string_view set;                          // the kernel set that runs
  std::vector<considered_variant> considered{};  // the variants among which it was chosen
  std::string choice{};                          // the signature of that choice; empty: it is not remembered
  std::string_view reason{};                     // why a faster set does not run; empty: there is none
  std::int32_t step = -1;                        // index of the plan's step
  std::int32_t joined = -1;                      // another step that it does, too; -1: none
  float oscillation = -1;                        // of the step's weight; -1: not known

  std::uint32_t invocations() const { return specialization.words().empty() ? 0 : specialization.words()[0]; }
  /// The workgroup sizes that a sweep over `swept` tries: the kernel's own choice and what `swept` becomes here, ascending, without duplicates.
  std::vector<std::int32_t> launch_sizes(std::span<const std::int32_t> swept) const {
    std::vector<std::int32_t> all{std::int32_t(default_invocations)};
    if (count.unit != 0)
      for (const std::int32_t n : swept) all.push_back(std::int32_t(count.fit(std::uint32_t(n))));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
};

/// The formats with which a dispatch uses matrix units; empty: it does not use them.
inline std::string_view matrices_of(const dispatch& d) {
  return d.code->needs == "coopmat_bf16" ? "bf16xbf16->f32" : d.code->needs == "coopmat" ? "f16xf16->f32" : "";
}
/// The workgroup sizes that a sweep tries beside the kernels' own choices: one invocation, a small number, and the largest.
inline std::vector<std::int32_t> swept_sizes(const device_limits& f) { return {1, 64, std::int32_t(f.invocations)}; }
/// Dispatches as rows of a report; `swept` are the workgroup sizes of a sweep.
inline std::vector<launch_row> launch_rows(std::span<const dispatch> all, std::span<const std::int32_t> swept = {}) {
  std::vector<launch_row> rows;
  for (const dispatch& d : all)
    rows.push_back({.step = d.step,
                    .joined = d.joined,
                    .set = d.set,
                    .reason = d.reason,
                    .considered = d.considered,
                    .code = d.code->name,
                    .groups = {d.count.x, d.count.y, d.count.z},
                    .invocations = d.invocations(),
                    .subgroup = d.subgroup,
                    .bytes = bytes_of(d),
                    .matrices = matrices_of(d),
                    .oscillation = d.oscillation,
                    .launch_sizes = d.launch_sizes(swept),
                    .words = d.code->words});
  return rows;
}

/// Keeps 32-bit words that the host computes once and shaders read: tables of addresses, twiddle factors, cosines.
class constant_store {
 public:
  virtual ~constant_store() = default;
  /// Copies `words` to the device and returns the address; equal words may share one copy.
  virtual std::uint64_t keep(std::span<const std::uint32_t> words) = 0;
};
/// Keeps shader modules that are generated at run time, for fused bodies. Equal words give the same shader.
class shader_store {
 public:
  virtual ~shader_store() = default;
  virtual const shader* keep(std::string_view name, std::vector<std::uint32_t> words) = 0;
};

struct launch;

/// Collects the dispatches of a plan.
class recording {
 public:
  recording(constant_store& const_pool, shader_store& shaders) : const_pool_(const_pool), shaders_(shaders) {}

  /// For choose_kernel: the variants among which the dispatch that is added next was chosen.
  kernel_choices* considered();
  /// Asks for a variant, as in kernel_choices.
  void want(std::string_view variant) { choices_.want(variant); }
  /// Takes remembered choices from there; null: the fastest by estimate.
  void know(const known_choices* all) { choices_.know(all); }
  /// The step that is recorded next. Its launch must live as long as it is recorded.
  void begin_step(const op_info& op, const launch& l) {
    op_ = &op, launch_ = &l;
    choices_.begin_step();
  }

  /// Adds a dispatch of `code`. `push` is a struct with the layout of the shader's push constants (scalar layout), at most 128 bytes.
  template <class Push>
  dispatch& add(const shader& code, constants specialization, const Push& push, groups count, std::vector<range> reads,
                std::vector<range> writes) {
    static_assert(std::is_trivially_copyable_v<Push> && sizeof(Push) <= dispatch::push_limit, "push constants hold 128 bytes");
    dispatch d;
    d.code = &code;
    d.specialization = std::move(specialization);
    std::memcpy(d.push.data(), &push, sizeof push);
    d.push_bytes = std::uint32_t((sizeof push + 3) / 4 * 4);
    d.count = count;
    d.default_invocations = d.invocations();
    if (launch_size > 0 && count.unit != 0) {
      d.specialization.set_invocations(count.fit(std::uint32_t(launch_size)));
      d.count = resized(count, d.invocations());
    }
    d.reads = std::move(reads);
    d.writes = std::move(writes);
    d.set = set;
    d.reason = reason;
    d.considered = choices_.considered();
    d.choice = choices_.signature();
    d.step = step;
    d.joined = joined;
    d.oscillation = oscillation;
    dispatches.push_back(std::move(d));
    return dispatches.back();
  }

  std::uint64_t keep(std::span<const std::uint32_t> words) { return const_pool_.keep(words); }
  std::uint64_t keep(std::span<const float> numbers) {
    std::vector<std::uint32_t> w(numbers.size());
    if (!w.empty()) std::memcpy(w.data(), numbers.data(), numbers.size_bytes());
    return const_pool_.keep(w);
  }
  std::uint64_t keep(std::span<const std::uint64_t> addresses) {
    std::vector<std::uint32_t> w(2 * addresses.size());
    if (!w.empty()) std::memcpy(w.data(), addresses.data(), addresses.size_bytes());
    return const_pool_.keep(w);
  }
  const shader* keep_module(std::string_view name, std::vector<std::uint32_t> words) { return shaders_.keep(name, std::move(words)); }

  std::vector<dispatch> dispatches;
  std::string_view set, reason;  // of the dispatches that are added next
  std::int32_t step = -1;
  std::int32_t joined = -1;  // the step that is recorded together with it
  float oscillation = -1;
  std::int32_t launch_size = -1;  // invocations per workgroup where a kernel allows any number; -1: the kernel's own choice

 private:
  step_choices choices_;
  const op_info* op_ = nullptr;
  const launch* launch_ = nullptr;
  constant_store& const_pool_;
  shader_store& shaders_;
};

namespace spirv {
struct number;
/// The formula of an element-wise op that interpreters do not know: its result from up to three operands and its constant, like those in formulas.glsl.
struct custom_instruction {
  const op_info* op = nullptr;
  number (*result)(const number& a, const number& b, const number& c, const number& k) = nullptr;
};
}  // namespace spirv

/// The base class of the kernel of an element-wise op that only generated bodies contain: one from outside the library, or one of it that
/// is not in instruction_ops. The kernel has
/// `static constexpr spirv::number formula(const spirv::number& a, const spirv::number& b, const spirv::number& c, const spirv::number& k)`:
/// the result from up to three operands and the op's constant, in the arithmetic of spirv/numbers.hpp and emitted_formulas.hpp.
struct emitted_instruction {
  /// The op cannot be fused into a matmul epilogue: matmul shaders interpret epilogues and do not know the op.
  static constexpr bool outside_epilogues = true;
};

struct launch {
  std::span<const view> in, out;
  const attributes* attr = nullptr;
  std::span<const micro_op> body;  // operands of elementwise steps have the output's dims, with stride 0 along broadcast axes
  std::uint64_t scratch = 0;       // device address
  std::int64_t scratch_bytes = 0;
  std::uint64_t scalars = 0;          // device address of device_scalars
  std::uint32_t ordinal = 0;          // which random stream an op draws from
  std::uint8_t accumulate = 0;        // bit k: add to output k in the phase that runs
  int summed = -1;                    // the output whose column sums are asked for (kernel_info::column_sums); -1: none are
  const view* column_sums = nullptr;  // where they go; `out` is without them
  float oscillation = -1;             // of a matmul's weight that is stored in f16; -1: not known
  const device_limits* device = nullptr;
  std::span<const spirv::custom_instruction> custom;  // formulas of ops that interpreters do not know, which bodies may contain

  /// The attributes of the launch as the constants of Op.
  template <class Op> auto constants() const { return Op::constants::of(*attr); }
};

/// step_scalars as shaders read them, with derived values that need the host's f64 arithmetic.
struct device_scalars {
  step_scalars given;
  float beta1 = 0, beta2 = 0, rest1 = 1, rest2 = 1;  // rest = 1 - beta
  float correction1 = 1, correction2 = 1;            // 1 - beta^t

  static device_scalars of(const step_scalars& x, std::int64_t optimizer_step) {
    device_scalars s{x,
                     float(x.beta1),
                     float(x.beta2),
                     float(1 - x.beta1),
                     float(1 - x.beta2),
                     float(1 - std::pow(x.beta1, double(optimizer_step))),
                     float(1 - std::pow(x.beta2, double(optimizer_step)))};
    s.given.optimizer_step = optimizer_step;
    return s;
  }
};
static_assert(sizeof(step_scalars) == 136 && sizeof(device_scalars) == 160);

inline kernel_choices* recording::considered() {
  return choices_.next([this] { return op_ == nullptr ? std::string() : signature_of(*op_, set, *launch_); });
}

/// The kernel of Op in precision P of a kernel set: `static void record(const launch&, recording&)` adds its dispatches. A kernel without `record` declares
/// that fused bodies may contain the op (see emitted_instruction). Optional: `inplace`, `epilogue`, constexpr `scratch(const step_shapes&)` and
/// `column_sums` as in kernel_info. If a native kernel may fall back at run time, its `scratch` must be enough for the kernel that it falls back to.
template <class Op, class P, class Set> struct kernel;

/// Sets the kernel set and the reason of the dispatches that are recorded next. A kernel that falls back calls it with the name of the other set.
inline void enter_set(recording& r, std::string_view set, std::string_view why = {}) {
  r.set = set;
  r.reason = why;
}

}  // namespace isotope::vulkan
