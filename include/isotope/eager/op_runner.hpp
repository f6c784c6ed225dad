#pragma once
/// Runs one op on device memory, with the kernel that a plan of the same target would choose.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../plan/dynamic.hpp"
#include "device_heap.hpp"

namespace isotope {

template <Queue Q> class op_runner;

/// Device memory of one owner or several; the last one gives it back.
template <Queue Q> class device_block {
 public:
  device_block(std::shared_ptr<op_runner<Q>> home, const typename device_heap<Q>::block& b) : home_(std::move(home)), block_(b) {}
  device_block(const device_block&) = delete;
  device_block& operator=(const device_block&) = delete;
  ~device_block() { home_->heap_.give(block_); }

  std::uint64_t address() const { return home_->heap_.address(block_); }
  std::int64_t bytes() const { return block_.bytes; }
  /// Whether the memory is that of the device on which `other` runs.
  bool on_device_of(const op_runner<Q>& other) const { return home_->queue_.device() == other.queue_.device(); }
  /// Copies between the host and bytes [at, at + n). @error device_lost, timeout
  result<void> upload(std::int64_t at, std::span<const std::byte> from) {
    return home_->queue_.upload(home_->heap_.memory_of(block_), block_.at + at, from);
  }
  result<void> download(std::int64_t at, std::span<std::byte> to) const {
    const memory_piece one{block_.at + at, to};
    return home_->queue_.download(home_->heap_.memory_of(block_), {&one, 1});
  }
  result<void> clear() { return home_->queue_.clear(home_->heap_.memory_of(block_), block_.at, block_.bytes); }

 private:
  std::shared_ptr<op_runner<Q>> home_;
  typename device_heap<Q>::block block_;
};

/// A queue of a device with memory for single tensors. Each run is a plan of one step, made by the planner, so that kernel, fused body and scratch are
/// those of a plan without fusion; it is over when the call returns.
template <Queue Q> class op_runner : public std::enable_shared_from_this<op_runner<Q>> {
 public:
  using target = typename Q::target;
  using block = device_block<Q>;

  /// @error out_of_memory, device_lost
  static result<std::shared_ptr<op_runner>> create(Q queue) {
    auto scalars = queue.allocate(Q::scalar_bytes, memory_use::upload, "isotope scalars");
    if (!scalars) return scalars.error();
    return std::shared_ptr<op_runner>(new op_runner(std::move(queue), *std::move(scalars)));
  }

  /// Runs on a queue of its own, beside the sessions that the device has. @error out_of_memory, device_lost
  template <class Device> static result<std::shared_ptr<op_runner>> on(const Device& d) {
    auto queue = d.open_queue();
    if (!queue) return queue.error();
    return create(*std::move(queue));
  }

  /// @error out_of_memory
  result<std::shared_ptr<block>> allocate(std::int64_t bytes) {
    auto b = heap_.take(queue_, bytes);
    if (!b) return b.error();
    return std::make_shared<block>(this->shared_from_this(), *b);
  }

  /// Runs node `index` of a trace; address(v) is where the bytes of the root value v start on this device.
  /// @error invalid_model without a kernel or for a tensor beyond the backend's limit; out_of_memory, device_lost, timeout
  template <class Address> result<void> run(const trace& g, std::int32_t index, const step_scalars& x, const Address& address) {
    trace one;
    one.program = g.program;
    node n = g.nodes[std::size_t(index)];
    n.body = n.body_size = 0;
    std::vector<std::int32_t> from;  // the value of g that each value of `one` is
    const auto take = [&](std::int32_t v) {
      for (std::size_t k = 0; k < from.size(); ++k)
        if (from[k] == v) return std::int32_t(k);
      value copy = g.values[std::size_t(v)];
      copy.base = copy.producer = -1;
      copy.offset = 0;
      copy.kind = value_kind::temp;
      one.values.push_back(copy);
      from.push_back(v);
      return std::int32_t(from.size()) - 1;
    };
    for (int k = 0; k < n.inputs(); ++k) n.in[std::size_t(k)] = take(n.in[std::size_t(k)]);
    for (int k = 0; k < n.outputs(); ++k) n.out[std::size_t(k)] = take(n.out[std::size_t(k)]);
    one.nodes.push_back(n);
    plan_detail::fusion(one, {}).lower();

    auto layout = plan_detail::lay_out_for<target>(one);
    std::shared_ptr<block> scratch;
    if (layout.scratch[0] >= 0) {
      auto b = allocate(layout.scratch_bytes[0]);
      if (!b) return b.error();
      scratch = *std::move(b);
    }
    // Operands count from here. It is not above any scratch, because a negative offset of scratch means that there is none.
    const std::uint64_t origin = std::min(scalars_.address(), heap_.lowest());
    for (std::size_t k = 0; k < from.size(); ++k)
      layout.at[k] = std::int64_t(address(g.root(from[k])) - origin) + g.root_offset(from[k]) * size_of(one.values[k].type);
    if (scratch != nullptr) layout.scratch[0] = std::int64_t(scratch->address() - origin);
    const dynamic_plan step = freeze(one, layout);
    if (auto r = plan_detail::runnable<target>(step); !r) return r;

    queue_.put_scalars(scalars_.mapped(), x, x.optimizer_step);
    region_addresses base;
    base.at.fill(origin);
    base.scalars = scalars_.address();
    auto bound = queue_.bind(step, base, 0);
    auto done = queue_.observe(bound, phase_always, [](std::size_t) {});
    if (!done) return done.error();
    return {};
  }

  /// Bytes taken from the device for tensors, those in use and those that were given back.
  std::int64_t bytes() const { return heap_.bytes(); }

 private:
  friend device_block<Q>;
  Q queue_;
  device_heap<Q> heap_;
  typename Q::memory scalars_;

  op_runner(Q queue, typename Q::memory scalars) : queue_(std::move(queue)), scalars_(std::move(scalars)) {}
};

}  // namespace isotope
