#pragma once
/// Host memory for sessions and buffers: zeroed pages, which the system provides when they are first touched.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "../../core/error.hpp"

namespace isotope::cpu {

class arena {
 public:
  arena() = default;
  arena(arena&& o) noexcept : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  arena& operator=(arena&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~arena() {
    if (data_ != nullptr) munmap(data_, std::size_t(bytes_));
  }

  /// Refuses to allocate more than the physical memory: a system that overcommits would kill the process when it touches pages that do not exist.
  /// @error out_of_memory, with the bytes asked for and the bytes of the machine
  static result<arena> allocate(std::int64_t bytes) {
    const std::int64_t machine = std::int64_t(sysconf(_SC_PHYS_PAGES)) * std::int64_t(sysconf(_SC_PAGESIZE));
    if (machine > 0 && bytes > machine)
      return fail(errc::out_of_memory, std::to_string(bytes) + " bytes were asked for, the machine has " + std::to_string(machine), "cpu",
                  "use a smaller batch or model, or recompute blocks");
    arena a;
    a.bytes_ = bytes < 4096 ? 4096 : bytes;
    void* p = mmap(nullptr, std::size_t(a.bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
      a.bytes_ = 0;
      return fail(errc::out_of_memory, "the system refused an arena of " + std::to_string(bytes) + " bytes", "cpu",
                  "use a smaller batch or model, or recompute blocks");
    }
    a.data_ = static_cast<std::byte*>(p);
    madvise(a.data_, std::size_t(a.bytes_), MADV_HUGEPAGE);  // optional: where it is refused, pages are small
    return a;
  }
  std::byte* mapped() const { return data_; }
  std::uint64_t address() const { return std::uint64_t(reinterpret_cast<std::uintptr_t>(data_)); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace isotope::cpu
