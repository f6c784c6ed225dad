#pragma once
/// The constant pool: bytes that the host computes once and kernels read, in device memory.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launch.hpp"
#include "memory.hpp"

namespace isotope::cuda {

class constant_pool : public constant_store {
 public:
  static constexpr std::int64_t chunk = 256 << 10;  // least bytes of one allocation

  explicit constant_pool(std::shared_ptr<context> c) : context_(std::move(c)) {}

  std::uint64_t keep(std::span<const std::byte> given) override {
    std::string copy(reinterpret_cast<const char*>(given.data()), given.size());
    if (const auto at = known_.find(copy); at != known_.end()) return at->second;
    const auto bytes = std::int64_t((given.size() + 255) / 256 * 256);
    if (chunks_.empty() || used_ + bytes > chunks_.back().bytes()) {
      auto m = memory::allocate(context_, std::max({bytes, chunk, next_}), memory_use::device, "isotope constants");
      if (!m) return broken(m.error());
      chunks_.push_back(std::move(*m));
      used_ = next_ = 0;
    }
    const std::uint64_t at = chunks_.back().address() + std::uint64_t(used_);
    // From ordinary host memory the driver copies the bytes before the call returns, so `given` may be released; the stream keeps the order.
    auto value = context_->submitted("copying constants", [&] {
      return given.empty() ? status::success : context_->f()->copy_to_device(at, given.data(), given.size(), context_->stream());
    });
    if (!value) return broken(value.error());
    used_ += bytes;
    known_.emplace(std::move(copy), at);
    return at;
  }
  /// Discards all bytes; work in flight must not use their addresses. If there were several chunks, the next one is as large as all of them together, so
  /// that the same amount then fits into one chunk.
  void clear() {
    known_.clear();
    used_ = 0;
    if (chunks_.size() < 2) return;
    next_ = bytes();
    chunks_.clear();
  }
  /// The first failure of an allocation or a copy; `what` is empty if there was none.
  const failure& error() const { return error_; }
  std::int64_t bytes() const {
    std::int64_t n = 0;
    for (const auto& c : chunks_) n += c.bytes();
    return n;
  }

 private:
  std::shared_ptr<context> context_;
  std::vector<memory> chunks_;
  std::map<std::string, std::uint64_t> known_;
  std::int64_t used_ = 0, next_ = 0;  // bytes used in the last chunk; least bytes of the next chunk
  failure error_;

  std::uint64_t broken(const failure& f) {
    if (error_.what.empty()) error_ = f;
    return 0;
  }
};

}  // namespace isotope::cuda
