/// What measure_device makes of the times of its probes, which run on the processor by a clock that the test turns.
#include "outcome.hpp"

#include <isotope/calibrate/measure.hpp>
#include <isotope/io/file.hpp>

#include "io/scratch_folder.hpp"

#include <iterator>
#include <utility>

using namespace plan_test;

namespace measure_test {

using isotope::quantity;
using T = on_cpu<isotope::precision::f32, isotope::kernels::portable>;

/// The processor, with a count of the plans that are loaded onto it.
struct counting_device {
  isotope::device<T> device;
  int* loads;
  static constexpr bool on_host = true;
  auto load(isotope::dynamic_plan p) const {
    ++*loads;
    return device.load(std::move(p));
  }
};

/// Every reading of the clock is 50 ms after the one before, so a run of any probe takes 50 ms.
constexpr double tick = 0.05;
/// The probes of small steps have 64 and 73 of them.
constexpr double launch = tick / 73, barrier = tick / 64 - launch;

TEST(measure, reads_the_file_the_second_time_without_a_run) {
  auto device = isotope::device<T>::open({.threads = 2});
  ASSERT_TRUE(device.ok()) << device.error().line();
  int loads = 0, readings = 0;
  double now = 0;
  const auto clock = [&] { return ++readings, now += tick; };
  const isotope::scratch_folder folder;
  const std::string path = folder.at("calib.json");
  const counting_device counting{*device, &loads};
  const auto load = [&](const std::string& key) { return isotope::load_or_measure<T>(counting, path, key, clock); };

  const auto first = load("a device");
  ASSERT_TRUE(first.ok()) << first.error().line();
  EXPECT_TRUE(first->measured_now);
  EXPECT_EQ(first->message, "");
  EXPECT_EQ(loads, 15);
  const int readings_of_probes = readings;
  EXPECT_GE(readings_of_probes, 2 * 3 * loads);

  const auto second = load("a device");
  ASSERT_TRUE(second.ok()) << second.error().line();
  EXPECT_FALSE(second->measured_now);
  EXPECT_EQ(second->message, "");
  EXPECT_EQ(second->figures.figures, first->figures.figures);
  EXPECT_EQ(second->figures.device, "a device");
  EXPECT_EQ(second->figures.format, "f32");
  EXPECT_EQ(loads, 15);
  EXPECT_EQ(readings, readings_of_probes);

  // Each figure is an amount over a time: that of a run less that of a launch, and of what else the run does, but at least a twentieth of the run.
  constexpr double work = tick - launch, of_two = work - (launch + barrier), least = tick / 20;
  constexpr double macs = 12 * 64 * (256.0 * 257 / 2), elements = 1024 * 1024;
  const double stream_small = (1 << 20) / work, stream_large = (64 << 20) / work;
  const std::pair<quantity, double> wanted[] = {{quantity::launch, launch},
                                                {quantity::barrier, barrier},
                                                {quantity::round_trip, tick},
                                                {quantity::product_small, 2 * 2.0 * 512 * 512 * 512 / of_two},
                                                {quantity::product_large, 2.0 * 1024 * 1024 * 1024 / work},
                                                {quantity::rows, 2 * 4.0 * 1024 * 8192 / of_two},
                                                {quantity::rows_8, 2 * 4.0 * 1024 * 8192 / of_two},
                                                {quantity::attention, 4 * macs / work},
                                                {quantity::attention_grad, 10 * macs / least},
                                                {quantity::stream_small, stream_small},
                                                {quantity::stream_large, stream_large},
                                                {quantity::heavy, elements / least},
                                                {quantity::random, elements / least},
                                                {quantity::readback, 4.0 * 4096 * 1024 / least}};
  static_assert(std::size(wanted) == isotope::quantities);
  for (const auto& [q, value] : wanted) {
    const isotope::figure& f = first->figures[q];
    EXPECT_NEAR(f.value / value, 1, 1e-6) << name_of(q);
    EXPECT_EQ(f.from, isotope::provenance::measured) << name_of(q);
  }

  const auto other = load("the device after a new driver");
  ASSERT_TRUE(other.ok()) << other.error().line();
  EXPECT_TRUE(other->measured_now);
  EXPECT_NE(other->message.find("another device, driver or library"), std::string::npos) << other->message;
  EXPECT_EQ(loads, 30);
}

}  // namespace measure_test
