#pragma once
/// Copies between host and device memory outside of steps, e.g. of parameters and checkpoints. Two staging buffers are used in turn, so that the host fills
/// or empties one while the device works on the other. They are allocated when they are first needed.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "command_buffers.hpp"

namespace isotope::vulkan {

class transfer {
 public:
  static constexpr std::int64_t half_bytes =
      4 << 20;  // bytes of a staging buffer: copying them takes 80 us over PCIe, submitting the copy 12 us

  transfer() = default;
  static result<transfer> create(const command_pool& pool) {
    transfer t;
    t.context_ = pool.owner();
    for (auto& s : t.stages_) {
      auto b = pool.buffer();
      if (!b) return b.error();
      s.commands = *b;
    }
    return t;
  }

  result<void> upload(const memory& to, std::int64_t at, std::span<const std::byte> from) {
    std::size_t turn = 0;
    for (std::int64_t done = 0; done < std::int64_t(from.size()); turn ^= 1) {
      const std::int64_t n = std::min(half_bytes, std::int64_t(from.size()) - done);
      auto& s = stages_[turn];
      if (auto r = empty(s); !r) return r;
      std::memcpy(s.store.mapped(), from.data() + done, std::size_t(n));
      uploaded_ += n;
      if (auto r = copy(s, s.store.buffer(), 0, to.buffer(), at + done, n); !r) return r;
      done += n;
    }
    return finish();
  }
  /// Many small pieces share a staging buffer, and are copied and waited for together.
  result<void> download(const memory& from, std::span<const memory_piece> all) {
    struct staged_copies {
      std::vector<VkBufferCopy> regions;
      std::vector<std::span<std::byte>> to;  // of each region
    };
    std::array<staged_copies, 2> in_flight;
    std::size_t turn = 0;
    std::int64_t used = 0;  // bytes in the current staging buffer
    const auto collect = [&](std::size_t k) -> result<void> {
      auto& f = in_flight[k];
      if (f.to.empty()) return {};
      if (auto r = ready(stages_[k]); !r) return r;
      for (std::size_t i = 0; i < f.to.size(); ++i)
        std::memcpy(f.to[i].data(), stages_[k].store.mapped() + f.regions[i].dstOffset, f.to[i].size());
      f = {};
      return {};
    };
    const auto send = [&]() -> result<void> {
      const auto& f = in_flight[turn];
      if (f.to.empty()) return {};
      auto& s = stages_[turn];
      if (auto r = empty(s); !r) return r;
      const auto copies = [&](VkCommandBuffer b) {
        context_->f().CmdCopyBuffer(b, from.buffer(), s.store.buffer(), std::uint32_t(f.regions.size()), f.regions.data());
      };
      if (auto r = run(s, copies, false); !r) return r;
      turn ^= 1;
      used = 0;
      return collect(turn);
    };
    for (const memory_piece& p : all)
      for (std::int64_t done = 0, n = 0; done < std::int64_t(p.to.size()); done += n) {
        n = std::min(half_bytes - used, std::int64_t(p.to.size()) - done);
        in_flight[turn].regions.push_back({VkDeviceSize(p.at + done), VkDeviceSize(used), VkDeviceSize(n)});
        in_flight[turn].to.push_back(p.to.subspan(std::size_t(done), std::size_t(n)));
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
    return run(
        s, [&](VkCommandBuffer b) { context_->f().CmdFillBuffer(b, what.buffer(), VkDeviceSize(at), VkDeviceSize(bytes), 0); }, true);
  }

  /// Bytes of the staging buffers that are allocated.
  std::int64_t bytes() const { return stages_[0].store.bytes() + stages_[1].store.bytes(); }
  /// How many bytes `upload` has copied to the device so far.
  std::int64_t uploaded() const { return uploaded_; }

 private:
  struct stage {
    memory store;
    VkCommandBuffer commands = nullptr;
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
  result<void> finish() {
    for (auto& s : stages_)
      if (s.pending != 0)
        if (auto r = ready(s); !r) return r;
    return {};
  }
  result<void> copy(stage& s, VkBuffer from, std::int64_t from_at, VkBuffer to, std::int64_t to_at, std::int64_t n) {
    const VkBufferCopy region{VkDeviceSize(from_at), VkDeviceSize(to_at), VkDeviceSize(n)};
    return run(s, [&](VkCommandBuffer b) { context_->f().CmdCopyBuffer(b, from, to, 1, &region); }, false);
  }
  template <class Commands> result<void> run(stage& s, Commands commands, bool wait) {
    const auto& f = context_->f();
    constexpr auto any = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT;
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
                                         nullptr};
    if (const auto r = f.BeginCommandBuffer(s.commands, &begin); r != VK_SUCCESS) return failed(r, "recording a copy");
    barrier(*context_, s.commands, working_stages, any, working_stages, any);
    commands(s.commands);
    barrier(*context_, s.commands, working_stages, any, working_stages | VK_PIPELINE_STAGE_2_HOST_BIT, any | VK_ACCESS_2_HOST_READ_BIT);
    if (const auto r = f.EndCommandBuffer(s.commands); r != VK_SUCCESS) return failed(r, "recording a copy");
    auto value = context_->submit(s.commands);
    if (!value) return value.error();
    s.pending = *value;
    return wait ? finish() : result<void>{};
  }
};

}  // namespace isotope::vulkan
