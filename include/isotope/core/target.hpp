#pragma once
/// A target is a backend, a precision and a kernel set; kernel tables say what a backend can run.
#include <boost/mp11/list.hpp>
#include <cstdint>
#include <span>
#include <string_view>

#include "trace.hpp"

namespace isotope {

namespace kernels {
struct reference {  // plain loops, the oracle
  static constexpr std::string_view name = "reference";
  static constexpr int rank = 0;
};
struct portable {  // no special hardware
  static constexpr std::string_view name = "portable";
  static constexpr int rank = 1;
};
struct native {  // what the hardware has
  static constexpr std::string_view name = "native";
  static constexpr int rank = 2;
};
}  // namespace kernels

/// The shapes of one step, for a kernel's scratch bound.
struct step_shapes {
  std::span<const shape> in, out;
  const attributes* attr = nullptr;

  /// The constants of Op, whose attributes these are.
  template <class Op> constexpr auto constants() const { return Op::constants::of(*attr); }
};

/// One kernel as the planner sees it. Tables list the wanted kernel set first, then the sets below it: the first match runs.
struct kernel_info {
  const op_info* op = nullptr;
  dtype precision = dtype::f32;
  std::string_view set;                                   // reference, portable, native
  std::uint32_t inplace = 0;                              // bit k: output 0 may take the bytes of input k when it dies there
  bool epilogue = false;                                  // takes a fused body on its gemm
  bool outside_epilogues = false;                         // an instruction that no gemm's epilogue takes
  std::int64_t (*scratch)(const step_shapes&) = nullptr;  // bytes of workspace, a bound for every device
  std::int64_t (*packed)(const step_shapes&) =
      nullptr;                // a gemm's: elements of the packed right operand that it would rather read; 0: none
  bool packs = false;         // an update's: keeps packed weights
  bool takes_addend = false;  // a gradient's: may have a last operand, which is added to its first result once that is rounded
};

/// What a program is compiled for. `Extra` kernels, of ops defined outside the library, are found first.
template <class B, class P, class K = kernels::native, class Extra = boost::mp11::mp_list<>> struct target {
  using backend = B;
  using precision = P;
  using kernel_set = K;
  using extra_kernels = Extra;
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
concept HasChunks = requires {
  { B::chunk_bytes } -> std::convertible_to<std::int64_t>;
};
template <class B>
concept HasKernels = requires { typename B::kernels; };
template <class B>
concept HasDevice = requires { typename B::template device<target<B, precision::f32, kernels::reference>>; };
/// Where programs run. `preference` ranks backends (higher wins), `chunk_bytes` is the largest allocation (0: no limit),
/// `kernels` the mp_list of its kernels, `device<Target>` opens and loads.
template <class B>
concept Backend = HasBackendName<B> && HasPreference<B> && HasChunks<B> && HasKernels<B> && HasDevice<B>;

template <class T>
concept HasBackend = requires {
  typename T::backend;
  requires HasBackendName<typename T::backend> && HasKernels<typename T::backend>;  // not Backend: its devices are named for targets
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

/// The length that a backend's kernels like the rows of matrices to be a multiple of, in elements; 1: any.
template <Target T> constexpr std::int64_t row_multiple() {
  if constexpr (requires { T::backend::row_multiple; }) return T::backend::row_multiple;
  else return 1;
}

}  // namespace isotope
