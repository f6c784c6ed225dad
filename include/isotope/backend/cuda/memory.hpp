#pragma once
/// Memory that kernels and, for some uses, the host can access.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "../queue/memory_use.hpp"
#include "context.hpp"

namespace isotope::cuda {

/// Device memory. For `upload` it has a page-locked copy on the host, which a node at the start of each graph copies to the device; `readback` memory is
/// page-locked host memory only, which a node at the end of the graph copies to and kernels can reach, too, over the bus. It is not freed if the device hangs:
/// that would wait for kernels that use it.
class memory {
 public:
  memory() = default;
  memory(memory&& o) noexcept { swap(o); }
  memory& operator=(memory&& o) noexcept {
    swap(o);
    return *this;
  }
  ~memory() {
    if (context_ == nullptr || context_->hung()) return;
    const auto here = context_->current();
    if (device_ != 0) context_->f()->free(device_);
    if (host_ != nullptr) context_->f()->free_host(host_);
  }

  /// Memory without defined contents, except that its host part is zeroed. @error out_of_memory with the bytes asked for and those that are free
  static result<memory> allocate(std::shared_ptr<context> c, std::int64_t bytes, memory_use use, const std::string& label) {
    memory m;
    m.context_ = std::move(c);
    m.bytes_ = std::max<std::int64_t>(bytes, 256);
    context& on = *m.context_;
    const auto here = on.current();
    if (use != memory_use::readback) {
      const std::string what = label + " of " + std::to_string(m.bytes_) + " bytes";
      // A device that shares the host's memory gives more than is free, since the system drops files that it has read.
      const bool own_memory = on.physical().kind == device_kind::discrete;
      if (const auto free = on.free_bytes(); own_memory && m.bytes_ > free)
        return fail(errc::out_of_memory,
                    std::to_string(m.bytes_) + " bytes were asked for, " + std::to_string(free) + " are free: " + label, on.physical().name,
                    "use a smaller batch or model, recompute blocks, or another device");
      if (const auto s = on.f()->allocate(&m.device_, std::size_t(m.bytes_)); s != status::success) {
        m.device_ = 0;
        return on.failed(s, what + " (" + std::to_string(on.free_bytes()) + " are free)");
      }
      ++on.counters.allocations;
    }
    if (use != memory_use::device) {
      constexpr unsigned portable_and_mapped = 3;
      void* p = nullptr;
      if (const auto s = on.f()->allocate_host(&p, std::size_t(m.bytes_), portable_and_mapped); s != status::success)
        return on.failed(s, label + ": page-locked host memory of " + std::to_string(m.bytes_) + " bytes");
      m.host_ = static_cast<std::byte*>(p);
      std::memset(m.host_, 0, std::size_t(m.bytes_));
      ++on.counters.allocations;
    }
    return m;
  }

  /// The address that kernels use. With unified addressing, kernels reach page-locked host memory at its host address.
  std::uint64_t address() const { return device_ != 0 ? device_ : reinterpret_cast<std::uint64_t>(host_); }
  std::int64_t bytes() const { return bytes_; }
  std::byte* mapped() const { return host_; }
  /// Whether the host part is a copy of the device's, which has to be copied.
  bool mirrored() const { return device_ != 0 && host_ != nullptr; }

 private:
  std::shared_ptr<context> context_;
  device_address device_ = 0;
  std::byte* host_ = nullptr;
  std::int64_t bytes_ = 0;

  void swap(memory& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(device_, o.device_);
    std::swap(host_, o.host_);
    std::swap(bytes_, o.bytes_);
  }
};

}  // namespace isotope::cuda
