#pragma once
/// How programs are loaded onto a device, on every backend.
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

/// What programs, checkers and conformance ask of an opened device. `on_host`: it is the processor itself. `variations`: options under which the same plans must
/// give the same bits. `launch_variations`: one for each number of invocations in a workgroup that a
/// sweep asks for; none where a device has no workgroups. `launch_size`: the number that was asked for; -1: what a kernel chooses.
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

/// What a device derives from. `Device` has `result<Q> open_queue() const`, a queue for one more session, and `shared() const`, its Q::owner.
template <class Device, Queue Q> class loads_plans {
 public:
  using session = isotope::session<Q>;

  /// Loads a static program, with an evaluation program of the same parameters if one is named. @error as session::load
  template <class Program> result<session> load() const { return load(std::array{first_plan(Program::view())}); }
  template <class Program, class Evaluation> result<session> load() const {
    return load(std::array{first_plan(Program::view()), named_plan{session::evaluation_name, Evaluation::view()}});
  }
  /// Loads a plan made at run time, with one that evaluates the same parameters if it has steps; the session keeps them. @error as session::load
  result<session> load(dynamic_plan plan, dynamic_plan evaluation = {}) const {
    std::vector<owned_plan> all;
    const std::string called(first_plan(plan).name);
    all.push_back({called, std::move(plan)});
    if (!evaluation.steps.empty()) all.push_back({std::string(session::evaluation_name), std::move(evaluation)});
    return load(std::move(all));
  }
  /// Loads any number of plans over one set of parameters; the first is the one that runs where no other is named. @error as session::load
  result<session> load(std::span<const named_plan> plans) const { return loaded(plans); }
  result<session> load(std::vector<owned_plan> plans) const { return loaded(std::move(plans)); }

  /// Zeroed memory of this device. @error invalid_argument, out_of_memory
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
