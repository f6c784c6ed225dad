#pragma once
/// Times variants of kernels on a Vulkan device: several runs of a step in one command buffer, between two timestamps.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "../queue/tuner.hpp"
#include "command_buffers.hpp"
#include "transfer.hpp"

namespace isotope::vulkan {

/// A VariantTimer. `Record` lists the dispatches of a plan, and its `copy` is one that copies blocks of 16 bytes.
template <class Record> class variant_timer {
 public:
  using dispatch = vulkan::dispatch;
  using memory = vulkan::memory;
  struct run {
    VkCommandBuffer commands = nullptr;
    int times = 1, submits = 1;  // runs in the commands; how often these are submitted, of which the last one is timed
  };

  variant_timer(std::shared_ptr<context> c, pipelines& made, const Record& record) : context_(std::move(c)), made_(made), record_(record) {}
  variant_timer(const variant_timer&) = delete;
  variant_timer& operator=(const variant_timer&) = delete;
  ~variant_timer() {
    if (compiling_.joinable()) compiling_.join();
    if (clock_ != VK_NULL_HANDLE) context_->f().DestroyQueryPool(context_->handle(), clock_, nullptr);
  }

  static constexpr int recordings = 16;  // the same dispatches took times up to 0.3 us apart

  std::vector<dispatch> record(const step_recording& how) { return record_(how); }
  /// Compiles on threads beside what is timed, since drivers take 0.1 s and more for a pipeline; not where kernels run on the processor, too.
  /// @error missing_feature where the queue has no clock, out_of_memory
  result<void> compile(std::vector<dispatch> all, std::span<const dispatch> plan) {
    if (context_->physical().timestamp_bits == 0)
      return fail(errc::missing_feature, context_->physical().name + " has no timestamps", "vulkan", "autotune = off or cached");
    auto pool = command_pool::create(context_);
    if (!pool) return pool.error();
    pool_ = *std::move(pool);
    auto moving = transfer::create(pool_);
    if (!moving) return moving.error();
    moving_ = *std::move(moving);
    const VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, 2, 0};
    if (const auto s = context_->f().CreateQueryPool(context_->handle(), &info, nullptr, &clock_); s != VK_SUCCESS) {
      clock_ = VK_NULL_HANDLE;
      return failed(s, "timestamps");
    }
    context_->name(VK_OBJECT_TYPE_QUERY_POOL, clock_, "isotope clock of variants");
    if (context_->physical().kind == device_kind::cpu) return made_.make(all);
    if constexpr (requires(const Record& r) { r.copy(1, 1, 16); }) all.insert(all.begin(), record_.copy(16, 32, 16));
    all.insert(all.end(), plan.begin(), plan.end());
    compiling_ = std::thread([this, all = std::move(all)] {
      const thread_owner::helper helping(context_->owner());
      static_cast<void>(made_.make(all));  // an error comes again in `ready`
    });
    return {};
  }
  result<void> ready(const std::vector<dispatch>& all) { return made_.make(all); }
  /// Copies the blocks of 16 bytes that are whole, between addresses of the device of equal remainders.
  result<void> copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes)
      requires requires(const Record& r) { r.copy(to, from, bytes); } {
    const auto before = std::int64_t((16 - to % 16) % 16);
    if (bytes < before + 16) return {};
    const std::vector<dispatch> one{record_.copy(to + std::uint64_t(before), from + std::uint64_t(before), (bytes - before) / 16 * 16)};
    if (auto r = ready(one); !r) return r;
    auto commands = pool_.buffer();
    if (!commands) return commands.error();
    if (auto r = record_commands(*context_, made_, *commands, one, plan_barriers(one)); !r) return r;
    auto value = context_->submit(*commands);
    if (!value) return value.error();
    return context_->wait(*value);
  }
  /// @error out_of_memory
  result<memory> allocate(std::int64_t bytes) const {
    return memory::allocate(context_, bytes, memory_use::device, "isotope operands of timed kernels",
                            context_->options.diagnose.chunk_bytes);
  }
  result<void> clear(memory& m, std::int64_t at, std::int64_t bytes) { return moving_.clear(m, at, bytes); }
  result<void> upload(memory& m, std::int64_t at, std::span<const std::byte> from) { return moving_.upload(m, at, from); }
  result<void> download(const memory& m, std::span<const memory_piece> all) { return moving_.download(m, all); }
  /// One more run comes before the clock starts, so that the device is at work by then.
  result<run> prepare(const std::vector<dispatch>& all, int times) {
    std::vector<dispatch> several;
    for (int k = 0; k <= times; ++k) several.insert(several.end(), all.begin(), all.end());
    auto commands = pool_.buffer();
    if (!commands) return commands.error();
    const timing between{clock_, std::int64_t(all.size())};
    if (auto r = record_commands(*context_, made_, *commands, several, plan_barriers(several), between); !r) return r.error();
    return run{*commands, times};
  }
  /// The last of up to four submissions is timed, so that the device is at work by then. They are submitted together, so how fast the host is does not matter.
  result<run> prepare_alone(const std::vector<dispatch>& all, int before) {
    auto commands = pool_.buffer();
    if (!commands) return commands.error();
    if (auto r = record_commands(*context_, made_, *commands, all, plan_barriers(all), timing{clock_, 0}); !r) return r.error();
    return run{*commands, 1, 1 + std::clamp(before, 1, 3)};
  }
  result<double> seconds(const run& r) const {
    auto value = context_->submit(r.commands, r.submits);
    if (!value) return value.error();
    if (auto waited = context_->wait(*value); !waited) return waited.error();
    std::array<std::uint64_t, 2> ticks{};
    if (const auto s = context_->f().GetQueryPoolResults(context_->handle(), clock_, 0, 2, sizeof ticks, ticks.data(), 8,
                                                         VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
        s != VK_SUCCESS)
      return failed(s, "reading timestamps");
    return double(ticks[1] - ticks[0]) * double(context_->physical().properties.limits.timestampPeriod) * 1e-9 / r.times;
  }

 private:
  std::shared_ptr<context> context_;
  pipelines& made_;
  const Record& record_;
  command_pool pool_;
  transfer moving_;
  VkQueryPool clock_ = VK_NULL_HANDLE;
  std::thread compiling_;
};

}  // namespace isotope::vulkan
