#pragma once
/// Copies between host and device memory outside of steps, e.g. of parameters and checkpoints. Two page-locked staging buffers are used in turn, so that the
/// host fills or empties one while the device works on the other. They are allocated when they are first needed, which takes 11 ms.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace isotope::cuda {

class transfer {
 public:
  static constexpr std::int64_t half_bytes = 8 << 20;  // of a staging buffer: copying them takes 150 us over PCIe 5

  transfer() = default;
  explicit transfer(std::shared_ptr<context> c) : context_(std::move(c)) {}

  result<void> upload(const memory& to, std::int64_t at, std::span<const std::byte> from) {
    std::size_t turn = 0;
    for (std::int64_t done = 0; done < std::int64_t(from.size()); turn ^= 1) {
      const std::int64_t n = std::min(half_bytes, std::int64_t(from.size()) - done);
      auto& s = stages_[turn];
      if (auto r = empty(s); !r) return r;
      std::memcpy(s.store.mapped(), from.data() + done, std::size_t(n));
      if (auto r = send(turn, to, at + done, n); !r) return r;
      done += n;
    }
    return finish();
  }
  /// The address of a staging buffer, 0 or 1, when the device has copied what was in it.
  result<std::byte*> staging(std::size_t k) {
    if (auto r = empty(stages_[k]); !r) return r.error();
    return stages_[k].store.mapped();
  }
  /// Starts a copy of the first bytes of a staging buffer to the device.
  result<void> send(std::size_t k, const memory& to, std::int64_t at, std::int64_t bytes) {
    uploaded_ += bytes;
    return run(stages_[k], [&] {
      return context_->f()->copy_to_device(to.address() + std::uint64_t(at), stages_[k].store.mapped(), std::size_t(bytes),
                                           context_->stream());
    });
  }
  /// Waits for all copies from staging buffers.
  result<void> finish() {
    for (auto& s : stages_)
      if (auto r = ready(s); !r) return r;
    return {};
  }
  /// Many small pieces share a staging buffer, and are copied and waited for together.
  result<void> download(const memory& from, std::span<const memory_piece> all) {
    struct staged_copy {
      std::uint64_t from = 0;
      std::int64_t at = 0;
      std::span<std::byte> to;
    };
    std::array<std::vector<staged_copy>, 2> in_flight;
    std::size_t turn = 0;
    std::int64_t used = 0;  // bytes in the current staging buffer
    const auto collect = [&](std::size_t k) -> result<void> {
      if (in_flight[k].empty()) return {};
      if (auto r = ready(stages_[k]); !r) return r;
      for (const auto& c : in_flight[k]) std::memcpy(c.to.data(), stages_[k].store.mapped() + c.at, c.to.size());
      in_flight[k].clear();
      return {};
    };
    const auto send = [&]() -> result<void> {
      if (in_flight[turn].empty()) return {};
      auto& s = stages_[turn];
      if (auto r = empty(s); !r) return r;
      const auto copies = [&] {
        for (const auto& c : in_flight[turn])
          if (const auto r = context_->f()->copy_to_host(s.store.mapped() + c.at, c.from, c.to.size(), context_->stream());
              r != status::success)
            return r;
        return status::success;
      };
      if (auto r = run(s, copies); !r) return r;
      turn ^= 1;
      used = 0;
      return collect(turn);
    };
    for (const memory_piece& p : all)
      for (std::int64_t done = 0, n = 0; done < std::int64_t(p.to.size()); done += n) {
        n = std::min(half_bytes - used, std::int64_t(p.to.size()) - done);
        in_flight[turn].push_back({from.address() + std::uint64_t(p.at + done), used, p.to.subspan(std::size_t(done), std::size_t(n))});
        used += n;
        if (used == half_bytes)
          if (auto r = send(); !r) return r;
      }
    if (auto r = send(); !r) return r;
    return collect(turn ^ 1);
  }
  result<void> download(const memory& from, std::int64_t at, std::span<std::byte> to) {
    const memory_piece one{at, to};
    return download(from, {&one, 1});
  }
  /// Zeroes a number of bytes that is a multiple of four.
  result<void> clear(const memory& what, std::int64_t at, std::int64_t bytes) {
    if (bytes <= 0) return {};
    auto& s = stages_[0];
    if (auto r = ready(s); !r) return r;
    const auto fill = [&] {
      return context_->f()->fill_words(what.address() + std::uint64_t(at), 0, std::size_t(bytes / 4), context_->stream());
    };
    if (auto r = run(s, fill); !r) return r;
    return finish();
  }

  /// Bytes of the staging buffers that are allocated.
  std::int64_t bytes() const { return stages_[0].store.bytes() + stages_[1].store.bytes(); }
  /// How many bytes `upload` has copied to the device so far.
  std::int64_t uploaded() const { return uploaded_; }

 private:
  struct stage {
    memory store;
    std::uint64_t pending = 0;
  };
  std::shared_ptr<context> context_;
  std::array<stage, 2> stages_;
  std::int64_t uploaded_ = 0;

  /// Waits until the device is done with a staging buffer.
  result<void> ready(stage& s) {
    const auto value = std::exchange(s.pending, 0);
    if (value == 0) return {};
    return context_->wait(value);
  }
  /// Waits likewise, and allocates both buffers if none was needed before. @error out_of_memory
  result<void> empty(stage& s) {
    for (stage& each : stages_)
      if (each.store.mapped() == nullptr) {
        auto m = memory::allocate(context_, half_bytes, memory_use::readback, "isotope staging");
        if (!m) return m.error();
        each.store = *std::move(m);
      }
    return ready(s);
  }
  template <class Work> result<void> run(stage& s, const Work& work) {
    auto value = context_->submitted("copying between host and device", work);
    if (!value) return value.error();
    s.pending = *value;
    return {};
  }
};

}  // namespace isotope::cuda
