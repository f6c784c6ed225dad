// labels: threads
/// The jobs of a device worker: what each does and refuses, and that results are those of a session that is used directly.
#include <fstream>
#include <isotope/io/safetensors.hpp>

#include "rig.hpp"

using namespace worker_test;

namespace {

/// A session on this thread does what the worker's jobs do.
struct direct {
  iso::device<here> device = *iso::device<here>::open({.threads = 1});
  iso::device<here>::session session = *device.load(training_plan(), evaluation_plan());
  direct() { session.initialize(3); }
  struct inputs {
    std::vector<worker::named_numbers> all = batch();
    template <class Give> void each_input(const Give& give) const {
      for (const auto& x : all) give(std::string_view(x.name), std::span<const float>(std::get<std::vector<float>>(x.values)));
    }
  };
  std::vector<float> weights() {
    std::vector<float> w(4);
    EXPECT_TRUE(session.read(iso::tensor_kind::parameter, 0, w).ok());
    return w;
  }
};

}  // namespace

TEST(worker_jobs, steps_evaluations_and_reads_have_the_bits_of_a_session_that_is_used_directly) {
  direct d;
  const auto w = started();
  const auto m = load_training(w);
  for (int k = 0; k < 3; ++k) {
    const auto mine = value_of(w.submit(worker::step{m, {batch()}, scalars()}).get());
    const auto theirs = d.session.step(direct::inputs{}, scalars());
    EXPECT_EQ(mine.loss, theirs.loss);
    EXPECT_EQ(mine.grad_norm, theirs.grad_norm);
    EXPECT_FALSE(mine.skipped);
  }
  EXPECT_EQ(value_of(w.submit(worker::evaluate{m, batch()}).get()), d.session.evaluate(direct::inputs{}));
  const auto read = value_of(w.submit(worker::read{m}).get());
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].name, "w");
  EXPECT_EQ(read[0].values, d.weights());
}
