#pragma once
/// What a vulkan kernel receives, and what it hands back: dispatches. Nothing here touches a device, so recordings can be made and checked anywhere.
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
#include "launch_size.hpp"
#include "limits.hpp"

namespace isotope::vulkan {

/// A compiled module. Without words: the shader compiler of the build lacks an ability that the source needs, `missing` says which.
struct shader {
  std::string_view name;
  std::span<const std::uint32_t> words;
  std::string_view missing, needs{};  // needs: that ability, also where the build has it
  bool there() const { return !words.empty(); }
};

/// A shader of the library, the source it was made of, below kernels/vulkan/, and the macros and options that this variant was compiled with.
struct shader_variant {
  const shader* is;
  std::string_view source, flags;
};
/// Every variant of every source, by source. For programs that link the compiled shaders, where ISOTOPE_COMPILED_SHADERS is defined.
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

/// Specialization constants by id: 0 is the number of invocations in a workgroup, 1 the subgroup size, the rest is the shader's own.
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

/// One vkCmdDispatch. Barriers are derived from the ranges; a range that is left out is a race.
struct dispatch {
  static constexpr std::size_t push_limit = 128;  // bytes that every device takes
  const shader* code = nullptr;
  constants specialization;
  std::uint32_t subgroup = 0;  // required size with full subgroups; 0: whatever the device takes
  std::array<std::byte, push_limit> push{};
  std::uint32_t push_bytes = 0;
  groups count;
  std::uint32_t default_invocations = 0;  // invocations of a workgroup that the kernel chose; constant 0 is what it got
  std::vector<range> reads, writes;
  std::string_view set;       // kernel set that runs
  std::string_view reason{};  // why not a better one; empty: it is the best
  std::int32_t step = -1;     // of the plan
  float oscillation = -1;     // of the step's weight; -1: it has no score

  std::uint32_t invocations() const { return specialization.words().empty() ? 0 : specialization.words()[0]; }
  /// Invocations of its workgroups in a sweep that asks for `swept` beside the kernel's own choice, in rising order, each once.
  std::vector<std::int32_t> launch_sizes(std::span<const std::int32_t> swept) const {
    std::vector<std::int32_t> all{std::int32_t(default_invocations)};
    if (count.unit != 0)
      for (const std::int32_t n : swept) all.push_back(std::int32_t(count.fit(std::uint32_t(n))));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
};

/// The formats that a dispatch gives to matrix units; empty: it uses none.
inline std::string_view matrices_of(const dispatch& d) {
  return d.code->needs == "coopmat_bf16" ? "bf16xbf16->f32" : d.code->needs == "coopmat" ? "f16xf16->f32" : "";
}
/// Invocations of workgroups that a sweep asks for beside what kernels choose: one, a small number, the largest.
inline std::vector<std::int32_t> swept_sizes(const device_limits& f) { return {1, 64, std::int32_t(f.invocations)}; }
/// Dispatches as reports see them; `swept`: sizes of workgroups of a sweep.
inline std::vector<launch_row> launch_rows(std::span<const dispatch> all, std::span<const std::int32_t> swept = {}) {
  std::vector<launch_row> rows;
  for (const dispatch& d : all)
    rows.push_back({.step = d.step,
                    .set = d.set,
                    .reason = d.reason,
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

/// Words that the host computes once and shaders read: tables of addresses, twiddle factors, cosines.
class constant_store {
 public:
  virtual ~constant_store() = default;
  /// The device address of a copy of `words`; equal contents may share one.
  virtual std::uint64_t keep(std::span<const std::uint32_t> words) = 0;
};
/// Modules made at run time: fused bodies. Equal words give the same shader.
class shader_store {
 public:
  virtual ~shader_store() = default;
  virtual const shader* keep(std::string_view name, std::vector<std::uint32_t> words) = 0;
};

/// Collects the dispatches of a program.
class recording {
 public:
  recording(constant_store& const_pool, shader_store& shaders) : const_pool_(const_pool), shaders_(shaders) {}

  /// A dispatch of `code`. `push` is a struct laid out as the shader's push constants (scalar layout), at most 128 bytes.
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
    d.step = step;
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
  std::string_view set, reason;  // of what is added next
  std::int32_t step = -1;
  float oscillation = -1;
  std::int32_t launch_size = -1;  // invocations of workgroups that leave it open; -1: what the kernels choose

 private:
  constant_store& const_pool_;
  shader_store& shaders_;
};

namespace spirv {
struct number;
/// An element-wise op from outside the library: its result from up to three operands and its constant, written like those in formulas.glsl.
struct custom_instruction {
  const op_info* op = nullptr;
  number (*result)(const number& a, const number& b, const number& c, const number& k) = nullptr;
};
}  // namespace spirv

/// What the kernel of an element-wise op from outside the library derives from; it has
/// `static constexpr spirv::number formula(const spirv::number& a, const spirv::number& b, const spirv::number& c, const spirv::number& k)`:
/// the result from up to three operands and the op's constant, in the arithmetic of spirv/numbers.hpp and emitted_formulas.hpp.
struct emitted_instruction {
  /// Epilogues that stay inside a gemm's kernel are interpreted, and its shader does not know the op.
  static constexpr bool outside_epilogues = true;
};

struct launch {
  std::span<const view> in, out;
  const attributes* attr = nullptr;
  std::span<const micro_op> body;  // operands of elementwise steps have the output's dims, strides 0 where repeated
  std::uint64_t scratch = 0;       // device address
  std::int64_t scratch_bytes = 0;
  std::uint64_t scalars = 0;    // device address of device_scalars
  std::uint32_t ordinal = 0;    // stream of random numbers
  std::uint8_t accumulate = 0;  // bit k: add to output k (already decided for the running phase)
  float oscillation = -1;       // of a gemm's weight, for those stored in f16; -1: unknown
  const device_limits* device = nullptr;
  std::span<const spirv::custom_instruction> custom;  // what bodies may hold beside the library's

  /// The constants of Op, whose attributes these are.
  template <class Op> auto constants() const { return Op::constants::of(*attr); }
};

/// step_scalars as shaders see them, with what only the host computes accurately.
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

/// The kernel of Op in precision P of a kernel set: `static void record(const launch&, recording&)` adds its dispatches. Instructions of fused
/// bodies have a kernel without `record`: it says that bodies may hold them (see emitted_instruction). Optional: `inplace`, `epilogue`, constexpr `scratch(const step_shapes&)`
/// as in kernel_info; a native kernel that may fall through at run time states bounds that hold for the kernels below it too.
template <class Op, class P, class Set> struct kernel;

/// What specialization a set inherits: the fields `set` and `reason` of a recording while a kernel of that set records.
inline void enter_set(recording& r, std::string_view set, std::string_view why = {}) {
  r.set = set;
  r.reason = why;
}

}  // namespace isotope::vulkan
