#pragma once
/// The queue of a Vulkan device. Command buffers are recorded once per plan, frame and set of phases, and submitted on one timeline semaphore.
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../queue/queue.hpp"
#include "launch_times.hpp"
#include "plan_recorder.hpp"
#include "transfer.hpp"

namespace isotope::vulkan {

template <Target T> class queue {
 public:
  using target = T;
  using memory = vulkan::memory;
  using plan = loaded_plan<plan_recorder>;
  using owner = std::shared_ptr<context>;
  static constexpr bool host_memory = false;
  static constexpr std::size_t frames = 2;
  static constexpr std::int64_t scalar_bytes = sizeof(device_scalars);

  /// @error out_of_memory
  static result<queue> create(std::shared_ptr<context> device, std::shared_ptr<pipelines> made) {
    queue q;
    auto r = plan_recorder::create(std::move(device), std::move(made),
                                   {kernel_table<T>, code_of<T>(), custom_instructions_of<T>(), pairs_of<T>()});
    if (!r) return r.error();
    q.recorder_ = *std::move(r);
    auto t = transfer::create(q.recorder_->command_buffers);
    if (!t) return t.error();
    q.transfer_ = *std::move(t);
    return q;
  }

  static result<memory> allocate_mapped(const owner& device, std::int64_t bytes, memory_use use, const std::string& label) {
    auto m = memory::allocate(device, bytes, use, label);
    if (m) std::memset(m->mapped(), 0, std::size_t(m->bytes()));
    return m;
  }
  result<memory> allocate(std::int64_t bytes, memory_use use, const std::string& label) {
    if (use != memory_use::device) return allocate_mapped(recorder_->device, bytes, use, label);
    auto m = memory::allocate(recorder_->device, bytes, use, label, recorder_->device->options.diagnose.chunk_bytes);
    if (!m) return m;
    if (auto r = transfer_.clear(*m, 0, m->bytes() / 4 * 4); !r) return r.error();
    return m;
  }
  result<void> upload(memory& to, std::int64_t at, std::span<const std::byte> from) { return transfer_.upload(to, at, from); }
  /// Many small pieces are transferred together, as many at a time as fit into the staging memory.
  result<void> download(const memory& from, std::span<const memory_piece> all) const { return transfer_.download(from, all); }
  result<void> clear(memory& what, std::int64_t at, std::int64_t bytes) { return transfer_.clear(what, at, bytes); }

  plan bind(const plan_view& p, const region_addresses& base, std::uint64_t readback) {
    recorder_->scores.add(p);
    return plan({p, base, readback, {}}, *recorder_);
  }
  result<void> prepare(plan& p, std::uint8_t active, const std::array<std::int32_t, 16>& sizes) {
    if (auto v = p.prepare(active, sizes); !v) return v.error();
    return {};
  }
  /// Saves the driver's pipeline cache and the choices of variants to disk.
  result<void> loaded() {
    recorder_->made->variants.save();
    recorder_->made->save();
    return {};
  }
  result<submission> submit(plan& p, std::uint8_t active, const std::array<std::int32_t, 16>& sizes, int times = 1) {
    auto v = p.prepare(active, sizes);
    if (!v) return v.error();
    auto value = recorder_->device->submit((*v)->commands, times);
    if (!value) return value.error();
    return submission{*value, times * std::int64_t((*v)->dispatches.size()), times * (*v)->barriers};
  }
  result<void> wait(std::uint64_t value) const { return recorder_->device->wait(value); }
  template <class After> result<submission> observe(plan& p, std::uint8_t active, const After& after) {
    const auto all = p.dispatches(active);
    if (auto r = p.tables(); !r) return r.error();
    auto value = recorder_->run_one_by_one(all, after);
    if (!value) return value.error();
    return submission{*value, std::int64_t(all.size()), 0};
  }
  /// @error missing_feature where the queue has no clock
  result<std::vector<launch_time>> time(plan& p, std::uint8_t active) {
    const auto all = p.dispatches(active);
    if (auto r = p.tables(); !r) return r.error();
    if (auto r = recorder_->made->make(all); !r) return r.error();
    return time_launches(recorder_->command_buffers, *recorder_->made, all, plan_barriers(all));
  }

  /// A VariantTimer of dispatches that are recorded already.
  auto timer() {
    static constexpr auto nothing = [](const step_recording&) { return std::vector<dispatch>(); };
    return variant_timer(recorder_->device, *recorder_->made, nothing);
  }

  void put_scalars(std::byte* to, const step_scalars& x, std::int64_t optimizer_step) const {
    const auto s = device_scalars::of(x, optimizer_step);
    std::memcpy(to, &s, sizeof s);
  }
  /// Updates the oscillation of a weight, by which matmuls of f16 weights choose their kernel.
  bool stored(const slot& s, const region_addresses&, std::span<const float> x) {
    return recorder_->scores.put(s, x, recorder_->device->physical().limits.switches.oscillation_threshold);
  }
  std::vector<launch_row> rows(const plan& p, std::uint8_t active) const {
    return launch_rows(p.dispatches(active), swept_sizes(recorder_->device->physical().limits));
  }
  const isotope::diagnostics& diagnose() const { return recorder_->device->options.diagnose; }
  const owner& device() const { return recorder_->device; }
  std::int64_t planned_bytes() const { return 2 * transfer::half_bytes + constant_pool::chunk; }
  std::int64_t bytes() const { return transfer_.bytes() + recorder_->shared_pool->bytes(); }

  std::int64_t objects() const { return recorder_->device->counters.allocations + recorder_->device->counters.objects; }
  /// Covers all queues of the device, not only this one.
  std::string totals() const {
    const context_counters& c = recorder_->device->counters;
    return std::to_string(c.submits.load()) + " submissions, " + std::to_string(c.allocations.load()) + " allocations";
  }
  std::vector<std::string> messages() const {
    auto all = recorder_->device->messages().texts();
    for (std::string& text : all) text.insert(0, "validation: ");
    for (std::string& text : recorder_->made->variants.messages()) all.push_back(std::move(text));
    return all;
  }

  plan_recorder& recorder() { return *recorder_; }
  transfer& staging() { return transfer_; }

 private:
  std::unique_ptr<plan_recorder> recorder_;
  mutable transfer transfer_;  // a download changes only the staging memory, which callers do not see
};

}  // namespace isotope::vulkan
