#pragma once
/// The part of a device that loads programs and is the same on every backend.
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/device.hpp"
#include "session.hpp"

namespace isotope {

/// An opened device. `on_host`: it is the host processor. `variations` returns other options that must not change any result bit, e.g. numbers of threads.
/// `launch_variations` returns options for the workgroup sizes (invocations) that conformance runs try; empty if the device has no workgroups. `launch_size` is the
/// size that its options ask for; -1: each kernel chooses.
template <class D>
concept Device = requires(const D& d, const typename D::options& o) {
  { D::open(o) } -> std::same_as<result<D>>;
  { d.info() } -> std::same_as<device_info>;
  { d.threads() } -> std::same_as<int>;
  { D::on_host } -> std::convertible_to<bool>;
  { d.variations(o) } -> std::same_as<std::vector<typename D::options>>;
  { d.launch_variations(o) } -> std::same_as<std::vector<typename D::options>>;
  { d.launch_size() } -> std::same_as<std::int32_t>;
};

/// The base class of devices. `Device` provides `result<Q> open_queue() const`, which makes the queue of another session, and `shared() const`, its Q::owner.
template <class Device, Queue Q> class loads_plans {
 public:
  using session = isotope::session<Q>;
  using queue_type = Q;

  /// Loads a static program, with an evaluation program of the same parameters if one is named. @error as session::load
  template <class Program> result<session> load() const { return load(std::array{first_plan(Program::view())}); }
  template <class Program, class Evaluation> result<session> load() const {
    return load(std::array{first_plan(Program::view()), named_plan{session::evaluation_name, Evaluation::view()}});
  }
  /// Loads a plan made at run time, and an evaluation plan of the same parameters unless it is empty. The session owns both. @error as session::load
  result<session> load(dynamic_plan plan, dynamic_plan evaluation = {}) const {
    std::vector<owned_plan> all;
    const std::string called(first_plan(plan).name);
    all.push_back({called, std::move(plan)});
    if (!evaluation.steps.empty()) all.push_back({std::string(session::evaluation_name), std::move(evaluation)});
    return load(std::move(all));
  }
  /// Loads any number of plans over one set of parameters. The first one runs where no other is named. @error as session::load
  result<session> load(std::span<const named_plan> plans) const { return loaded(plans); }
  result<session> load(std::vector<owned_plan> plans) const { return loaded(std::move(plans)); }

  /// Allocates zeroed memory of this device. @error invalid_argument, out_of_memory
  template <class E> result<buffer<E, Q>> allocate(std::int64_t length) const {
    return buffer<E, Q>::allocate(length, static_cast<const Device&>(*this).shared());
  }

 private:
  friend Device;
  loads_plans() = default;
  static named_plan first_plan(const plan_view& p) { return {p.totals.moments > 0 || p.totals.trained > 0 ? "training" : "inference", p}; }
  template <class Plans> result<session> loaded(Plans&& plans) const {
    auto q = static_cast<const Device&>(*this).open_queue();
    if (!q) return q.error();
    return session::load(std::forward<Plans>(plans), *std::move(q));
  }
};

}  // namespace isotope
