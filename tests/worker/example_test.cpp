/// The example of docs/ARCHITECTURE.md and worker/device_worker.hpp; repo.docs compares the texts.
#include "rig.hpp"

using namespace worker_test;

namespace {
using target = here;

// The example begins.
iso::result<double> first_loss(iso::dynamic_plan plan, std::vector<float> x, std::vector<float> y) {
  auto w = worker::device_worker::start<target>();
  if (!w) return w.error();
  auto load = worker::load_plans<target>(std::move(plan));
  load.seed = 3;
  const auto loaded = w->submit(std::move(load)).get();
  if (!loaded) return loaded.error();
  const auto step = w->submit(worker::step{loaded->model, {{{"x", x}, {"target", y}}}, {}}).get();
  if (!step) return step.error();
  return step->loss;
}
// The example ends.
}  // namespace

TEST(worker_example, trains_one_step) {
  const std::vector<float> ones(8, 1.0f);
  const auto loss = first_loss(training_plan(), ones, ones);
  ASSERT_TRUE(loss.ok()) << loss.error().line();
  EXPECT_GT(*loss, 0);
}
