// labels: library slow
/// The fingerprint of a device does not change between calls, and differs if the name, driver, reported facts, kernels or arithmetic differ.
#include <isotope/conform/executor_of.hpp>
#include <isotope/conform/fingerprint.hpp>
#include <isotope/conform/library_specs.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

namespace isotope::conform {
namespace fingerprint_test {

using numbers = std::vector<float>;
/// How another device differs: changes to all results of a batch, in the order of its ops, and to its reported facts.
struct difference {
  std::function<void(numbers&)> results = [](numbers&) {};
  std::function<void(device_info&)> told = [](device_info&) {};
  std::string_view set = "reference";
};

class changed_batch final : public loaded_batch {
 public:
  changed_batch(std::unique_ptr<loaded_batch> on, const difference& how) : on_(std::move(on)), how_(how) {}
  std::span<std::byte> inputs() override { return on_->inputs(); }
  result<void> poison(std::byte with) override { return on_->poison(with); }
  result<void> run(const step_scalars& x) override { return on_->run(x); }
  std::int64_t submissions() const override { return on_->submissions(); }
  std::span<const std::byte> outputs() override {
    const auto bytes = on_->outputs();
    seen_.resize(bytes.size() / sizeof(float));
    std::memcpy(seen_.data(), bytes.data(), seen_.size() * sizeof(float));
    how_.results(seen_);
    return std::as_bytes(std::span(seen_));
  }

 private:
  std::unique_ptr<loaded_batch> on_;
  const difference& how_;
  numbers seen_;
};
class changed_device final : public executor {
 public:
  changed_device(executor& on, difference how) : on_(on), how_(std::move(how)) {}
  target_facts facts() const override {
    target_facts f = on_.facts();
    f.set = how_.set;
    return f;
  }
  device_info device() const override {
    device_info d = on_.device();
    d.facts.push_back({"subgroups", "32, sizes 32 to 32"});
    d.facts.push_back({"f32 modes", "none"});
    how_.told(d);
    return d;
  }
  result<std::unique_ptr<loaded_batch>> load(dynamic_plan plan, bool perturbed) override {
    auto batch = on_.load(std::move(plan), perturbed);
    if (!batch) return batch.error();
    return std::unique_ptr<loaded_batch>(std::make_unique<changed_batch>(*std::move(batch), how_));
  }

 private:
  executor& on_;
  difference how_;
};

fingerprint taken(difference how = {}) {
  auto device = executor_of<target<backend::cpu, precision::f32, kernels::reference>>::open({.threads = 1});
  EXPECT_TRUE(device.ok());
  changed_device changed(**device, std::move(how));
  auto f = fingerprint_of(changed);
  EXPECT_TRUE(f.ok()) << (f.ok() ? "" : f.error().line());
  return f.ok() ? *f : fingerprint{};
}
auto fact(std::string_view name, std::string value) {
  return [=](device_info& d) {
    for (auto& f : d.facts)
      if (f.name == name) f.value = value;
  };
}
/// The names of the observations that differ for a device with this difference. The digits must differ in any case.
std::set<std::string> seen_otherwise(const fingerprint& whole, difference how) {
  const fingerprint f = taken(std::move(how));
  EXPECT_NE(f.digits, whole.digits);
  EXPECT_EQ(f.arithmetic.size(), whole.arithmetic.size());
  std::set<std::string> names;
  for (const auto& [name, value] : whole.arithmetic)
    if (f.arithmetic.at(name) != value) names.insert(name);
  return names;
}

TEST(conform_fingerprint, it_is_the_same_of_the_same_device) {
  const fingerprint a = taken(), b = taken();
  EXPECT_EQ(a.digits, b.digits);
  EXPECT_EQ(a.arithmetic, b.arithmetic);
  EXPECT_EQ(a.digits.size(), 16u);
  for (const auto* name : {"rounding", "subnormal numbers", "subgroups", "f32 modes", "ulps of exp", "ulps of log", "ulps of tanh"})
    EXPECT_TRUE(a.arithmetic.contains(name)) << name;
}
TEST(conform_fingerprint, another_driver_name_set_of_kernels_or_fact_changes_the_digits) {
  const fingerprint whole = taken();
  using names = std::set<std::string>;
  EXPECT_EQ(seen_otherwise(whole, {.told = [](device_info& d) { d.driver += " 25.0.8"; }}), names{});
  EXPECT_EQ(seen_otherwise(whole, {.told = [](device_info& d) { d.name += "2"; }}), names{});
  EXPECT_EQ(seen_otherwise(whole, {.set = "native"}), names{});
  EXPECT_EQ(seen_otherwise(whole, {.told = [](device_info& d) { d.facts.push_back({"f16 arithmetic", "yes"}); }}), names{});
  EXPECT_EQ(seen_otherwise(whole, {.told = fact("subgroups", "16, sizes 8 to 16")}), names{"subgroups"});
  EXPECT_EQ(seen_otherwise(whole, {.told = fact("f32 modes", "all")}), names{"f32 modes"});
}
TEST(conform_fingerprint, other_arithmetic_changes_what_was_seen_and_the_digits) {
  const fingerprint whole = taken();
  using names = std::set<std::string>;
  EXPECT_EQ(whole.arithmetic.at("rounding"), "to nearest, ties to even");
  EXPECT_EQ(whole.arithmetic.at("subnormal numbers"), "kept");
  const auto flush = [](numbers& y) {
    for (float& v : y)
      if (std::fabs(v) < 0x1p-126f) v = std::copysign(0.0f, v);
  };
  EXPECT_EQ(seen_otherwise(whole, {.results = flush}), names{"subnormal numbers"});
  // Sums that reveal the rounding mode, rounded to nearest and toward zero.
  const auto truncate = [](numbers& y) {
    constexpr float u = 0x1p-24f, up = 1 + 2 * u;
    const numbers nearest{1, 1 + 4 * u, -1, up, 1, -up}, toward_zero{1, up, -1, 1, 1 - u, -1};
    const auto at = std::search(y.begin(), y.end(), nearest.begin(), nearest.end());
    ASSERT_NE(at, y.end());
    std::copy(toward_zero.begin(), toward_zero.end(), at);
  };
  EXPECT_EQ(seen_otherwise(whole, {.results = truncate}), names{"rounding"});
  // Results of functions come before the probes: these exponentials are wrong by 8 units.
  const auto farther = [](numbers& y) {
    for (std::size_t i = 0; i < y.size() / 2; ++i) y[i] *= 1 + 0x1p-20f;
  };
  const auto off = seen_otherwise(whole, {.results = farther});
  EXPECT_TRUE(off.contains("ulps of exp") && !off.contains("rounding")) << off.size();
  // A change in the last bit of one result may show in the digits only.
  EXPECT_LE(seen_otherwise(whole, {.results = [](numbers& y) { y[64 + 5] = std::nextafter(y[64 + 5], 9.0f); }}).size(), 1u);
}

}  // namespace fingerprint_test
}  // namespace isotope::conform
