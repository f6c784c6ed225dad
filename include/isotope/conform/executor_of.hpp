#pragma once
/// The executor of a target. A backend whose sessions let the host write their memory in another way than by `region` specialises session_memory.
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../plan/kernels.hpp"
#include "executor.hpp"
#include "hash.hpp"

namespace isotope::conform {

/// Distinguishes builds of a shader.
inline std::uint64_t digest_of(std::span<const std::uint32_t> words) {
  stable_hash h;
  for (const std::uint32_t w : words) h.add(w);
  return h.value();
}

template <class Session> class batch_of final : public loaded_batch {
 public:
  batch_of(Session s, std::int64_t input_bytes, std::int64_t output_bytes, std::vector<std::int32_t> swept)
      : session_(std::move(s)), input_bytes_(input_bytes), output_bytes_(output_bytes), swept_(std::move(swept)) {}

  std::span<std::byte> inputs() override {
    auto front = session_.template input<float>("front");
    return {reinterpret_cast<std::byte*>(front->data()), std::size_t(input_bytes_)};
  }
  std::span<const std::byte> inputs_after() override {
    if constexpr (requires { session_.device_inputs(); }) return session_.device_inputs().first(std::size_t(input_bytes_));
    else return inputs();
  }
  std::span<const std::byte> outputs() override {
    auto front = session_.template output<float>("front");
    return {reinterpret_cast<const std::byte*>(front->data()), std::size_t(output_bytes_)};
  }
  result<void> poison(std::byte with) override {
    if constexpr (requires { session_.staging(); }) {
      std::vector<std::byte> piece(std::size_t(std::min<std::int64_t>(session_.arena().bytes(), 1 << 20)), with);
      for (std::int64_t at = 0; at < session_.arena().bytes(); at += std::int64_t(piece.size())) {
        const auto n = std::min<std::int64_t>(std::int64_t(piece.size()), session_.arena().bytes() - at);
        if (auto r = session_.staging().upload(session_.arena(), at, std::span<const std::byte>(piece.data(), std::size_t(n / 4 * 4))); !r)
          return r;
      }
    } else {
      for (const value_kind k : {value_kind::output, value_kind::temp}) {
        const auto bytes = session_.region_bytes(k);
        if (!bytes.empty()) std::memset(bytes.data(), int(with), bytes.size());
      }
    }
    return {};
  }
  result<void> run(const step_scalars& x) override {
    ++runs_;
    session_.run(x);
    if constexpr (requires { session_.status(); }) return session_.status();
    return {};
  }
  std::int64_t submissions() const override {
    if constexpr (requires { session_.counters().submits; }) return session_.counters().submits;
    else return runs_;
  }
  std::vector<step_tier> tiers() const override {
    std::vector<step_tier> all;
    if constexpr (requires { session_.dispatches(); })
      for (const auto& d : session_.dispatches())
        all.push_back({d.tier, d.code->name, d.reason,
                       d.step < 0 ? std::string_view() : session_.plan().steps[std::size_t(d.step)].op->name, std::int32_t(d.invocations()),
                       d.launch_sizes(swept_), digest_of(d.code->words)});
    return all;
  }

 private:
  Session session_;
  std::int64_t input_bytes_, output_bytes_, runs_ = 0;
  std::vector<std::int32_t> swept_;
};

/// A kernel of matmul may declare its longest serial sum: `static constexpr std::int64_t chain(std::int64_t K)`.
template <class K> constexpr auto declared_chain() -> std::int64_t (*)(std::int64_t) {
  if constexpr (requires { K::chain(std::int64_t(1)); }) return &K::chain;
  else return nullptr;
}
template <Target T> constexpr auto chain_of_products() -> std::int64_t (*)(std::int64_t) {
  std::int64_t (*found)(std::int64_t) = nullptr;
  bool seen = false;
  [&]<class... K>(boost::mp11::mp_list<K...>) {
    ((seen || describe_kernel<K>().op != &info<op::matmul> ? void() : (seen = true, void(found = declared_chain<K>()))), ...);
  }(target_kernels<T>{});
  return found;
}

template <Target T> class executor_of final : public executor {
  using device_type = isotope::device<T>;

 public:
  /// @error as device<T>::open
  static result<std::unique_ptr<executor>> open(const device_options& o) {
    auto first = device_type::open(o);
    if (!first) return first.error();
    auto e = std::make_unique<executor_of>();
    e->options_ = o;
    e->devices_.push_back(*std::move(first));
    if (T::backend::name == "cpu")  // launch sizes of a processor are threads
      for (const int threads : {1, 2, 3}) {
        if (threads == e->devices_[0].threads()) continue;
        device_options other = o;
        other.threads = threads;
        auto next = device_type::open(other);
        if (!next) return next.error();
        e->devices_.push_back(*std::move(next));
      }
    return std::unique_ptr<executor>(std::move(e));
  }
  target_facts facts() const override {
    return {T::backend::name,
            T::kernel_set::name,
            T::precision::type,
            kernel_table<T>,
            all_kernels<typename T::backend>,
            T::backend::chunk_bytes,
            tensor_limit<typename T::backend>(),
            T::backend::name != "cpu",
            chain_of_products<T>(),
            swept_                              ? "sweep"
            : options_.diagnose.launch_size > 0 ? std::to_string(options_.diagnose.launch_size)
                                                : "own"};
  }
  device_info device() const override { return devices_[0].info(); }
  result<std::unique_ptr<loaded_batch>> load(dynamic_plan plan, bool perturbed) override {
    const auto in = plan.totals.region[std::size_t(value_kind::input)], out = plan.totals.region[std::size_t(value_kind::output)];
    const std::size_t others = devices_.size() - 1, which = perturbed && others > 0 ? 1 + turn_++ % others : 0;
    auto s = devices_[which].load(std::move(plan));
    if (!s) return s.error();
    return std::unique_ptr<loaded_batch>(std::make_unique<batch_of<typename device_type::session>>(*std::move(s), in, out, launch_sizes()));
  }
  int perturbations() const override { return swept_ ? int(devices_.size()) - 1 : 1; }
  result<void> sweep() override {
    if constexpr (requires { devices_[0].launch_sizes(); }) {
      for (const std::int32_t n : launch_sizes()) {
        device_options other = options_;
        other.diagnose.launch_size = n;
        auto next = device_type::open(other);
        if (!next) return next.error();
        devices_.push_back(*std::move(next));
      }
      swept_ = true;
      return {};
    } else {
      return executor::sweep();
    }
  }

 private:
  std::vector<device_type> devices_;  // the first runs plain plans, the others perturbed ones in turn
  std::size_t turn_ = 0;
  device_options options_;
  bool swept_ = false;

  /// Sizes that a sweep adds to the kernels' own choice; empty if a backend has no workgroups.
  std::vector<std::int32_t> launch_sizes() const {
    if constexpr (requires { devices_[0].launch_sizes(); }) return devices_[0].launch_sizes();
    else return {};
  }
};

}  // namespace isotope::conform
