#pragma once
/// A plan on a device: its dispatches recorded once for each set of phases, with the outputs brought to the host at the end.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "record.hpp"
#include "word_memory.hpp"

#include <isotope/shaders/readback.hpp>

namespace isotope::vulkan {

/// What a session and its plans share.
struct session_parts {
  std::shared_ptr<context> device;
  std::shared_ptr<pipelines> made;
  std::unique_ptr<word_memory> words;
  command_pool commands;
  weight_scores scores;

  static result<std::unique_ptr<session_parts>> create(std::shared_ptr<context> device, std::shared_ptr<pipelines> made) {
    auto parts = std::make_unique<session_parts>();
    parts->words = std::make_unique<word_memory>(device);
    auto pool = command_pool::create(device);
    if (!pool) return pool.error();
    parts->commands = std::move(*pool);
    parts->device = std::move(device);
    parts->made = std::move(made);
    return parts;
  }
};

/// One plan for one lane of a session.
class loaded_plan {
 public:
  struct variant {
    std::uint8_t active = 0;
    VkCommandBuffer commands = nullptr;
    std::vector<dispatch> dispatches;
    std::int64_t barriers = 0;
  };

  loaded_plan() = default;
  /// `readback` is where the outputs go, 0: nowhere.
  loaded_plan(const plan_view& p, const kernel_set& kernels, const region_addresses& base, std::uint64_t readback, session_parts& parts)
      : plan_(p), kernels_(kernels), base_(base), readback_(readback), parts_(&parts) {
    for (const auto& o : p.operands) dynamic_ = dynamic_ || o.dims.has_scalar();
    if (dynamic_) own_words_ = std::make_unique<word_memory>(parts.device);
  }

  const plan_view& plan() const { return plan_; }
  /// Whether some size is known only when a step runs.
  bool dynamic() const { return dynamic_; }

  /// The commands of a set of phases; recorded at the first call, and again where the sizes of a plan with scalar dimensions change: then nothing that
  /// was prepared before may run any more. @error out_of_memory, missing_feature
  result<const variant*> prepare(std::uint8_t active, const std::array<std::int32_t, 16>& sizes) {
    variant* v = nullptr;
    for (auto& x : variants_)
      if (x.active == active) v = &x;
    if (v != nullptr && (!dynamic_ || sizes == sizes_)) return v;
    if (dynamic_ && sizes != sizes_) {
      forget();
      own_words_->clear();
    }
    sizes_ = sizes;
    if (v == nullptr)
      for (auto& x : variants_)
        if (x.active == 0) v = &x;
    if (v == nullptr) {
      auto b = parts_->commands.buffer();
      if (!b) return b.error();
      variants_.push_back({0, *b, {}, 0});
      v = &variants_.back();
    }
    v->dispatches = dispatches(active);
    if (!words().error().what.empty()) return words().error();
    if (auto r = parts_->made->make(v->dispatches); !r) return r.error();
    auto before = plan_barriers(v->dispatches);
    drop(before);
    v->barriers = 0;
    for (auto b : before) v->barriers += b;
    if (auto r = record_commands(*parts_->device, *parts_->made, v->commands, v->dispatches, before); !r) return r.error();
    v->active = active;
    return v;
  }

  /// Commands are recorded again when they are next prepared: what kernels choose by has changed.
  void forget() {
    for (auto& x : variants_) x.active = 0;
  }

  /// As `prepare` lists them, for those who look into a plan.
  std::vector<dispatch> dispatches(std::uint8_t active) const {
    auto all = record(plan_, kernels_, base_, sizes_, parts_->device->what().what, active, words(), *parts_->made, &parts_->scores);
    const auto bytes = plan_.totals.region[std::size_t(value_kind::output)];
    if (readback_ != 0 && bytes > 0 && !parts_->device->options.diagnose.no_readback) {
      const std::uint64_t from = base_.at[std::size_t(value_kind::output)];
      const struct {
        std::uint64_t from, to;
        std::uint32_t blocks;
      } push{from, readback_, std::uint32_t(bytes / 16)};
      recording r(words(), *parts_->made);
      tier_of(r, kernels::portable::name);
      r.launch_size = parts_->device->what().what.switches.launch_size;
      r.add(shaders::readback, constants{64u, parts_->device->what().what.subgroup}, push, per_invocation(bytes / 16, 64),
            {range(from, bytes)}, {range(readback_, bytes)});
      all.push_back(std::move(r.dispatches.back()));
    }
    return all;
  }
  const region_addresses& base() const { return base_; }
  /// Device memory of its own.
  std::int64_t word_bytes() const { return own_words_ == nullptr ? 0 : own_words_->bytes(); }

 private:
  plan_view plan_;
  kernel_set kernels_;
  region_addresses base_;
  std::uint64_t readback_ = 0;
  session_parts* parts_ = nullptr;
  std::unique_ptr<word_memory> own_words_;  // of a plan with scalar dimensions: tables of sizes that are over are not kept
  std::vector<variant> variants_;
  std::array<std::int32_t, 16> sizes_{};
  bool dynamic_ = false;

  word_memory& words() const { return own_words_ != nullptr ? *own_words_ : *parts_->words; }
  void drop(std::vector<std::uint8_t>& before) const {
    auto k = parts_->device->options.diagnose.drop_barrier;
    if (k < 0) return;
    for (auto& b : before)
      if (b != 0 && k-- == 0) b = 0;
  }
};

/// Runs dispatches, those of one plan step in a submission of their own, with after(step) when each is done. Returns the last submission.
/// @error device_lost, out_of_memory, timeout
template <class After> result<std::uint64_t> run_one_by_one(session_parts& parts, std::span<const dispatch> all, const After& after) {
  auto commands = parts.commands.buffer();
  if (!commands) return commands.error();
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end].step == all[i].step) ++end;
    const auto part = all.subspan(i, end - i);
    if (auto r = record_commands(*parts.device, *parts.made, *commands, part, plan_barriers(part)); !r) return r.error();
    auto value = parts.device->submit(*commands);
    if (!value) return value;
    if (auto r = parts.device->wait(*value); !r) return r.error();
    done = *value;
    if (all[i].step >= 0) after(std::size_t(all[i].step));
    i = end;
  }
  return done;
}

}  // namespace isotope::vulkan
