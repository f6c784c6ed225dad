#pragma once
/// The executor of a target.
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
  batch_of(Session s, std::int64_t input_bytes, std::int64_t output_bytes)
      : session_(std::move(s)), input_bytes_(input_bytes), output_bytes_(output_bytes) {}

  std::span<std::byte> inputs() override { return session_.input_bytes().first(std::size_t(input_bytes_)); }
  std::span<const std::byte> inputs_after() override { return session_.device_inputs().first(std::size_t(input_bytes_)); }
  std::span<const std::byte> outputs() override {
    auto front = session_.template output<float>("front");
    return {reinterpret_cast<const std::byte*>(front->data()), std::size_t(output_bytes_)};
  }
  result<void> poison(std::byte with) override { return session_.poison(with); }
  result<void> run(const step_scalars& x) override {
    session_.run(x);
    return session_.status();
  }
  std::int64_t submissions() const override { return session_.counters().submits; }
  std::vector<step_tier> tiers() const override {
    std::vector<step_tier> all;
    if constexpr (Session::records_dispatches)
      for (const auto& l : session_.launches())
        all.push_back({l.set, l.code, l.reason, l.step < 0 ? std::string_view() : session_.plan().steps[std::size_t(l.step)].op->name,
                       std::int32_t(l.invocations), l.launch_sizes, digest_of(l.words)});
    return all;
  }

 private:
  Session session_;
  std::int64_t input_bytes_, output_bytes_;
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
  using options = typename T::backend::options;

 public:
  /// @error as device<T>::open
  static result<std::unique_ptr<executor>> open(const options& o) {
    auto first = device_type::open(o);
    if (!first) return first.error();
    auto e = std::make_unique<executor_of>();
    e->options_ = o;
    e->devices_.push_back(*std::move(first));
    for (const options& other : e->devices_[0].variations(o))
      if (auto r = e->add(other); !r) return r.error();
    return std::unique_ptr<executor>(std::move(e));
  }
  target_facts facts() const override {
    return {T::backend::name,
            T::kernel_set::name,
            T::precision::type,
            kernel_table<T>,
            all_kernels<typename T::backend>,
            T::backend::chunk_bytes,
            T::backend::tensor_bytes,
            !device_type::on_host,
            chain_of_products<T>(),
            swept_                          ? "sweep"
            : devices_[0].launch_size() > 0 ? std::to_string(devices_[0].launch_size())
                                            : "own"};
  }
  device_info device() const override { return devices_[0].info(); }
  result<std::unique_ptr<loaded_batch>> load(dynamic_plan plan, bool perturbed) override {
    const auto in = plan.totals.region[std::size_t(value_kind::input)], out = plan.totals.region[std::size_t(value_kind::output)];
    const std::size_t others = devices_.size() - 1, which = perturbed && others > 0 ? 1 + turn_++ % others : 0;
    auto s = devices_[which].load(std::move(plan));
    if (!s) return s.error();
    return std::unique_ptr<loaded_batch>(std::make_unique<batch_of<typename device_type::session>>(*std::move(s), in, out));
  }
  int perturbations() const override { return swept_ ? int(devices_.size()) - 1 : 1; }
  result<void> sweep() override {
    const std::vector<options> sizes = devices_[0].launch_variations(options_);
    if (sizes.empty()) return executor::sweep();
    for (const options& other : sizes)
      if (auto r = add(other); !r) return r;
    swept_ = true;
    return {};
  }

 private:
  std::vector<device_type> devices_;  // the first runs plain plans, the others perturbed ones in turn
  std::size_t turn_ = 0;
  options options_;
  bool swept_ = false;

  result<void> add(const options& o) {
    auto next = device_type::open(o);
    if (!next) return next.error();
    devices_.push_back(*std::move(next));
    return {};
  }
};

}  // namespace isotope::conform
