/// A training loop that submits steps ahead of the device.
#include <train/trainer_rig.hpp>

namespace trainer_test {

using rig_ahead = rig_of<fake::submitting<fake::session>>;

/// What a run did, apart from the time that it took.
template <class Rig> std::string story(const Rig& r) {
  std::string s;
  for (const auto& e : r.sink.steps)
    s += "step " + std::to_string(e.step) + " " + std::to_string(e.loss) + " " + std::to_string(e.learning_rate) + "\n";
  for (const auto& e : r.sink.evals)
    s += "eval " + std::to_string(e.step) + " " + std::to_string(e.val_loss) + " " + std::to_string(e.best) + "\n";
  for (const auto& k : r.store.saves) s += "saved " + std::to_string(k.step) + " " + std::to_string(k.best) + "\n";
  for (const auto& tensor : r.session.values[0])
    for (const float v : tensor) s += std::to_string(v) + " ";
  return s;
}
TEST(steps_ahead, steps_submitted_ahead_give_the_run_of_steps_that_are_waited_for) {
  for (const int eval_every : {0, 1, 3, 7})
    for (const int checkpoint_every : {0, 4})
      for (const int stop_after : {0, 11}) {
        rig waits;
        rig_ahead ahead;
        const auto set = [&](auto& r) {
          r.options.steps = 25, r.options.eval_every = eval_every, r.options.checkpoint_every = checkpoint_every,
          r.options.stop_after = stop_after;
          r.options.patience = eval_every == 3 ? 2 : 0;
          r.session.val_losses = [](std::int64_t n) { return n < 3 ? 1.0 / double(n) : 1.0; };
          return r.run();
        };
        const auto a = set(waits), b = set(ahead);
        ASSERT_TRUE(a && b);
        EXPECT_EQ(story(ahead), story(waits));
        EXPECT_EQ(b->why, a->why);
        EXPECT_GE(ahead.session.most, eval_every == 1 ? 1U : 2U);
        EXPECT_LE(ahead.session.most, eval_every == 1 ? 1U : ahead.session.frames);
        EXPECT_FALSE(ahead.session.disturbed);
      }
}
TEST(steps_ahead, one_step_is_in_flight_if_it_takes_a_second_and_none_where_a_skipped_one_changes_the_next) {
  rig_ahead slow, skips;
  rig waits;
  const auto run = [](auto& r) { return r.run().ok(); };
  slow.time_of_a_reading = 0.75;
  EXPECT_TRUE(run(slow) && run(waits));
  EXPECT_EQ(slow.session.most, 1U);
  skips.options.on_non_finite = train::non_finite::skip;
  EXPECT_TRUE(run(skips));
  EXPECT_EQ(skips.session.most, 0U);
  EXPECT_EQ(story(skips), story(waits));
}
TEST(steps_ahead, an_interruption_lets_the_steps_in_flight_end_and_saves_the_last) {
  rig_ahead r;
  rig same;
  r.options.steps = 40;
  r.sink.on_step = [&](const train::step_event& e) {
    if (e.step == 6) r.interrupted = true;
  };
  const auto done = r.run();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->why, train::ending::interrupted);
  EXPECT_GE(done->steps, 6);
  EXPECT_LE(done->steps, 6 + 4);
  EXPECT_EQ(r.session.flying, 0U);
  EXPECT_EQ(r.store.saves, (std::vector<kept>{{done->steps, false}}));
  same.options = r.options;
  same.options.stop_after = done->steps;
  ASSERT_TRUE(same.run());
  EXPECT_EQ(story(r), story(same));
}
TEST(steps_ahead, a_device_that_fails_with_steps_in_flight_ends_the_run_at_the_step_that_was_lost) {
  rig_of<fake::submitting<fake::mortal_session>> r;
  r.options.checkpoint_every = 3;
  r.session.lost_step = 8;
  const auto done = r.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().where, "step 8, fake");
  EXPECT_EQ(r.state.step, 7);
  EXPECT_EQ(r.sink.steps.size(), 7U);
  EXPECT_EQ(r.store.saves, (std::vector<kept>{{3, false}, {6, false}}));
}
TEST(steps_ahead, a_loss_that_is_not_finite_stops_a_run_with_steps_in_flight_at_its_step) {
  rig_ahead r;
  r.options.checkpoint_every = 6;
  r.session.losses = [](std::int64_t step) { return step == 8 ? nan : 1.0; };
  const auto done = r.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().where, "step 8");
  EXPECT_EQ(r.sink.steps.size(), 8U);
  EXPECT_EQ(r.store.saves, (std::vector<kept>{{6, false}}));
}
TEST(steps_ahead, data_that_cannot_be_read_ends_the_run_before_the_step_and_keeps_the_checkpoints) {
  const auto lose = [](auto& r, auto& validates) {
    r.options.checkpoint_every = 2;
    const auto done = r.run();
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().line(), "shard: read failed (fix: check the disk)");
    EXPECT_EQ(r.session.steps, 5);
    EXPECT_EQ(r.sink.steps.size(), 5U);
    EXPECT_EQ(r.store.saves, (std::vector<kept>{{2, false}, {4, false}}));
    validates.data.lost = 100, validates.data.lost_validation = true;
    EXPECT_FALSE(validates.run().ok());
    EXPECT_TRUE(validates.store.saves.empty() && validates.sink.evals.empty());
  };
  rig_of<fake::session, fake::mortal_data> waits, waits_to_validate;
  rig_of<fake::submitting<fake::session>, fake::mortal_data> ahead, ahead_to_validate;
  lose(waits, waits_to_validate);
  lose(ahead, ahead_to_validate);
}

}  // namespace trainer_test
