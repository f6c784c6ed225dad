#pragma once
/// The constant pool: words that the host computes once and shaders read, in mapped memory.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "launch.hpp"
#include "memory.hpp"

namespace isotope::vulkan {

class constant_pool : public constant_store {
 public:
  static constexpr std::int64_t chunk = 256 << 10;  // bytes of one allocation, at least

  explicit constant_pool(std::shared_ptr<context> c) : context_(std::move(c)) {}

  std::uint64_t keep(std::span<const std::uint32_t> words) override {
    std::vector<std::uint32_t> copy(words.begin(), words.end());
    if (const auto at = known_.find(copy); at != known_.end()) return at->second;
    const auto bytes = std::int64_t((words.size_bytes() + 63) / 64 * 64);
    if (chunks_.empty() || used_ + bytes > chunks_.back().bytes()) {
      auto m = memory::allocate(context_, std::max({bytes, chunk, next_}), memory_use::upload, "isotope constants");
      if (!m) {
        if (error_.what.empty()) error_ = m.error();
        return 0;
      }
      chunks_.push_back(std::move(*m));
      used_ = next_ = 0;
    }
    const auto& m = chunks_.back();
    if (!words.empty()) std::memcpy(m.mapped() + used_, words.data(), words.size_bytes());
    const std::uint64_t at = m.address() + std::uint64_t(used_);
    used_ += bytes;
    known_.emplace(std::move(copy), at);
    return at;
  }
  /// Forgets all words, whose addresses no work on the device may use any more. One chunk stays, or the next is as large as all were together: what
  /// is kept between two calls fits where as much was kept before.
  void clear() {
    known_.clear();
    used_ = 0;
    if (chunks_.size() < 2) return;
    next_ = bytes();
    chunks_.clear();
  }
  /// The first allocation that failed; `what` is empty where none did.
  const failure& error() const { return error_; }
  std::int64_t bytes() const {
    std::int64_t n = 0;
    for (const auto& c : chunks_) n += c.bytes();
    return n;
  }

 private:
  std::shared_ptr<context> context_;
  std::vector<memory> chunks_;
  std::map<std::vector<std::uint32_t>, std::uint64_t> known_;
  std::int64_t used_ = 0, next_ = 0;  // bytes of the last chunk; at least so many has the next one
  failure error_;
};

}  // namespace isotope::vulkan
