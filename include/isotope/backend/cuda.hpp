#pragma once
/// The cuda backend: GPUs of NVIDIA from compute capability 8.0 on. Programs link nothing of CUDA: the driver's library is opened at run time, so they also
/// start on machines without it.
#include <string_view>
#include <vector>

#include "../core/device.hpp"
#include "cuda/device.hpp"
#include "kernel_list.hpp"

#include <isotope/kernels/cuda/all.hpp>

namespace isotope::backend {

struct cuda {
  static constexpr std::string_view name = "cuda";
  static constexpr int preference = 2;
  using default_precision = precision::bf16;
  static constexpr std::int64_t tensor_bytes = 0;  // no limit: kernels index with 64 bits
  /// Logits are padded to rows of a multiple of this many elements. Rows of 50257 elements start at odd addresses, which copies of 16 bytes and tensor maps
  /// cannot use.
  static constexpr std::int64_t row_multiple = 64;
  static constexpr std::int64_t chunk_bytes = 0;  // no limit on one allocation but the device's memory
  static constexpr std::int64_t reuse_delay = 4;  // nodes: those of a graph run concurrently
  /// Bytes of temporaries, which an L2 cache holds. With more, launches are long, and GPT-2 at B=32 took 1 % longer with the delay.
  static constexpr std::int64_t reuse_delay_limit = 32 << 20;
  /// The planner's reason where an op has no native kernel. A native kernel that falls back on some device gives its own reason when it is recorded.
  static constexpr std::string_view native_reason = "needs no tensor cores: portable is the fastest there is";
  /// The kernels of precisions that accumulate in f32.
  template <class... P> using kernels_of = every_library_kernel<isotope::cuda::kernel, P...>;
  using options = isotope::cuda::options;
  using kernels = kernels_of<precision::f32, precision::bf16>;
  template <class T> using device = isotope::cuda::device<T>;
  /// Every device that the driver finds; empty without a driver.
  static std::vector<device_info> devices() {
    std::vector<device_info> all;
    auto d = isotope::cuda::driver::open({});
    if (!d) return all;
    for (const auto& p : isotope::cuda::devices_of(**d, isotope::cuda::fatbins::needs))
      all.push_back(isotope::cuda::describe(p, int(all.size()), (*d)->version()));
    return all;
  }
  /// Every file of device code that the program links.
  static std::vector<code_variant> variants() {
    std::vector<code_variant> all;
#if defined(ISOTOPE_COMPILED_FATBINS)
    for (const auto* f : isotope::cuda::device_code_files())
      all.push_back({f->name, f->source, f->architectures, {}, f->missing, f->bytes.size()});
#endif
    return all;
  }
};
static_assert(Backend<cuda>);

}  // namespace isotope::backend

#include "cuda/compiled.hpp"  // names the standard targets, so it comes last
