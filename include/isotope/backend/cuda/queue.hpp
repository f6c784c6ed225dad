#pragma once
/// The queue of a CUDA device. A graph is made once per plan, frame and set of phases, and launched as a whole.
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

namespace isotope::cuda {

template <Target T> class queue {
 public:
  using target = T;
  using memory = cuda::memory;
  using plan = loaded_plan<plan_recorder>;
  using owner = std::shared_ptr<context>;
  static constexpr bool host_memory = false;
  static constexpr bool cached_uploads = true;
  static constexpr bool shared_commands = true;
  static constexpr std::size_t frames = 16;
  static constexpr std::int64_t scalar_bytes = sizeof(gpu::scalars);

  /// @error out_of_memory
  static result<queue> create(std::shared_ptr<context> device, std::shared_ptr<loaded_functions> functions,
                              const rank_groups& groups = {}) {
    queue q;
    q.transfer_ = transfer(device);
    q.recorder_ = std::make_unique<plan_recorder>(std::move(device), std::move(functions),
                                                  kernel_set{kernel_table<T>, code_of<T>(), custom_instructions_of<T>()}, groups);
    return q;
  }

  /// Page-locked host memory, which kernels reach, too.
  static result<memory> allocate_mapped(const owner& device, std::int64_t bytes, memory_use, const std::string& label) {
    return memory::allocate(device, bytes, memory_use::readback, label);
  }
  result<memory> allocate(std::int64_t bytes, memory_use use, const std::string& label) {
    auto m = memory::allocate(recorder_->device, bytes, use, label);
    if (!m) return m;
    if (m->mirrored()) recorder_->mirror(*m);
    if (use == memory_use::readback) return m;
    if (auto r = transfer_.clear(*m, 0, m->bytes() / 4 * 4); !r) return r.error();
    return m;
  }
  result<void> upload(memory& to, std::int64_t at, std::span<const std::byte> from) { return transfer_.upload(to, at, from); }
  /// Many small pieces are transferred together, as many at a time as fit into the staging memory.
  result<void> download(const memory& from, std::span<const memory_piece> all) const { return transfer_.download(from, all); }
  result<void> clear(memory& what, std::int64_t at, std::int64_t bytes) { return transfer_.clear(what, at, bytes); }

  static constexpr std::int64_t staging_bytes = transfer::half_bytes;
  result<std::byte*> staging(std::size_t k) { return transfer_.staging(k); }
  result<void> send(std::size_t k, const memory& to, std::int64_t at, std::int64_t bytes) { return transfer_.send(k, to, at, bytes); }
  result<void> finish() { return transfer_.finish(); }

  plan bind(const plan_view& p, const region_addresses& base, std::uint64_t readback) { return plan({p, base, readback, {}}, *recorder_); }
  result<void> prepare(plan& p, std::uint8_t active, const std::array<std::int32_t, 16>& sizes) {
    if (auto v = p.prepare(active, sizes); !v) return v.error();
    return {};
  }
  /// Saves the choices of variants and algorithms to disk.
  result<void> loaded() {
    recorder_->whole = true;
    recorder_->functions->variants->save();
    if (auto& products = recorder_->functions->products; products != nullptr) algorithms_ = products->digest_of(recorder_->products);
    return {};
  }
  /// A digest of the algorithms of cuBLASLt that the plans run, as they were when they were loaded; empty: they run none.
  const std::string& algorithms() const { return algorithms_; }
  result<submission> submit(plan& p, std::uint8_t active, const std::array<std::int32_t, 16>& sizes, const std::byte* upload,
                            std::byte* readback, int times = 1) {
    auto v = p.prepare(active, sizes);
    if (!v) return v.error();
    auto value = recorder_->submit(*(*v)->commands, (*v)->dispatches, p.addresses().scalars, upload, readback, times);
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
  result<std::vector<launch_time>> time(plan& p, std::uint8_t active) {
    const auto all = p.dispatches(active);
    if (auto r = p.tables(); !r) return r.error();
    return time_launches(*recorder_, all);
  }

  /// A VariantTimer of dispatches that are recorded already.
  auto timer() {
    static constexpr auto nothing = [](const step_recording&) { return std::vector<dispatch>(); };
    return variant_timer(recorder_->device, *recorder_->functions, nothing);
  }

  void put_scalars(std::byte* to, const step_scalars& x, std::int64_t optimizer_step) const {
    const auto s = scalars_of(x, optimizer_step);
    std::memcpy(to, &s, sizeof s);
  }
  bool stored(const slot&, const region_addresses&, std::span<const float>) { return false; }
  std::vector<launch_row> rows(const plan& p, std::uint8_t active) const {
    return launch_rows(p.dispatches(active), swept_sizes(recorder_->device->physical().limits));
  }
  const isotope::diagnostics& diagnose() const { return recorder_->device->options.diagnose; }
  const owner& device() const { return recorder_->device; }
  const rank_groups& groups() const { return recorder_->groups.all(); }
  std::int64_t planned_bytes() const { return 2 * transfer::half_bytes + constant_pool::chunk; }
  std::int64_t bytes() const { return transfer_.bytes() + recorder_->shared_pool->bytes(); }
  std::int64_t taken_bytes() const {
    const auto m = recorder_->device->memory_left();
    return m ? m->total - m->free : 0;
  }

  std::int64_t objects() const { return recorder_->device->counters.allocations + recorder_->device->counters.objects; }
  /// Covers all queues of the device, not only this one.
  std::string totals() const {
    const context_counters& c = recorder_->device->counters;
    return std::to_string(c.submits.load()) + " submissions, " + std::to_string(c.allocations.load()) + " allocations";
  }
  /// What is to be said of the file of choices, and of variants that were not chosen since they are wrong here.
  std::vector<std::string> messages() const { return recorder_->functions->variants->messages(); }

  plan_recorder& recorder() { return *recorder_; }
  transfer& staging() { return transfer_; }

 private:
  std::unique_ptr<plan_recorder> recorder_;
  std::string algorithms_;
  mutable transfer transfer_;  // a download changes only the staging memory, which callers do not see
};

}  // namespace isotope::cuda
