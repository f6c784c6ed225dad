#pragma once
/// The devices that the CUDA driver finds, with their limits.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../queue/choose_device.hpp"
#include "limits.hpp"
#include "status.hpp"

namespace isotope::cuda {

/// A device as the driver describes it.
struct physical_device {
  device_handle handle = 0;
  std::string name, uuid;
  device_kind kind = device_kind::discrete;
  device_limits limits;
  std::int64_t memory = 0;  // bytes
  std::string missing;      // what the device lacks; empty: it is usable
};

/// The list of architectures that a build has code for, as `device_code::architectures` writes it: 90a is machine code for 9.0 alone, 80 for 8.0 and later
/// minor versions of 8, compute_80 is text that the driver compiles for any later device. Whether one of them runs on a device of this compute capability.
inline bool runs_on(std::string_view architectures, int compute) {
  const auto fits = [compute](std::string_view one) {
    const bool text = one.starts_with("compute_");
    if (text) one.remove_prefix(8);
    const bool exact = !one.empty() && one.back() >= 'a' && one.back() <= 'z';
    int n = 0;
    for (const char c : one)
      if (c >= '0' && c <= '9') n = 10 * n + (c - '0');
    if (exact) return n == compute;
    return text ? n <= compute : n <= compute && n / 10 == compute / 10;
  };
  while (!architectures.empty()) {
    const auto end = std::min(architectures.find(','), architectures.size());
    if (fits(architectures.substr(0, end))) return true;
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
  }
  return false;
}

/// What a build's device code needs: the architectures that it has code for, and the least version of the driver that loads it.
struct code_needs {
  std::string_view architectures;
  int driver_version = driver::api_version;
};

/// All devices of a driver, in its order (the fastest first).
inline std::vector<physical_device> devices_of(const driver& d, const code_needs& needs) {
  std::vector<physical_device> all;
  int n = 0;
  if (d->device_count(&n) != status::success) return all;
  for (int i = 0; i < n; ++i) {
    physical_device p;
    if (d->device_get(&p.handle, i) != status::success) continue;
    std::array<char, 256> name{};
    d->device_name(name.data(), int(name.size()) - 1, p.handle);
    p.name = name.data();
    device_uuid id;
    if (d->device_uuid_of(&id, p.handle) == status::success)
      for (const unsigned char b : id.bytes) p.uuid += {"0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]};
    std::size_t bytes = 0;
    d->device_total_memory(&bytes, p.handle);
    p.memory = std::int64_t(bytes);
    const auto get = [&](device_attribute a) {
      int x = 0;
      d->device_attribute_of(&x, a, p.handle);
      return x;
    };
    device_limits& l = p.limits;
    l.compute = 10 * get(device_attribute::compute_major) + get(device_attribute::compute_minor);
    l.multiprocessors = get(device_attribute::multiprocessors);
    l.threads = get(device_attribute::threads_of_block);
    l.shared_bytes = get(device_attribute::shared_of_block_opt_in);
    l.shared_per_multiprocessor = get(device_attribute::shared_of_multiprocessor);
    l.l2_bytes = get(device_attribute::l2_bytes);
    p.kind = get(device_attribute::integrated) != 0 ? device_kind::integrated : device_kind::discrete;
    constexpr int least_compute = 80;  // bf16 instructions
    if (l.compute < least_compute)
      p.missing = "compute capability 8.0: it has " + std::to_string(l.compute / 10) + "." + std::to_string(l.compute % 10);
    else if (d.version() < needs.driver_version)
      p.missing = "a driver for CUDA " + driver::version_text(needs.driver_version) +
                  ", with whose compiler the kernels were built: it offers " + driver::version_text(d.version());
    else if (!runs_on(needs.architectures, l.compute))
      p.missing = "code in this build: it is of architecture " + std::to_string(l.compute) + ", and the build has " +
                  std::string(needs.architectures) + " (configure with -DCUDA_ARCHS=" + std::to_string(l.compute) + ")";
    all.push_back(std::move(p));
  }
  return all;
}

inline result<std::size_t> choose(const std::vector<physical_device>& all, const std::string& asked) {
  return choose_device(all, asked,
                       {"cuda", "the NVIDIA driver finds no device", "check with nvidia-smi, or build with -DBACKEND=vulkan or cpu"});
}

/// The properties of a device as text.
inline device_info describe(const physical_device& p, int index, int driver_version) {
  device_info d{.name = p.name, .backend = "cuda", .kind = p.kind, .index = index, .units = p.limits.multiprocessors};
  d.driver = "CUDA " + driver::version_text(driver_version);
  if (!p.missing.empty()) d.problem = "lacks " + p.missing;
  const auto add = [&](std::string name, std::string value) { d.facts.push_back({std::move(name), std::move(value)}); };
  const device_limits& l = p.limits;
  add("compute capability", std::to_string(l.compute / 10) + "." + std::to_string(l.compute % 10));
  add("uuid", p.uuid);
  add("memory", std::to_string(p.memory >> 20) + " MiB");
  add("L2 cache", std::to_string(l.l2_bytes >> 10) + " KiB");
  add("blocks", std::to_string(l.threads) + " threads, " + std::to_string(l.shared_bytes) + " bytes shared");
  add("multiprocessors", std::to_string(l.multiprocessors) + ", " + std::to_string(l.shared_per_multiprocessor) + " bytes shared each");
  add("tensor cores", l.tensor_cores() ? (l.hopper() ? "yes, wgmma" : "yes") : "none for bf16");
  return d;
}

}  // namespace isotope::cuda
