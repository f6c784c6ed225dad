#include <train/trainer_rig.hpp>

namespace trainer_test {

TEST(trainer, runs_every_step_and_reports_rate_counter_and_time) {
  rig r;
  r.options.accumulate = 3;
  ASSERT_TRUE(r.run());
  ASSERT_EQ(r.sink.steps.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(r.session.seen[i].optimizer_step, std::int64_t(i) + 1);
    EXPECT_EQ(r.session.seen[i].counter, i * 3);
    EXPECT_EQ(r.session.seen[i].gradient_scale, 1.0f);
    EXPECT_EQ(r.sink.steps[i].step, std::int64_t(i) + 1);
    EXPECT_EQ(r.sink.steps[i].ms, 250);
    EXPECT_EQ(r.sink.steps[i].tokens_per_s, 2 * 2 * 3 / 0.25);
  }
  EXPECT_EQ(r.session.seen[2].learning_rate, 1e-2f);
  EXPECT_EQ(r.session.seen[0].learning_rate, float(1e-2 / 3));
}

TEST(trainer, validates_every_n_steps_and_once_at_the_end) {
  rig r;
  r.options.eval_every = 4;
  ASSERT_TRUE(r.run());
  ASSERT_EQ(r.sink.evals.size(), 3u);
  EXPECT_EQ(r.sink.evals[0].step, 4);
  EXPECT_EQ(r.sink.evals[1].step, 8);
  EXPECT_EQ(r.sink.evals[2].step, 10);
  rig even;
  even.options.eval_every = 5;
  ASSERT_TRUE(even.run());
  EXPECT_EQ(even.sink.evals.size(), 2u);
}

TEST(trainer, the_end_carries_the_last_and_the_best_validation_loss_and_the_bytes) {
  rig r;
  r.options.eval_every = 3;
  const double losses[] = {4, 2, 3, 2.5};
  // Nine tokens give four windows of two, so each evaluation has two batches of two.
  r.session.val_losses = [&](std::int64_t n) { return losses[(n - 1) / 2]; };
  const auto done = r.run();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->val_loss, 2.5);
  EXPECT_EQ(done->best_val_loss, 2);
  EXPECT_EQ(done->steps, 10);
  EXPECT_EQ(done->why, train::ending::finished);
  EXPECT_EQ(done->planned_bytes, 1000);
  EXPECT_EQ(done->measured_bytes, 1024);
  EXPECT_EQ(r.state.best.step, 6);
  ASSERT_EQ(r.sink.ends.size(), 1u);
}

TEST(trainer, a_split_without_a_whole_window_gives_no_validation_loss) {
  rig r;
  r.data.split = {1, 2};
  r.options.eval_every = 1;
  const auto done = r.run();
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->val_loss);
  EXPECT_FALSE(done->best_val_loss);
  EXPECT_EQ(r.session.evaluations, 0);
}

TEST(trainer, saves_every_n_steps_the_best_and_the_end) {
  rig r;
  r.options.eval_every = 5;
  r.options.checkpoint_every = 4;
  const double losses[] = {3, 4};
  r.session.val_losses = [&](std::int64_t n) { return losses[(n - 1) / 2]; };
  ASSERT_TRUE(r.run());
  EXPECT_EQ(r.store.saves, (std::vector<kept>{{4, false}, {5, true}, {8, false}, {10, false}}));
  EXPECT_EQ(r.sink.checkpoints.size(), 4u);
  EXPECT_EQ(r.sink.checkpoints[1].path, "step-5");
  EXPECT_TRUE(r.sink.checkpoints[1].best);
}

TEST(trainer, early_stopping_waits_for_patience_evaluations_without_a_better_loss) {
  rig r;
  r.options.steps = 100;
  r.options.eval_every = 2;
  r.options.patience = 3;
  const double losses[] = {5, 4, 4, 4.5, 3.9, 4, nan, 4, 1, 1};
  r.session.val_losses = [&](std::int64_t n) { return losses[(n - 1) / 2]; };
  const auto done = r.run();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->why, train::ending::early);
  EXPECT_EQ(done->steps, 16);
  EXPECT_EQ(done->best_val_loss, 3.9);
  EXPECT_EQ(r.store.saves.back(), (kept{16, false}));
}

TEST(trainer, a_non_finite_loss_stops_the_run_naming_the_step_and_keeps_the_last_checkpoint) {
  rig r;
  r.options.checkpoint_every = 3;
  r.session.losses = [](std::int64_t step) { return step == 8 ? nan : 1.0; };
  const auto done = r.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, isotope::errc::non_finite);
  EXPECT_EQ(done.error().where, "step 8");
  EXPECT_NE(done.error().what.find("step 6 is the last good one"), std::string::npos) << done.error().what;
  EXPECT_EQ(r.store.saves.back(), (kept{6, false}));
  EXPECT_TRUE(r.sink.steps.back().skipped);
  EXPECT_TRUE(r.sink.ends.empty());
}

TEST(trainer, a_failed_device_ends_the_run_with_its_failure_and_keeps_the_checkpoints) {
  for (const auto how : {isotope::errc::device_lost, isotope::errc::timeout, isotope::errc::out_of_memory})
    for (const auto policy : {train::non_finite::stop, train::non_finite::skip}) {
      rig_of<fake::mortal_session> r;
      r.options.checkpoint_every = 3;
      r.options.on_non_finite = policy;
      r.session.lost_step = 8;
      r.session.how = how;
      const auto done = r.run();
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, how);
      EXPECT_EQ(done.error().where, "step 8, fake");
      EXPECT_EQ(done.error().what, "the device is gone; the checkpoint of step 6 is the last one");
      EXPECT_EQ(r.state.step, 7) << "the lost step does not count";
      EXPECT_EQ(r.sink.steps.size(), 7u);
      EXPECT_EQ(r.store.saves, (std::vector<kept>{{3, false}, {6, false}}));
      EXPECT_TRUE(r.sink.ends.empty());
    }
}

TEST(trainer, a_device_that_fails_while_validating_leaves_no_best_checkpoint) {
  rig_of<fake::mortal_session> r;
  r.options.eval_every = 4;
  r.session.lost_evaluation = 3;  // each validation evaluates twice
  const auto done = r.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().where, "step 8, fake");
  EXPECT_EQ(r.sink.evals.size(), 1u);
  EXPECT_EQ(r.store.saves, (std::vector<kept>{{4, true}}));
}

TEST(profile, off_it_reads_the_clock_twice_a_step_and_twice_a_run) {
  static_assert(std::is_empty_v<train::unprofiled>);
  rig r;
  r.options.eval_every = 5;
  r.options.checkpoint_every = 5;
  ASSERT_TRUE(r.run());
  EXPECT_EQ(r.readings, 2 * 10 + 2);
}

TEST(profile, on_it_counts_and_times_every_phase_and_asks_the_session_nothing_more) {
  rig plain, r;
  for (rig* x : {&plain, &r}) x->options.eval_every = 5, x->options.checkpoint_every = 4;
  train::loop_profile profile;
  ASSERT_TRUE(plain.run());
  ASSERT_TRUE(r.run(profile));
  const auto of = [&](train::loop_phase p) { return profile.phases[std::size_t(p)]; };
  EXPECT_EQ(of(train::loop_phase::data).times, 10);
  EXPECT_EQ(of(train::loop_phase::step).times, 10);
  EXPECT_EQ(of(train::loop_phase::evaluate).times, 2);
  EXPECT_EQ(of(train::loop_phase::save).times, std::int64_t(r.store.saves.size()));
  EXPECT_EQ(of(train::loop_phase::wait).times, 0);
  for (const auto& f : profile.phases) {  // each phase is between two readings of a clock that advances by a quarter per reading
    EXPECT_EQ(f.seconds, 0.25 * double(f.times));
    EXPECT_EQ(f.longest, f.times > 0 ? 0.25 : 0);
  }
  EXPECT_EQ(r.session.steps, plain.session.steps);
  EXPECT_EQ(r.session.evaluations, plain.session.evaluations);
  EXPECT_EQ(r.session.values[0], plain.session.values[0]);
  const std::string text = text_of(profile);
  EXPECT_NE(text.find("step\t10\t250.000\t250.000\t"), text.npos) << text;
}

TEST(trainer, skipping_goes_on_without_counting_an_update) {
  rig r;
  r.options.on_non_finite = train::non_finite::skip;
  r.session.losses = [](std::int64_t step) { return step == 3 || step == 4 ? nan : 1.0; };
  const auto done = r.run();
  ASSERT_TRUE(done);
  EXPECT_EQ(r.state.skipped, 2);
  EXPECT_EQ(r.state.skipped_in_a_row, 0);
  EXPECT_EQ(r.session.seen[2].optimizer_step, 3);
  EXPECT_EQ(r.session.seen[4].optimizer_step, 3);
  EXPECT_EQ(r.session.seen[4].counter, 4u);
}

TEST(trainer, skipping_gives_up_after_the_limit_and_names_the_first_bad_step) {
  rig r;
  r.options.on_non_finite = train::non_finite::skip;
  r.options.skip_limit = 2;
  r.session.losses = [](std::int64_t step) { return step >= 5 ? nan : 1.0; };
  const auto done = r.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().where, "step 5");
  EXPECT_EQ(r.session.steps, 7);
}

TEST(trainer, an_interruption_finishes_the_step_saves_and_does_not_evaluate) {
  rig r;
  r.options.eval_every = 4;
  r.sink.on_step = [&](const train::step_event& e) {
    if (e.step == 6) r.interrupted = true;
  };
  const auto done = r.run();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->why, train::ending::interrupted);
  EXPECT_EQ(done->steps, 6);
  EXPECT_EQ(r.sink.evals.size(), 1u);
  EXPECT_EQ(r.store.saves.back(), (kept{6, false}));
}

TEST(trainer, an_interruption_before_the_first_step_saves_nothing) {
  rig r;
  r.interrupted = true;
  const auto done = r.run();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->why, train::ending::interrupted);
  EXPECT_TRUE(r.store.saves.empty());
}

TEST(trainer, a_failed_save_ends_the_run_with_that_failure) {
  rig r;
  r.options.checkpoint_every = 2;
  r.store.fail_at = 4;
  const auto done = r.run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, isotope::errc::write_failed);
  EXPECT_EQ(r.store.saves.size(), 1u);
}

TEST(trainer, a_stopped_and_resumed_run_has_the_bits_of_an_uninterrupted_one) {
  for (std::int64_t stop = 1; stop < 10; ++stop) {
    rig whole, parts;
    for (rig* r : {&whole, &parts}) {
      r->options.eval_every = 3;
      r->options.checkpoint_every = 4;
      r->options.accumulate = 2;
      r->options.on_non_finite = train::non_finite::skip;
      r->options.patience = 5;
    }
    ASSERT_TRUE(whole.run());
    parts.options.stop_after = stop;
    const auto first = parts.run();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->why, train::ending::stopped);
    EXPECT_EQ(first->steps, stop);

    rig later;
    later.options = parts.options;
    later.options.stop_after = 0;
    for (int k = 0; k < 4; ++k) later.session.values[k] = parts.store.values[k];
    later.state = parts.store.state;
    ASSERT_TRUE(later.run());
    for (int k = 0; k < 4; ++k) EXPECT_EQ(later.session.values[k], whole.session.values[k]) << stop;
    EXPECT_EQ(later.state, whole.state) << stop;
    EXPECT_EQ(later.sink.steps.size(), std::size_t(10 - stop));
  }
}

TEST(trainer, a_finished_run_resumed_does_nothing_and_saves_nothing) {
  rig r;
  r.options.eval_every = 5;
  ASSERT_TRUE(r.run());
  rig again;
  again.options = r.options;
  again.state = r.state;
  const auto done = again.run();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->why, train::ending::finished);
  EXPECT_EQ(done->val_loss, r.state.val_loss);
  EXPECT_TRUE(again.store.saves.empty());
  EXPECT_EQ(again.session.steps, 0);
}

struct counting_session {
  std::vector<std::vector<std::int32_t>> tokens, targets;
  double evaluate(const isotope::batch& b) {
    tokens.emplace_back(b.tokens.begin(), b.tokens.end());
    targets.emplace_back(b.targets.begin(), b.targets.end());
    double sum = 0, n = 0;
    for (std::int32_t t : b.targets)
      if (t >= 0) sum += t, n += 1;
    return sum / n;
  }
};

TEST(validation, reads_every_whole_window_once_and_fills_the_last_batch_with_ignored_targets) {
  counting_session s;
  fake::data data;
  data.split.clear();
  for (int i = 0; i < 12; ++i) data.split.push_back(i * i);
  const auto loss = train::validation_loss(s, data, 2, 3);  // 11 / 3 = 3 windows, targets 1..9 squared
  ASSERT_TRUE(loss);
  // Sums of small integers are exact; only the two means are rounded.
  EXPECT_NEAR(*loss, (1 + 4 + 9 + 16 + 25 + 36 + 49 + 64 + 81) / 9.0, 1e-13);
  ASSERT_EQ(s.tokens.size(), 2u);
  EXPECT_EQ(s.tokens[0], (std::vector<std::int32_t>{0, 1, 4, 9, 16, 25}));
  EXPECT_EQ(s.tokens[1], (std::vector<std::int32_t>{36, 49, 64, 0, 0, 0}));
  EXPECT_EQ(s.targets[1], (std::vector<std::int32_t>{49, 64, 81, -1, -1, -1}));
}

TEST(validation, needs_one_token_more_than_a_window) {
  counting_session s;
  fake::data data;
  for (int tokens : {1, 4}) {
    data.split.assign(std::size_t(tokens), 2);
    EXPECT_FALSE(train::validation_loss(s, data, 2, 4)) << tokens;
  }
  data.split.assign(5, 2);
  EXPECT_EQ(train::validation_loss(s, data, 2, 4), 2.0);
}

}  // namespace trainer_test
