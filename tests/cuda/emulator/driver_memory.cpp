// Memory of the emulated driver. Device memory is host memory between red zones and pages without access; its first contents are bytes 0xff.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver_state.hpp"

namespace isotope_emulated {

using isotope::cuda::context_handle;
using isotope::cuda::device_address;
using isotope::cuda::device_handle;
using isotope::cuda::stream_handle;

namespace {

constexpr std::size_t zone = 4096;
constexpr std::byte zone_byte{0xa5}, fresh_byte{0xff};

std::size_t page() { return std::size_t(sysconf(_SC_PAGESIZE)); }
bool intact(const std::byte* from, const std::byte* to) {
  return std::all_of(from, to, [](std::byte b) { return b == zone_byte; });
}
const std::byte* usable_end(const device_memory& m) { return m.first + m.mapped - page(); }

status allocate(device_address* at, std::size_t bytes) {
  return enter("cuMemAlloc", [&](driver_state& s) {
    if (at == nullptr || bytes == 0) return status::invalid_value;
    const int device = current()->device;
    if (s.used(device) + bytes > s.devices[std::size_t(device)].memory) return status::out_of_memory;
    device_memory m;
    const std::size_t padded = (zone + bytes + zone + page() - 1) / page() * page();
    m.mapped = padded + 2 * page();
    void* const p = mmap(nullptr, m.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return status::out_of_memory;
    m.first = static_cast<std::byte*>(p);
    mprotect(m.first + page(), padded, PROT_READ | PROT_WRITE);
    m.data = m.first + page() + zone;
    m.bytes = bytes;
    m.device = device;
    std::memset(m.data - zone, int(zone_byte), zone);
    std::memset(m.data, int(fresh_byte), bytes);
    std::memset(m.data + bytes, int(zone_byte), std::size_t(usable_end(m) - (m.data + bytes)));
    *at = reinterpret_cast<std::uintptr_t>(m.data);
    s.memory.emplace(*at, m);
    return status::success;
  });
}
status release(device_address at) {
  return enter("cuMemFree", [&](driver_state& s) {
    if (at == 0) return status::success;
    const auto found = s.memory.find(at);
    if (found == s.memory.end()) return status::invalid_value;
    waits("cuMemFree");
    run_everything();  // freeing waits for the work that may use the memory
    check_red_zones("cuMemFree");
    munmap(found->second.first, found->second.mapped);
    s.memory.erase(found);
    return status::success;
  });
}
status allocate_host(void** at, std::size_t bytes, unsigned) {
  return enter("cuMemHostAlloc", [&](driver_state& s) {
    if (at == nullptr || bytes == 0) return status::invalid_value;
    *at = std::aligned_alloc(page(), (bytes + page() - 1) / page() * page());
    if (*at == nullptr) return status::out_of_memory;
    std::memset(*at, int(fresh_byte), bytes);
    s.host_memory.emplace(reinterpret_cast<std::uintptr_t>(*at), bytes);
    return status::success;
  });
}
status release_host(void* at) {
  return enter("cuMemFreeHost", [&](driver_state& s) {
    if (at == nullptr) return status::success;
    if (s.host_memory.erase(reinterpret_cast<std::uintptr_t>(at)) == 0) return status::invalid_value;
    waits("cuMemFreeHost");
    run_everything();
    std::free(at);
    return status::success;
  });
}
status memory_info(std::size_t* free, std::size_t* total) {
  return enter("cuMemGetInfo", [&](driver_state& s) {
    const int device = current()->device;
    *total = s.devices[std::size_t(device)].memory;
    *free = *total - std::min(*total, s.used(device));
    if (s.devices[std::size_t(device)].integrated) *free /= 4;  // the rest holds files, which the system drops when memory is needed
    return status::success;
  });
}

/// Kernels run one after the other, so those of two devices could not wait for each other.
status can_access_peer(int* can, device_handle, device_handle) {
  return enter_plain("cuDeviceCanAccessPeer", [&](driver_state&) {
    *can = 0;
    return status::success;
  });
}
status enable_peer_access(context_handle, unsigned) {
  return enter("cuCtxEnablePeerAccess", [](driver_state&) { return not_supported; });
}

status copy_to_device(device_address to, const void* from, std::size_t bytes, stream_handle stream) {
  return enter("cuMemcpyHtoDAsync", [&](driver_state&) {
    if (!on_device(to, bytes) && !page_locked(reinterpret_cast<const void*>(to), bytes)) return status::invalid_value;
    auto* const target = reinterpret_cast<std::byte*>(to);
    if (page_locked(from, bytes)) {
      return submit(stream, [=] {
        std::memcpy(target, from, bytes);
        return status::success;
      });
    }
    const auto* const first = static_cast<const std::byte*>(from);  // from pageable memory the driver takes the bytes before it returns
    return submit(stream, [target, copy = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(target, copy.data(), copy.size());
      return status::success;
    });
  });
}
status copy_to_host(void* to, device_address from, std::size_t bytes, stream_handle stream) {
  return enter("cuMemcpyDtoHAsync", [&](driver_state&) {
    if (!on_device(from, bytes) && !page_locked(reinterpret_cast<const void*>(from), bytes)) return status::invalid_value;
    return submit(stream, [=] {
      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
      return status::success;
    });
  });
}
status copy_on_device(device_address to, device_address from, std::size_t bytes, stream_handle stream) {
  return enter("cuMemcpyDtoDAsync", [&](driver_state&) {
    if (!on_device(to, bytes) || !on_device(from, bytes)) return status::invalid_value;
    return submit(stream, [=] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
      return status::success;
    });
  });
}
status fill_words(device_address to, unsigned value, std::size_t words, stream_handle stream) {
  return enter("cuMemsetD32Async", [&](driver_state&) {
    if (to % 4 != 0 || !on_device(to, 4 * words)) return status::invalid_value;
    return submit(stream, [=] {
      std::fill_n(reinterpret_cast<unsigned*>(to), words, value);
      return status::success;
    });
  });
}

}  // namespace

bool on_device(std::uint64_t at, std::size_t bytes) {
  const auto& all = state().memory;
  auto next = all.upper_bound(at);
  if (next == all.begin()) return false;
  const device_memory& m = std::prev(next)->second;
  const auto first = reinterpret_cast<std::uintptr_t>(m.data);
  return at - first <= m.bytes && bytes <= m.bytes - (at - first);
}
bool page_locked(const void* at, std::size_t bytes) {
  const auto& all = state().host_memory;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto next = all.upper_bound(address);
  if (next == all.begin()) return false;
  const auto& [first, size] = *std::prev(next);
  return address - first <= size && bytes <= size - (address - first);
}
void free_all(int device) {
  driver_state& s = state();
  std::erase_if(s.memory, [&](const auto& m) {
    if (m.second.device != device) return false;
    munmap(m.second.first, m.second.mapped);
    return true;
  });
  for (const auto& [at, bytes] : s.host_memory) std::free(reinterpret_cast<void*>(at));
  s.host_memory.clear();
}
void check_red_zones(const std::string& after) {
  for (const auto& [at, m] : state().memory) {
    if (!intact(m.data - zone, m.data))
      misused(after + ": bytes before an allocation of " + std::to_string(m.bytes) + " bytes were written");
    if (!intact(m.data + m.bytes, usable_end(m)))
      misused(after + ": bytes behind an allocation of " + std::to_string(m.bytes) + " bytes were written");
  }
}

std::vector<entry_point> memory_entries() {
  return {
      entry("cuMemAlloc", 3020, allocate),
      entry("cuMemFree", 3020, release),
      entry("cuMemHostAlloc", 2020, allocate_host),
      entry("cuMemFreeHost", 2000, release_host),
      entry("cuMemGetInfo", 3020, memory_info),
      entry("cuDeviceCanAccessPeer", 4000, can_access_peer),
      entry("cuCtxEnablePeerAccess", 4000, enable_peer_access),
      entry("cuMemcpyHtoDAsync", 3020, copy_to_device),
      entry("cuMemcpyDtoHAsync", 3020, copy_to_host),
      entry("cuMemcpyDtoDAsync", 3020, copy_on_device),
      entry("cuMemsetD32Async", 3020, fill_words),
  };
}

}  // namespace isotope_emulated
