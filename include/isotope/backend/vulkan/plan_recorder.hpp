#pragma once
/// Records the plans of a session into command buffers, and owns what these plans share on a Vulkan device.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../queue/loaded_plan.hpp"
#include "command_buffers.hpp"
#include "constant_pool.hpp"
#include "plan_dispatches.hpp"
#include "variant_timer.hpp"

#include <isotope/kernels/vulkan/decode/whole_step.hpp>
#include <isotope/shaders/readback.hpp>

namespace isotope::vulkan {

struct plan_recorder {
  using dispatch = vulkan::dispatch;
  using commands = VkCommandBuffer;
  using constant_pool = vulkan::constant_pool;

  std::shared_ptr<context> device;
  std::shared_ptr<pipelines> made;
  std::unique_ptr<constant_pool> shared_pool;
  command_pool command_buffers;
  VkCommandBuffer single = nullptr;  // of run_one_by_one, which waits for it
  weight_scores scores;
  kernel_set kernels;

  static result<std::unique_ptr<plan_recorder>> create(std::shared_ptr<context> device, std::shared_ptr<pipelines> made,
                                                       const kernel_set& kernels) {
    auto r = std::make_unique<plan_recorder>();
    r->shared_pool = std::make_unique<constant_pool>(device);
    auto pool = command_pool::create(device);
    if (!pool) return pool.error();
    r->command_buffers = std::move(*pool);
    r->device = std::move(device);
    r->made = std::move(made);
    r->kernels = kernels;
    return r;
  }

  /// The dispatches of a run; the last one copies the outputs to readback memory.
  std::vector<dispatch> list(const bound_plan& p, std::uint8_t active, constant_pool& pool) {
    auto all = chosen(p, active, pool);
    join_whole_step(p, all, pool);
    const auto bytes = p.plan.totals.region[std::size_t(value_kind::output)];
    if (p.readback == 0 || bytes == 0 || device->options.diagnose.no_readback) return all;
    all.push_back(copy(p.readback, p.base[value_kind::output], bytes, pool));
    return all;
  }
  /// Copies whole blocks of 16 bytes.
  dispatch copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes, constant_pool& pool) const {
    const device_limits& limits = device->physical().limits;
    const struct {
      std::uint64_t from, to;
      std::uint32_t blocks;
    } push{from, to, std::uint32_t(bytes / 16)};
    recording r(pool, *made);
    enter_set(r, isotope::kernels::portable::name);
    r.launch_size = limits.switches.launch_size;
    r.add(shaders::readback, constants{64u, limits.subgroup}, push, per_invocation(bytes / 16, 64), {range(from, bytes)},
          {range(to, bytes)});
    return std::move(r.dispatches.back());
  }
  /// The dispatches of the steps, with the variants of kernels that are known to be the fastest. Where they are not known, they are timed if that is asked for.
  std::vector<dispatch> chosen(const bound_plan& p, std::uint8_t active, constant_pool& pool) {
    const steps_of recorded{*this, p, active, pool};
    const bool known = made->variants.level() != tuning::off && device->physical().limits.switches.variant.empty();
    const step_recording all{known ? &made->variants : nullptr};
    auto steps = recorded(all);
    if (!known) return steps;
    variant_timer timer(device, *made, recorded);
    if (!tuner(p.plan, made->variants, timer).settle(steps)) return steps;
    made->variants.save();
    return recorded(all);
  }
  result<VkCommandBuffer> new_commands() const { return command_buffers.buffer(); }
  result<void> record(VkCommandBuffer to, std::span<const dispatch> all, std::span<const std::uint8_t> before) const {
    if (auto r = made->make(all); !r) return r;
    return record_commands(*device, *made, to, all, before);
  }
  std::unique_ptr<constant_pool> new_pool() const { return std::make_unique<constant_pool>(device); }
  constant_pool& pool() const { return *shared_pool; }
  std::int32_t dropped_barrier() const { return device->options.diagnose.drop_barrier; }

  /// Submits the dispatches of each plan step separately, waits, and calls after(step). Returns the timeline value of the last submission.
  /// @error device_lost, out_of_memory, timeout
  template <class After> result<std::uint64_t> run_one_by_one(std::span<const dispatch> all, const After& after) {
    if (!shared_pool->error().what.empty()) return shared_pool->error();
    if (single == nullptr) {
      auto buffer = new_commands();
      if (!buffer) return buffer.error();
      single = *buffer;
    }
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i + 1;
      while (end < all.size() && all[end].step == all[i].step) ++end;
      const auto part = all.subspan(i, end - i);
      if (auto r = record(single, part, plan_barriers(part)); !r) return r.error();
      auto value = device->submit(single);
      if (!value) return value;
      if (auto r = device->wait(*value); !r) return r.error();
      done = *value;
      if (all[i].step >= 0) after(std::size_t(all[i].step));
      i = end;
    }
    return done;
  }

 private:
  /// The steps of a plan, as often as they are recorded, and copies for a timer.
  struct steps_of {
    plan_recorder& by;
    const bound_plan& p;
    std::uint8_t active;
    constant_pool& pool;
    std::vector<dispatch> operator()(const step_recording& how) const {
      return vulkan::record(p.plan, by.kernels, p.base, p.sizes, by.device->physical().limits, active, pool, *by.made, &by.scores, how);
    }
    dispatch copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes) const { return by.copy(to, from, bytes, pool); }
  };
  /// Memory in which workgroups of whole steps of these sizes pass rows on. Plans of a session run one after the other, so they share it.
  struct step_words {
    std::array<std::int64_t, 3> sizes;
    memory words;
  };
  std::vector<step_words> step_words_;

  /// A step of decoding of one row becomes one dispatch where the device takes it. Without memory for it, it keeps its dispatches.
  void join_whole_step(const bound_plan& p, std::vector<dispatch>& all, constant_pool& pool) {
    const range kept(p.base[value_kind::output], p.plan.totals.region[std::size_t(value_kind::output)]);
    const decode_whole_step step(all, kept, device->physical().limits);
    if (!step.found()) return;
    const auto same = [&](const step_words& w) { return w.sizes == step.sizes(); };
    auto at = std::find_if(step_words_.begin(), step_words_.end(), same);
    if (at == step_words_.end()) {
      auto m = memory::allocate(device, step.words_bytes(), memory_use::upload, "isotope rows of a step of decoding");
      if (!m) return;
      std::memset(m->mapped(), 0, std::size_t(m->bytes()));
      step_words_.push_back({step.sizes(), *std::move(m)});
      at = step_words_.end() - 1;
    }
    recording r(pool, *made);
    step.join(all, at->words.address(), r);
  }
};

}  // namespace isotope::vulkan
