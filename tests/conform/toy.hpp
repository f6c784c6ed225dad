#pragma once
/// Two ops of the tests' own with their specifications, all that the registry here holds, and a device that runs them, well or with a planted mistake.
#include <isotope/conform/batch_runner.hpp>
#include <isotope/conform/enumerate.hpp>
#include <isotope/conform/run.hpp>
#include <isotope/conform/unary_spec.hpp>
#include <isotope/op/all.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

namespace toy {
struct twice : isotope::op::unary_elementwise {
  static constexpr std::string_view name = "twice";
};
struct doubled : isotope::op::unary_elementwise {
  static constexpr std::string_view name = "doubled";
};
}  // namespace toy

namespace isotope::conform {

template <> struct op_spec<toy::twice> : unary_spec<op_spec<toy::twice>> {
  static constexpr std::array boundary{0.0, 1.0, infinity, nan};
  static constexpr numeric_policy policy{};
  static double f(double x) { return 2 * x; }
};
template <> struct op_spec<toy::doubled> : unary_spec<op_spec<toy::doubled>> {
  static constexpr std::array boundary{0.0, -0.0, 3.0, nan};
  static constexpr numeric_policy policy{};
  static constexpr track on = track::strict;
  static double f(double x) { return 2 * x; }
};
std::span<const spec> every_spec() {
  static constexpr std::array all{spec_of<toy::doubled>(), spec_of<toy::twice>()};
  return all;
}
std::span<const gradient_kernel_names> every_gradient_kernel() { return {}; }

}  // namespace isotope::conform

namespace toy {

namespace iso = isotope;
namespace conform = isotope::conform;

enum class mistake {
  none,
  wrong_element,
  not_a_number,
  past_the_end,
  writes_operand,
  second_run,
  by_position,
  reads_past_the_end,
  reads_leftovers,
  doubled_hangs
};

inline constexpr iso::kernel_info kernels[] = {{.op = &iso::info<twice>, .set = "reference"},
                                               {.op = &iso::info<doubled>, .set = "reference"},
                                               {.op = &iso::info<iso::op::elementwise>, .set = "reference"},
                                               {.op = &iso::info<iso::op::copy>, .set = "reference"},
                                               {.op = &iso::info<iso::op::fill>, .set = "reference"},
                                               {.op = &iso::info<iso::op::matmul>, .set = "reference"}};

/// Interprets the element-wise steps of a plan in host memory.
class loaded final : public conform::loaded_batch {
 public:
  loaded(iso::dynamic_plan p, mistake m) : plan_(std::move(p)), mistake_(m) {
    for (int k = 0; k < iso::value_kinds; ++k) region_[k].resize(std::size_t(plan_.totals.region[std::size_t(k)]) + 4096);
  }
  std::span<std::byte> inputs() override { return bytes_of(iso::value_kind::input); }
  std::span<const std::byte> outputs() override { return bytes_of(iso::value_kind::output); }
  iso::result<void> poison(std::byte with) override {
    for (const auto k : {iso::value_kind::output, iso::value_kind::temp}) std::fill(region_[int(k)].begin(), region_[int(k)].end(), with);
    return {};
  }
  iso::result<void> run(const iso::step_scalars&) override {
    ++runs_;
    for (const iso::step& s : plan_.steps)
      if (s.op == &iso::info<iso::op::elementwise>) {
        if (mistake_ == mistake::doubled_hangs && plan_.micro_ops[std::size_t(s.body)].op == &iso::info<doubled>)
          for (;;) ::pause();
        element_wise(plan_.operands[std::size_t(s.operands)], plan_.operands[std::size_t(s.operands) + 1]);
      }
    return {};
  }
  std::int64_t submissions() const override { return runs_; }

 private:
  iso::dynamic_plan plan_;
  mistake mistake_;
  std::vector<std::byte> region_[iso::value_kinds];
  std::int64_t runs_ = 0;

  std::span<std::byte> bytes_of(iso::value_kind k) { return {region_[int(k)].data(), std::size_t(plan_.totals.region[std::size_t(k)])}; }
  void element_wise(const iso::operand& x, const iso::operand& y) {
    auto* from = reinterpret_cast<float*>(region_[int(x.region)].data() + x.at);
    auto* to = reinterpret_cast<float*>(region_[int(y.region)].data() + y.at);
    const std::int64_t n = y.dims.count();
    const float left = n > 0 ? to[0] : 0;
    iso::extents at{};
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t p = 0;
      for (int k = 0; k < y.dims.rank; ++k) p += at[std::size_t(k)] * x.strides[std::size_t(k)];
      to[i] = 2 * from[p];
      for (int k = y.dims.rank - 1; k >= 0 && ++at[std::size_t(k)] == y.dims[k]; --k) at[std::size_t(k)] = 0;
    }
    if (n == 0) return;
    switch (mistake_) {
      case mistake::none:
      case mistake::doubled_hangs: break;
      case mistake::wrong_element: to[n - 1] = std::nextafter(to[n - 1], 1e30f); break;
      case mistake::not_a_number: to[n - 1] = std::nanf(""); break;
      case mistake::past_the_end: to[n] = 1; break;
      case mistake::writes_operand: from[0] = 5; break;
      case mistake::second_run: to[0] = runs_ == 2 ? std::nextafter(to[0], 9.0f) : to[0]; break;
      // perturbed plans have a load in front
      case mistake::by_position: to[0] = y.at > 16384 ? std::nextafter(to[0], 9.0f) : to[0]; break;
      case mistake::reads_past_the_end: to[n - 1] += 0 * from[n]; break;
      case mistake::reads_leftovers: to[0] = left > 0 ? to[0] : -to[0]; break;
    }
  }
};

class toy_device final : public conform::executor {
 public:
  /// `loads_before_loss`: after so many plans the device is gone.
  explicit toy_device(mistake m = mistake::none, int loads_before_loss = 1 << 30) : mistake_(m), loads_before_loss_(loads_before_loss) {}
  conform::target_facts facts() const override { return {"toy", "reference", iso::dtype::f32, kernels, kernels, 0, 0, false, nullptr}; }
  iso::device_info device() const override { return {.name = "toy", .backend = "toy", .facts = {}}; }
  iso::result<std::unique_ptr<conform::loaded_batch>> load(iso::dynamic_plan plan, bool) override {
    if (loads == loads_before_loss_) return iso::fail(iso::errc::device_lost, "gone", "toy", "open it again");
    ++loads;
    loaded_elems.push_back(elems_of(plan));
    return std::unique_ptr<conform::loaded_batch>(std::make_unique<loaded>(std::move(plan), mistake_));
  }
  int loads = 0;
  std::vector<std::int64_t> loaded_elems;  // of the result of each plan's first element-wise step, in the order of the loads

 private:
  static std::int64_t elems_of(const iso::dynamic_plan& plan) {
    for (const iso::step& s : plan.steps)
      if (s.op == &iso::info<iso::op::elementwise>) return plan.operands[std::size_t(s.operands) + 1].dims.count();
    return -1;
  }
  mistake mistake_;
  int loads_before_loss_;
};

/// A case of `n` numbers in [1, 2).
inline conform::test_case case_of(const iso::shape& n, std::uint64_t id = 0) {
  conform::test_case c;
  c.of = conform::find_spec("twice");
  c.id = id;
  c.seed = id + 1;
  c.in = {{n, iso::dtype::f32, &conform::generator_of<conform::generators::uniform>, 1, 2, conform::row_major}};
  return c;
}

/// What became of each case on a device with that mistake.
inline std::vector<conform::case_result> judged(mistake m, const std::vector<conform::test_case>& cases) {
  toy_device d(m);
  conform::batch_runner r(d);
  auto o = r.run(cases);
  EXPECT_TRUE(o.ok());
  return o.ok() ? *o : std::vector<conform::case_result>(cases.size());
}

}  // namespace toy
