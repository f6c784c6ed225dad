#pragma once
/// The arguments of a CUDA kernel on the host, and the dispatches that it records. Nothing here uses a device, so dispatches can be recorded and checked
/// anywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/mesh.hpp"
#include "../../core/op_info.hpp"
#include "../../core/step.hpp"
#include "../../core/target.hpp"
#include "../../plan/report/launch_row.hpp"
#include "../queue/hazards.hpp"
#include "../queue/known_choices.hpp"
#include "limits.hpp"

#include <isotope/kernels/cuda/device/axes.h>
#include <isotope/kernels/cuda/device/scalars.h>

namespace isotope::cuda {

/// One file of device code: a fatbin with machine code for some architectures, or PTX text that was made at run time. `source`: its file below
/// kernels/cuda/; `architectures`: for example "90a,80,compute_80"; `missing`: the architecture that the file needs and the build lacks.
struct device_code {
  std::string_view name, source;
  std::string_view bytes;
  std::string_view architectures{}, missing{};
  bool there() const { return !bytes.empty(); }
};
/// Every file of device code of the library, ordered by source. For programs that link it: there ISOTOPE_COMPILED_FATBINS is defined.
std::span<const device_code* const> device_code_files();

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

/// The blocks of a dispatch. If threads do not cooperate, the block size is free.
struct grid {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint32_t threads = 1;
  std::uint32_t cluster = 1;      // blocks of a cluster, along x
  bool together = false;          // blocks wait for each other, so all of them run at the same time
  std::int64_t items = 0;         // threads that have work, where the block size is free; 0: the algorithm fixes it
  std::int64_t shared_bytes = 0;  // dynamic shared memory of a block
};
/// Threads for n independent items, `usual` in a block: for kernels that use only item() and exchange nothing between threads.
inline grid per_item(std::int64_t n, std::uint32_t usual = 256) {
  grid g;
  g.x = std::uint32_t(std::max<std::int64_t>((n + usual - 1) / usual, 1));
  g.threads = usual;
  g.items = std::max<std::int64_t>(n, 1);
  return g;
}
/// n blocks of `threads`, which cooperate.
inline grid per_block(std::int64_t n, std::uint32_t threads, std::int64_t shared_bytes = 0) {
  grid g;
  g.x = std::uint32_t(std::max<std::int64_t>(n, 1));
  g.threads = threads;
  g.shared_bytes = shared_bytes;
  return g;
}

/// A tensor that the tensor memory accelerator reads or writes by boxes (PTX ISA, tensor maps). Its descriptor of 128 bytes lies in the arguments and is encoded
/// by the driver when the graph is made. Axes are innermost first; the innermost one is contiguous, so `strides` starts with axis 1.
struct tensor_map {
  std::uint32_t argument_offset = 0;  // of the descriptor, a multiple of 64
  std::uint64_t address = 0;
  dtype type = dtype::bf16;
  int rank = 2;
  std::array<std::uint64_t, 5> dims{}, strides_bytes{};  // strides_bytes[k] is that of axis k + 1
  std::array<std::uint32_t, 5> box{};
  std::uint8_t swizzle_bytes = 128;  // 0, 32, 64 or 128
};
/// A copy between host and device memory, which is a node of the graph like a kernel.
struct host_copy {
  std::byte* host = nullptr;  // page-locked; null: the dispatch is a kernel
  std::uint64_t device = 0;
  std::int64_t bytes = 0;
  bool to_device = true;
};

/// A matrix product that cuBLASLt computes: d (m, n) = alpha a (m, k) b (k, n) + beta c, for each of a number of batches. One of the two strides of every matrix
/// is 1. Strides count elements.
struct library_product {
  struct matrix {
    std::uint64_t at = 0;
    dtype type = dtype::bf16;
    std::int64_t row_stride = 0, column_stride = 1, batch_stride = 0;
  };
  std::int64_t m = 0, n = 0, k = 0, batches = 0;  // 0 batches: the dispatch is something else
  matrix a, b, c, d;                              // c and d have rows with a column stride of 1; c is not read if beta is 0
  float alpha = 1, beta = 0;
  std::uint64_t workspace = 0;
  std::int64_t workspace_bytes = 0;
};

/// Numbers that the ranks of a group exchange through a library (stream_communicator.hpp). A rank's piece of `whole` has `count` elements.
///
/// all_reduce: whole = the sum of every rank's whole, which is one piece. all_gather: whole = part of rank 0, part of rank 1, ...
/// reduce_scatter: own piece of whole = the sum of every rank's piece of that number; the other pieces hold anything then.
struct library_collective {
  enum class kind : std::uint8_t {
    none,
    all_reduce,
    all_gather,
    reduce_scatter
  } what = kind::none;  // none: the dispatch is something else
  rank_group group{};
  dtype type = dtype::f32;
  std::int64_t count = 0;
  std::uint64_t whole = 0;  // device addresses
  std::uint64_t part = 0;   // of all_gather; 0: it is the own piece of whole
};

/// Offsets of addresses in a kernel's arguments with which it reaches the host's memory itself, so that a run needs no copies (direct_launches.hpp).
struct host_words {
  std::vector<std::uint32_t> inputs{};  // of inputs that it reads few times
  std::int32_t output = -1;             // where it writes its output, too; the address there is 0 otherwise
};

/// One node of a graph: a kernel launch, a product of cuBLASLt, an exchange between ranks, or a copy. Edges are derived from `reads` and `writes`, so a range that is left out is a race.
struct dispatch {
  static constexpr std::size_t argument_limit = 4096;  // bytes of parameters that every device takes
  const device_code* code = nullptr;
  std::string_view function;         // of the code; it takes one struct
  std::vector<std::byte> arguments;  // that struct
  std::vector<tensor_map> maps;      // descriptors to be encoded into it
  host_copy copy;
  library_product product;
  library_collective collective;
  grid count;
  std::uint32_t default_threads = 0;  // the block size that the kernel chose; count.threads is the one that is used
  std::vector<range> reads, writes;
  /// The kernel may start before those that it waits for have ended: it calls wait_for_dependencies of device/early.cuh before it reads or writes anything but
  /// the ranges `early`, which it reads before.
  bool starts_early = false;
  std::vector<range> early;
  host_words host{};
  std::string_view set;                          // the kernel set that runs
  std::string_view reason{};                     // why a faster set does not run; empty: there is none
  std::vector<considered_variant> considered{};  // the variants among which it was chosen
  std::string choice{};                          // the signature of that choice; empty: it is not remembered
  std::string_view matrices{};                   // formats that tensor cores take; empty: they are not used
  std::int32_t step = -1;                        // index of the plan's step
  std::int32_t joined = -1;                      // another step that it does, too; -1: none
  std::vector<std::int32_t> also{};              // further ones

  /// The block sizes that a sweep over `swept` tries: the kernel's own choice and what `swept` becomes here, ascending, without duplicates.
  std::vector<std::int32_t> launch_sizes(std::span<const std::int32_t> swept) const {
    std::vector<std::int32_t> all{std::int32_t(default_threads)};
    if (count.items != 0) all.insert(all.end(), swept.begin(), swept.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
};

/// Whether a dispatch is an exchange between ranks.
inline bool exchanges(const dispatch& d) { return d.collective.what != library_collective::kind::none; }

/// The block sizes that a sweep tries beside the kernels' own choices.
inline std::vector<std::int32_t> swept_sizes(const device_limits& d) { return {1, 64, d.threads}; }
/// Dispatches as rows of a report; `swept` are the block sizes of a sweep.
inline std::vector<launch_row> launch_rows(std::span<const dispatch> all, std::span<const std::int32_t> swept = {}) {
  std::vector<launch_row> rows;
  for (const dispatch& d : all)
    rows.push_back({.step = d.step,
                    .joined = d.joined,
                    .also = d.also,
                    .set = d.set,
                    .reason = d.reason,
                    .considered = d.considered,
                    .code = d.function,
                    .groups = {d.count.x, d.count.y, d.count.z},
                    .invocations = d.count.threads,
                    .subgroup = 0,
                    .bytes = bytes_of(d),
                    .matrices = d.matrices,
                    .launch_sizes = d.launch_sizes(swept)});
  return rows;
}

/// Keeps bytes that the host computes once and kernels read: tables of cosines, twiddle factors.
class constant_store {
 public:
  virtual ~constant_store() = default;
  /// Copies `bytes` to the device and returns the address; equal bytes may share one copy.
  virtual std::uint64_t keep(std::span<const std::byte> bytes) = 0;
};
/// Keeps device code that is generated at run time, for fused bodies. Equal text gives the same code.
class code_store {
 public:
  virtual ~code_store() = default;
  virtual const device_code* keep(std::string_view name, std::string ptx) = 0;
};

struct launch;

/// Collects the dispatches of a plan.
class recording {
 public:
  recording(constant_store& constants, code_store& code) : constants_(constants), code_(code) {}

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

  /// Adds a launch of a function with one argument, a struct that device code declares, too.
  template <class Arguments>
  dispatch& add(const device_code& code, std::string_view function, const Arguments& arguments, const grid& count, std::vector<range> reads,
                std::vector<range> writes) {
    static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= dispatch::argument_limit, "parameters hold 4,096 bytes");
    dispatch d;
    d.code = &code;
    d.function = function;
    d.arguments.resize(sizeof arguments);
    std::memcpy(d.arguments.data(), &arguments, sizeof arguments);
    d.count = count;
    d.default_threads = count.threads;
    if (launch_size > 0 && count.items != 0) d.count = per_item(count.items, std::uint32_t(launch_size));
    return added(std::move(d), std::move(reads), std::move(writes));
  }

  /// Adds a product of cuBLASLt.
  dispatch& add(const library_product& p, std::vector<range> reads, std::vector<range> writes) {
    dispatch d;
    d.product = p;
    d.function = "cublasLtMatmul";
    d.matrices = p.a.type == dtype::bf16 ? "bf16xbf16->f32" : p.a.type == dtype::f16 ? "f16xf16->f32" : "";
    return added(std::move(d), std::move(reads), std::move(writes));
  }

  /// Adds an exchange between the ranks of a group.
  dispatch& add(const library_collective& c, std::vector<range> reads, std::vector<range> writes) {
    dispatch d;
    d.collective = c;
    using kind = library_collective::kind;
    d.function = c.what == kind::all_reduce ? "all_reduce" : c.what == kind::all_gather ? "all_gather" : "reduce_scatter";
    return added(std::move(d), std::move(reads), std::move(writes));
  }

  template <class E> std::uint64_t keep(std::span<const E> table) { return constants_.keep(std::as_bytes(table)); }
  const device_code* keep_code(std::string_view name, std::string ptx) { return code_.keep(name, std::move(ptx)); }

  std::vector<dispatch> dispatches;
  std::string_view set, reason;  // of the dispatches that are added next
  std::int32_t step = -1;
  std::int32_t launch_size = -1;  // threads per block where a kernel allows any number; -1: the kernel's own choice

 private:
  step_choices choices_;
  const op_info* op_ = nullptr;
  const launch* launch_ = nullptr;
  constant_store& constants_;
  code_store& code_;

  dispatch& added(dispatch d, std::vector<range> reads, std::vector<range> writes) {
    d.reads = std::move(reads);
    d.writes = std::move(writes);
    d.set = set;
    d.reason = reason;
    d.considered = choices_.considered();
    d.choice = choices_.signature();
    d.step = step;
    dispatches.push_back(std::move(d));
    return dispatches.back();
  }
};

namespace ptx {
struct number;
/// The formula of an element-wise op that interpreters do not know: its result from up to three operands and its constant, like those in
/// formulas.glsl.
struct custom_instruction {
  const op_info* op = nullptr;
  number (*result)(const number& a, const number& b, const number& c, const number& k) = nullptr;
};
}  // namespace ptx

/// The base class of the kernel of an element-wise op that only generated bodies contain: one from outside the library, or one of it that
/// is not in instruction_ops. The kernel has
/// `static constexpr ptx::number formula(const ptx::number& a, const ptx::number& b, const ptx::number& c, const ptx::number& k)`:
/// the result from up to three operands and the op's constant, in the arithmetic of ptx/numbers.hpp and emitted_formulas.hpp.
struct emitted_instruction {
  /// The op cannot be fused into a matmul epilogue: matmul kernels interpret epilogues and do not know the op.
  static constexpr bool outside_epilogues = true;
};

/// The arguments of a kernel that do not depend on the device's language.
struct launch {
  std::span<const view> in, out;
  const attributes* attr = nullptr;
  std::span<const micro_op> body;  // operands of elementwise steps have the output's dims, with stride 0 along broadcast axes
  std::uint64_t scratch = 0;       // device address
  std::int64_t scratch_bytes = 0;
  std::uint64_t scalars = 0;          // device address of gpu::scalars
  std::uint32_t ordinal = 0;          // which random stream an op draws from
  std::uint8_t accumulate = 0;        // bit k: add to output k in the phase that runs
  int summed = -1;                    // the output whose column sums are asked for (kernel_info::column_sums); -1: none are
  const view* column_sums = nullptr;  // where they go; `out` is without them
  const device_limits* device = nullptr;
  std::span<const ptx::custom_instruction> custom;  // formulas of ops that interpreters do not know, which bodies may contain

  /// The attributes of the launch as the constants of Op.
  template <class Op> auto constants() const { return Op::constants::of(*attr); }
};

/// Tensors in the form of device code.
inline gpu::axes axes_of(const shape& s, const extents& strides) {
  gpu::axes a{};
  a.rank = s.rank;
  for (int k = 0; k < max_rank; ++k) {
    a.dims[k] = k < s.rank ? s[k] : 1;
    a.strides[k] = k < s.rank ? strides[std::size_t(k)] : 0;
  }
  return a;
}
inline gpu::axes axes_of(const view& v) { return axes_of(v.dims, v.strides); }
inline gpu::tensor tensor_of(const view& v) { return {v.at, std::int32_t(v.type), axes_of(v)}; }

static_assert(sizeof(step_scalars) == 136 && sizeof(gpu::scalars) == 160);
inline range scalars_of(const launch& l) { return {l.scalars, std::int64_t(sizeof(gpu::scalars))}; }
/// The scalars of a step as kernels read them.
inline gpu::scalars scalars_of(const step_scalars& x, std::int64_t optimizer_step) {
  gpu::scalars s{};
  std::memcpy(&s, &x, sizeof x);
  s.optimizer_step = optimizer_step;
  s.beta1 = float(x.beta1);
  s.beta2 = float(x.beta2);
  s.rest1 = float(1 - x.beta1);
  s.rest2 = float(1 - x.beta2);
  s.correction1 = float(1 - std::pow(x.beta1, double(optimizer_step)));
  s.correction2 = float(1 - std::pow(x.beta2, double(optimizer_step)));
  return s;
}

inline kernel_choices* recording::considered() {
  return choices_.next([this] { return op_ == nullptr ? std::string() : signature_of(*op_, set, *launch_); });
}

/// The kernel of Op in precision P of a kernel set: `static void record(const launch&, recording&)` adds its dispatches. A kernel without `record` declares
/// that fused bodies may contain the op. Optional: `inplace`, `epilogue`, constexpr `scratch(const step_shapes&)` and `column_sums` as in kernel_info. If a
/// native kernel may fall back at run time, its `scratch` must be enough for the kernel that it falls back to, and column sums are recorded then, too.
template <class Op, class P, class Set> struct kernel;

/// Sets the kernel set and the reason of the dispatches that are recorded next. A kernel that falls back calls it with the name of the other set.
inline void enter_set(recording& r, std::string_view set, std::string_view why = {}) {
  r.set = set;
  r.reason = why;
}

}  // namespace isotope::cuda
