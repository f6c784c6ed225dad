/// What measure_device makes of the times of its probes, which run on the processor by a clock that the test turns.
#include "outcome.hpp"

#include <isotope/calibrate/measure.hpp>
#include <isotope/io/file.hpp>

#include "io/scratch_folder.hpp"

#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

using namespace plan_test;

namespace measure_test {

using isotope::quantity;
using T = on_cpu<isotope::precision::f32, isotope::kernels::portable>;

/// The processor, with a count of the sessions and plans that are loaded onto it.
struct counting_device {
  isotope::device<T> device;
  int *sessions, *plans;
  static constexpr bool on_host = true;
  auto load(std::vector<isotope::owned_plan> all) const {
    ++*sessions, *plans += int(all.size());
    return device.load(std::move(all));
  }
};

/// While part k is measured, a reading of the clock is k times 50 ms later than the one before, so a run takes that long.
constexpr double tick = 0.05;
constexpr std::string_view parts[] = {"load",         "a run",         "launch", "barrier", "round_trip", "product_small", "product_small",
                                      "load",         "product_large", "rows",   "rows_8",  "few_rows",   "attention",     "attention_grad",
                                      "stream_small", "stream_large",  "heavy",  "random",  "a row",      "readback"};
/// The first probe has one small step, the second 73 and the third 64, each of which waits for the one before.
constexpr double launch = tick / 72, barrier = 2 * tick / 63 - launch;

TEST(measure, reads_the_file_the_second_time_without_a_run) {
  auto device = isotope::device<T>::open({.threads = 2});
  ASSERT_TRUE(device.ok()) << device.error().line();
  int sessions = 0, plans = 0, readings = 0;
  double now = 0;
  std::vector<isotope::calibration_part> spent;
  const auto clock = [&] { return ++readings, now += tick * double(spent.size() % std::size(parts)); };
  const isotope::scratch_folder folder;
  const std::string path = folder.at("calib.json");
  const counting_device counting{*device, &sessions, &plans};
  const auto load = [&](const std::string& key) { return isotope::load_or_measure<T>(counting, path, key, clock, &spent); };

  const auto first = load("a device");
  ASSERT_TRUE(first.ok()) << first.error().line();
  EXPECT_TRUE(first->measured_now);
  EXPECT_EQ(first->message, "");
  EXPECT_EQ(sessions, 2);
  EXPECT_EQ(plans, 17);
  const int readings_of_probes = readings;
  EXPECT_GE(readings_of_probes, 2 * 3 * plans);
  ASSERT_EQ(spent.size(), std::size(parts));
  for (std::size_t k = 0; k < std::size(parts); ++k) {
    EXPECT_EQ(spent[k].name, parts[k]) << k;
    EXPECT_EQ(spent[k].seconds > 0, k > 0) << k << ": the clock stands while the first plans are loaded";
  }

  const auto second = load("a device");
  ASSERT_TRUE(second.ok()) << second.error().line();
  EXPECT_FALSE(second->measured_now);
  EXPECT_EQ(second->message, "");
  EXPECT_EQ(second->figures.figures, first->figures.figures);
  EXPECT_EQ(second->figures.device, "a device");
  EXPECT_EQ(second->figures.format, "f32");
  EXPECT_EQ(sessions, 2);
  EXPECT_EQ(readings, readings_of_probes);

  // Each figure is an amount over a time: that of a run less that of a run of one small step, and of what else the run does.
  const auto after = [](int part, double besides = 0) { return (part - 1) * tick - besides; };
  constexpr double macs = 12 * 64 * (256.0 * 257 / 2), elements = 1024 * 1024, next = launch + barrier;
  const double forward = after(12), stream_small = (1 << 20) / after(14), stream_large = (128 << 20) / after(15);
  const double of_8_mib = std::sqrt(stream_small * stream_large), of_2_mib = stream_small * std::pow(stream_large / stream_small, 1.0 / 6);
  // Two products follow each other, or four of large weights. One of 512 rows is no slower than the two; 32 rows say what all take longer.
  constexpr double of_512 = 2.0 * 512 * 512 * 512, of_32 = of_512 / 16;
  const double large = 2 * of_512 / after(5, next), longer = after(6, next) / 2 - of_32 / large;
  const double weight = 4.0 * 1024 * 8192, eight = after(10, 3 * next) / 4;
  ASSERT_GT((8 * after(11, next) / 2 - eight) / 7, 0.9 * eight) << "a tenth remains for the bytes";
  const std::pair<quantity, double> wanted[] = {{quantity::launch, launch},
                                                {quantity::barrier, barrier},
                                                {quantity::round_trip, 4 * tick},
                                                {quantity::product_small, of_512 / (of_512 / large + longer)},
                                                {quantity::product_large, large},
                                                {quantity::rows, 4 * weight / after(9, 3 * next)},
                                                {quantity::rows_8, weight / (0.1 * eight)},
                                                {quantity::few_rows, 0.9 * eight},
                                                {quantity::attention, 4 * macs / forward},
                                                {quantity::attention_grad, 10 * macs / after(13, forward)},
                                                {quantity::stream_small, stream_small},
                                                {quantity::stream_large, stream_large},
                                                {quantity::heavy, elements / after(16, 8 * elements / of_8_mib)},
                                                {quantity::random, elements / 4 / after(17, 2 * elements / of_2_mib)},
                                                {quantity::readback, (1 << 20) / tick}};
  static_assert(std::size(wanted) == isotope::quantities);
  for (const auto& [q, value] : wanted) {
    const isotope::figure& f = first->figures[q];
    EXPECT_NEAR(f.value / value, 1, 1e-6) << name_of(q);
    EXPECT_EQ(f.from, isotope::provenance::measured) << name_of(q);
  }

  spent.clear();
  const auto other = load("the device after a new driver");
  ASSERT_TRUE(other.ok()) << other.error().line();
  EXPECT_TRUE(other->measured_now);
  EXPECT_NE(other->message.find("another device, driver or library"), std::string::npos) << other->message;
  EXPECT_EQ(sessions, 4);
}

}  // namespace measure_test
