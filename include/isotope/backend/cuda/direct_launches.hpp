#pragma once
/// Launches that need no copies, or none of outputs: kernels read inputs where the host has put them, and write results where the host reads them. On an H200 the two copies around a graph take 6 us
/// (bench/CUDA_INFERENCE.md). Kernels reach that memory over the bus, so only those do so that read and write little, and once.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "launch.hpp"

namespace isotope::cuda {

/// How many copies to the device come first, and how many to the host come last.
inline std::size_t copies_in(const std::vector<dispatch>& all) {
  std::size_t n = 0;
  while (n < all.size() && all[n].copy.host != nullptr && all[n].copy.to_device) ++n;
  return n;
}
inline std::size_t copies_out(const std::vector<dispatch>& all) {
  return !all.empty() && all.back().copy.host != nullptr && !all.back().copy.to_device ? 1 : 0;
}

/// Dispatches with the host's addresses in place of the device's. Empty where this is not possible: outputs have more than 64 KB, or a kernel writes them in its own way. Inputs are still
/// copied if a kernel reads them in its own way, or they have more than 16 KB. Memory of the device has the outputs, too, and inputs that are copied.
class direct_launches {
 public:
  std::vector<dispatch> launches;
  bool copies_inputs = false;

  explicit direct_launches(const std::vector<dispatch>& all) : first_(copies_in(all)), last_(all.size() - copies_out(all)), all_(all) {
    if (first_ >= last_ || last_ == all.size() || all.back().copy.bytes > most_output_bytes) return;
    const auto begin = all.begin() + std::ptrdiff_t(first_), end = all.begin() + std::ptrdiff_t(last_);
    std::vector<dispatch> made(begin, end);
    for (dispatch& d : made) copies_inputs = copies_inputs || !redirect_inputs(d);
    if (copies_inputs || bytes_ > most_input_bytes) made.assign(begin, end), copies_inputs = true;
    for (dispatch& d : made)
      if (!redirect_outputs(d)) return;
    if (outputs_ != 1) return;
    launches = std::move(made);
  }

 private:
  static constexpr std::int64_t most_input_bytes = 16 << 10, most_output_bytes = 64 << 10;
  std::size_t first_, last_;
  const std::vector<dispatch>& all_;
  std::int64_t bytes_ = 0;
  int outputs_ = 0;

  static range device_of(const host_copy& c) { return {c.device, c.bytes}; }
  static bool contains(const range& whole, const range& part) { return part.first >= whole.first && part.end <= whole.end; }
  static std::uint64_t host_of(const host_copy& c, std::uint64_t device) {
    return std::uint64_t(reinterpret_cast<std::uintptr_t>(c.host)) + (device - c.device);
  }
  static std::uint64_t word(const dispatch& d, std::uint32_t offset) {
    std::uint64_t x = 0;
    std::memcpy(&x, d.arguments.data() + offset, sizeof x);
    return x;
  }
  static void set(dispatch& d, std::uint32_t offset, std::uint64_t x) { std::memcpy(d.arguments.data() + offset, &x, sizeof x); }

  bool redirect_inputs(dispatch& d) {
    const dispatch before = d;
    for (std::size_t k = 0; k < first_; ++k) {
      const host_copy& c = all_[k].copy;
      for (const range& w : d.writes)
        if (w.overlaps(device_of(c))) return false;
      for (const range& r : d.reads) {
        if (!r.overlaps(device_of(c))) continue;
        bool found = false;
        for (const std::uint32_t offset : d.host.inputs)
          if (word(before, offset) == r.first) set(d, offset, host_of(c, r.first)), found = true;
        if (!found || !contains(device_of(c), r)) return false;
        bytes_ += r.bytes();
      }
    }
    return true;
  }
  bool redirect_outputs(dispatch& d) {
    const host_copy& out = all_.back().copy;
    for (const range& w : d.writes) {
      if (!w.overlaps(device_of(out))) continue;
      if (d.host.output < 0 || !contains(device_of(out), w)) return false;
      set(d, std::uint32_t(d.host.output), host_of(out, w.first));
      ++outputs_;
    }
    return true;
  }
};

}  // namespace isotope::cuda
