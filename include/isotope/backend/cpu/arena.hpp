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
  static constexpr std::size_t huge_page = std::size_t(2) << 20;  // of x86-64, and of ARM with pages of 4 KiB

  arena() = default;
  arena(arena&& o) noexcept : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  arena& operator=(arena&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~arena() {
    if (data_ != nullptr) munmap(data_, mapped_bytes(bytes_));
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
    a.data_ = map(mapped_bytes(a.bytes_));
    if (a.data_ == nullptr) {
      a.bytes_ = 0;
      return fail(errc::out_of_memory, "the system refused an arena of " + std::to_string(bytes) + " bytes", "cpu",
                  "use a smaller batch or model, or recompute blocks");
    }
    return a;
  }
  std::byte* mapped() const { return data_; }
  std::uint64_t address() const { return std::uint64_t(reinterpret_cast<std::uintptr_t>(data_)); }
  std::int64_t bytes() const { return bytes_; }

 private:
  /// Whole huge pages for all but small arenas: how fast a product is depends on which of its rows share a place of a cache, which follows from addresses in a huge page, while small pages lie
  /// anywhere: the same product took up to 1.1 times as long in one arena as in another, and a variant that was the fastest in one was not in the next.
  static std::size_t mapped_bytes(std::int64_t bytes) {
    return std::size_t(bytes) < huge_page / 4 ? std::size_t(bytes) : (std::size_t(bytes) + huge_page - 1) / huge_page * huge_page;
  }
  /// Zeroed pages; huge ones begin at a multiple of their size. Null: the system refuses.
  static std::byte* map(std::size_t bytes) {
    const std::size_t more = bytes % huge_page == 0 ? huge_page : 0;
    void* p = mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    auto* const mapped = static_cast<std::byte*>(p);
    if (more == 0) return mapped;
    const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(p) % huge_page) % huge_page;
    if (before > 0) munmap(mapped, before);
    if (more > before) munmap(mapped + before + bytes, more - before);
    madvise(mapped + before, bytes, MADV_HUGEPAGE);  // optional: where it is refused, pages are small
    return mapped + before;
  }

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace isotope::cpu
