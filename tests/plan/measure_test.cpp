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

/// With each plan that is loaded, a reading of the clock is 50 ms later after the one before, so a run of probe k takes k times 50 ms.
constexpr double tick = 0.05;
/// The first probe has one small step, the second 73 and the third 64, each of which waits for the one before.
constexpr double launch = tick / 72, barrier = 2 * tick / 63 - launch;

TEST(measure, reads_the_file_the_second_time_without_a_run) {
  auto device = isotope::device<T>::open({.threads = 2});
  ASSERT_TRUE(device.ok()) << device.error().line();
  int loads = 0, readings = 0;
  double now = 0;
  const auto clock = [&] { return ++readings, now += tick * loads; };
  const isotope::scratch_folder folder;
  const std::string path = folder.at("calib.json");
  const counting_device counting{*device, &loads};
  const auto load = [&](const std::string& key) { return isotope::load_or_measure<T>(counting, path, key, clock); };

  const auto first = load("a device");
  ASSERT_TRUE(first.ok()) << first.error().line();
  EXPECT_TRUE(first->measured_now);
  EXPECT_EQ(first->message, "");
  EXPECT_EQ(loads, 16);
  const int readings_of_probes = readings;
  EXPECT_GE(readings_of_probes, 2 * 3 * loads);

  const auto second = load("a device");
  ASSERT_TRUE(second.ok()) << second.error().line();
  EXPECT_FALSE(second->measured_now);
  EXPECT_EQ(second->message, "");
  EXPECT_EQ(second->figures.figures, first->figures.figures);
  EXPECT_EQ(second->figures.device, "a device");
  EXPECT_EQ(second->figures.format, "f32");
  EXPECT_EQ(loads, 16);
  EXPECT_EQ(readings, readings_of_probes);

  // Each figure is an amount over a time: that of a run less that of a run of one small step, and of what else the run does.
  const auto after = [](int probe, double besides = 0) { return (probe - 1) * tick - besides; };
  constexpr double macs = 12 * 64 * (256.0 * 257 / 2), elements = 1024 * 1024, next = launch + barrier;
  const double forward = after(9), stream_small = (1 << 20) / after(11), stream_large = (64 << 20) / after(12);
  const double moved = 2 * 4 * elements / std::sqrt(stream_small * stream_large);
  const std::pair<quantity, double> wanted[] = {{quantity::launch, launch},
                                                {quantity::barrier, barrier},
                                                {quantity::round_trip, 4 * tick},
                                                {quantity::product_small, 2 * 2.0 * 512 * 512 * 512 / after(5, next)},
                                                {quantity::product_large, 2.0 * 1024 * 1024 * 1024 / after(6)},
                                                {quantity::rows, 2 * 4.0 * 1024 * 8192 / after(7, next)},
                                                {quantity::rows_8, 2 * 4.0 * 1024 * 8192 / after(8, next)},
                                                {quantity::attention, 4 * macs / forward},
                                                {quantity::attention_grad, 10 * macs / after(10, forward)},
                                                {quantity::stream_small, stream_small},
                                                {quantity::stream_large, stream_large},
                                                {quantity::heavy, elements / after(13, moved)},
                                                {quantity::random, elements / after(14, moved)},
                                                {quantity::readback, 4.0 * 4096 * 1024 / (tick * 16 / 20)}};
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
  EXPECT_EQ(loads, 32);
}

}  // namespace measure_test
