#pragma once
/// A target is a backend, a precision and a kernel set; kernel tables say what a backend can run.
#include <boost/mp11/list.hpp>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "diagnostics.hpp"
#include "trace.hpp"

namespace isotope {

namespace kernels {
struct reference {  // plain loops, which define the results
  static constexpr std::string_view name = "reference";
  static constexpr int rank = 0;
};
struct portable {  // no special hardware
  static constexpr std::string_view name = "portable";
  static constexpr int rank = 1;
};
struct native {  // may use special instructions of the hardware
  static constexpr std::string_view name = "native";
  static constexpr int rank = 2;
};
}  // namespace kernels

/// The shapes and attributes of one step, from which a kernel computes its scratch size.
struct step_shapes {
  std::span<const shape> in, out;
  const attributes* attr = nullptr;
  int summed = -1;  // the result whose column sums are the last one of `out`; -1: none is

  /// The attributes of the step as the constants of Op.
  template <class Op> constexpr auto constants() const { return Op::constants::of(*attr); }
};

/// One kernel as the planner sees it. Tables list the wanted kernel set first, then those that it falls back to: the first match runs.
struct kernel_info {
  const op_info* op = nullptr;
  dtype precision = dtype::f32;
  std::string_view set;                                   // reference, portable, native
  std::uint32_t inplace = 0;                              // bit k: output 0 may reuse the memory of input k if that is not read later
  bool epilogue = false;                                  // can apply a fused body to its result
  bool outside_epilogues = false;                         // an element-wise op that cannot be fused into a matmul epilogue
  std::int64_t (*scratch)(const step_shapes&) = nullptr;  // bytes of workspace that are enough on every device
  /// Of a matmul: elements of the pre-packed right operand that the kernel prefers to read; 0: it prefers the operand itself.
  std::int64_t (*packed)(const step_shapes&) = nullptr;
  /// The same for a right operand that is the transpose of a weight, of programs that update none.
  std::int64_t (*packed_transposed)(const step_shapes&) = nullptr;
  bool packs = false;         // of an optimiser update: also updates packed copies of weights
  bool packs_blocks = false;  // packed_transposed also takes such a weight in blocks
  bool reads_blocks = false;  // of an op with a weight: the kernel reads it in blocks, too (core/quantized.hpp)
  bool counts_all_elements =
      false;  // of an op that draws: numbers are drawn by the element's number among those of all devices (op::dropout, op::attention)
  bool takes_addend = false;  // of a gradient: accepts one more operand, which is added to its first result after that is rounded
  /// Whether the kernel, in a step of these shapes with this fused body, can also give the column sums of result `summed`: the sums of its elements
  /// as they are stored, over all axes but the last, in the accumulation format. Null: it cannot.
  bool (*column_sums)(const step_shapes&, std::span<const micro_op> body, int summed) = nullptr;
};

/// What a program is compiled for. `Extra` kernels, of ops defined outside the library, are found first.
template <class B, class P, class K = kernels::native, class Extra = boost::mp11::mp_list<>> struct target {
  using backend = B;
  using precision = P;
  using kernel_set = K;
  using extra_kernels = Extra;
};
/// A piece of a kernel that was compiled separately, once for each set of flags. `needs`: the ability of the device, and of the compiler, that the source
/// asks for; `missing`: what the compiler lacks, and then there are no bytes.
struct code_variant {
  std::string_view name, source, flags, needs, missing;
  std::size_t bytes = 0;
};

template <class B>
concept HasBackendName = requires {
  { B::name } -> std::convertible_to<std::string_view>;
};
template <class B>
concept HasPreference = requires {
  { B::preference } -> std::convertible_to<int>;
};
template <class B>
concept HasLimits = requires {
  { B::chunk_bytes } -> std::convertible_to<std::int64_t>;
  { B::tensor_bytes } -> std::convertible_to<std::int64_t>;
  { B::row_multiple } -> std::convertible_to<std::int64_t>;
};
template <class B>
concept HasReports = requires {
  { B::native_reason } -> std::convertible_to<std::string_view>;
  { B::variants() } -> std::same_as<std::vector<code_variant>>;
};
template <class B>
concept HasOptions = requires(const typename B::options& o) {
  { o.name } -> std::convertible_to<std::string_view>;
  { o.diagnose } -> std::convertible_to<const diagnostics&>;
};
template <class B>
concept HasKernels = requires { typename B::kernels; };
template <class B>
concept HasDevice = requires { typename B::template device<target<B, precision::f32, kernels::reference>>; };
/// A backend, on which programs run. `preference` ranks backends (higher wins), `kernels` is the mp_list of its kernels, `device<Target>` opens and loads, `options`
/// is what opening takes (basic_device_options of core/device.hpp). Limits: `chunk_bytes` of one allocation and `tensor_bytes` of one tensor, 0: no limit;
/// `row_multiple`, the number of elements that the row length of a matrix should be a multiple of for fast kernels, 1: any length. Reports: `native_reason` says why
/// an op has no native kernel, `variants` lists code that was compiled separately. Optional: `reuse_delay`, the number of nodes for which the planner leaves freed
/// memory alone where that costs none, so that nodes which may run at the same time do not wait for each other's memory, in plans of at most `reuse_delay_limit` bytes
/// of temporaries.
template <class B>
concept Backend = HasBackendName<B> && HasPreference<B> && HasLimits<B> && HasReports<B> && HasOptions<B> && HasKernels<B> && HasDevice<B>;

template <class T>
concept HasBackend = requires {
  typename T::backend;
  requires HasBackendName<typename T::backend> && HasKernels<typename T::backend>;  // not Backend, whose `device` itself needs a target
};
template <class T>
concept HasPrecision = requires {
  typename T::precision;
  requires Precision<typename T::precision>;
};
template <class T>
concept HasKernelSet = requires {
  typename T::kernel_set;
  { T::kernel_set::rank } -> std::convertible_to<int>;
};
template <class T>
concept Target = HasBackend<T> && HasPrecision<T> && HasKernelSet<T>;

}  // namespace isotope
