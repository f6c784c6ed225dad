#pragma once
/// What lives on a device worker's thread: the device, its models and its communicators, and the handler of every job.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../comm/sanity.hpp"
#include "../core/device.hpp"
#include "job.hpp"
#include "load.hpp"
#include "loaded_model.hpp"

namespace isotope::worker {

/// The communicators of a worker, which other threads may abort.
class group_list {
 public:
  void add(communicator* c) {
    const std::lock_guard lock(mutex_);
    all_.push_back(c);
  }
  void remove(communicator* c) {
    const std::lock_guard lock(mutex_);
    std::erase(all_, c);
  }
  void abort(const failure& cause) {
    const std::lock_guard lock(mutex_);
    for (communicator* c : all_) c->abort(cause);
  }

 private:
  std::mutex mutex_;
  std::vector<communicator*> all_;
};

/// Whether a failure of a job means that the device can do nothing more. A model whose memory was refused, or a group that lost a peer, leaves it usable.
template <Job J> bool breaks_device(const failure& f) {
  constexpr bool waits_for_peers = std::is_same_v<J, join_communicator> || std::is_same_v<J, check_communicator>;
  return f.code == errc::device_lost || f.code == errc::poisoned || (f.code == errc::timeout && !waits_for_peers);
}

/// `Device` is device<T>, or derives from it. All members are called on one thread.
template <Target T, class Device> class device_host {
 public:
  device_host(Device owned, std::string owner, std::uint64_t number, std::shared_ptr<group_list> groups)
      : device_(std::make_unique<Device>(std::move(owned))),
        owner_(std::move(owner)),
        models_(number),
        joined_(number),
        groups_(std::move(groups)) {
    if constexpr (requires { device_->claim_thread(); }) device_->claim_thread();
  }
  device_host(const device_host&) = delete;
  device_host& operator=(const device_host&) = delete;
  /// Models go first, then communicators, then the device.
  ~device_host() {
    models_.clear();
    joined_.clear();
  }

  device_info info() const { return device_->info(); }

  result<device_memory> handle(query_memory&) {
    if constexpr (requires { device_->memory(); }) return device_->memory();
    else
      return fail(errc::missing_feature, "the backend does not say how much memory is free", owner_,
                  "give the backend's device a function memory()");
  }
  result<loaded> handle(load& job) {
    if (job.target != target_text<T>())
      return fail(errc::wrong_device, "the plans are for " + job.target + ", and the worker runs " + target_text<T>(), owner_,
                  "plan for the worker's target");
    load_place where{static_cast<const device<T>*>(device_.get()), nullptr};
    if (job.group) {
      auto group = joined_.find(*job.group);
      if (!group) return std::move(group).error();
      where.group = **group;
    }
    auto made = job.make(where);
    if (!made) return std::move(made).error();
    if (job.seed)
      if (auto r = (*made)->initialize(*job.seed); !r) return std::move(r).error();
    loaded r = (*made)->describe();
    r.model = models_.add(model{std::move(where.group), *std::move(made)});
    return r;
  }
  result<void> handle(drop& job) {
    return std::visit([&](const auto& h) { return drop_one(h); }, job.what);
  }
  result<void> handle(write& job) {
    return with_model(job, [&](loaded_model& m) { return m.write(job); });
  }
  result<std::vector<tensor_values>> handle(read& job) {
    return with_model(job, [&](loaded_model& m) { return m.read(job); });
  }
  result<step_report> handle(worker::step& job) {
    return with_model(job, [&](loaded_model& m) { return m.step(job); });
  }
  result<double> handle(evaluate& job) {
    return with_model(job, [&](loaded_model& m) { return m.evaluate(job); });
  }
  result<std::vector<named_numbers>> handle(decode& job) {
    return with_model(job, [&](loaded_model& m) { return m.decode(job); });
  }
  result<void> handle(clear_states& job) {
    return with_model(job, [](loaded_model& m) { return m.clear_states(); });
  }
  result<communicator_handle> handle(join_communicator& job) {
    auto made = job.make();
    if (!made) return std::move(made).error();
    communicator* const c = made->get();
    groups_->add(c);
    return joined_.add(std::shared_ptr<communicator>(made->release(), [groups = groups_](communicator* left) {
      groups->remove(left);
      delete left;
    }));
  }
  result<group_report> handle(check_communicator& job) {
    auto found = joined_.find(job.group);
    if (!found) return std::move(found).error();
    auto report = check_group(***found);
    if (report) return report;
    failure why = std::move(report).error();
    why.where = owner_ + ", " + why.where;
    return why;
  }
  /// The queue has ended already; the thread returns after this job.
  result<void> handle(shut_down&) { return {}; }

  /// After a failure of the device. Peers learn the cause. What the destructors would tell a driver is leaked, on purpose: a driver whose device failed may hang.
  void abandon(const failure& cause) {
    groups_->abort(cause);
    if constexpr (!Device::on_host) {
      auto* const kept = new leaked{std::move(models_), std::move(joined_), std::move(device_)};
      kept->next = first_leaked().exchange(kept);
    }
  }

 private:
  struct model {
    std::shared_ptr<communicator> group;  // destroyed after the model
    std::unique_ptr<loaded_model> made;
  };
  using model_table = handle_table<model_kind, model>;
  using group_table = handle_table<communicator_kind, std::shared_ptr<communicator>>;
  /// What is never destroyed stays reachable, so that leak checkers tell it from what was forgotten.
  struct leaked {
    model_table models;
    group_table joined;
    std::unique_ptr<Device> device;
    leaked* next = nullptr;
  };
  static std::atomic<leaked*>& first_leaked() {
    static std::atomic<leaked*> first = nullptr;
    return first;
  }

  std::unique_ptr<Device> device_;
  std::string owner_;
  model_table models_;
  group_table joined_;
  std::shared_ptr<group_list> groups_;

  template <class J, class Run> auto with_model(J& job, const Run& run) -> result<typename J::reply> {
    auto found = models_.find(job.model);
    if (!found) return std::move(found).error();
    return run(*(*found)->made);
  }
  result<void> drop_one(const model_handle& h) {
    auto gone = models_.take(h);
    return gone ? result<void>() : std::move(gone).error();
  }
  result<void> drop_one(const communicator_handle& h) {
    auto gone = joined_.take(h);
    return gone ? result<void>() : std::move(gone).error();
  }
};

}  // namespace isotope::worker
