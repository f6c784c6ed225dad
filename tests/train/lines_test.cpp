#include <isotope/train/json_line.hpp>
#include <isotope/train/plain_line.hpp>
#include <isotope/train/progress_bar.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace train = isotope::train;

namespace lines_test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

TEST(decimal, numbers_scale_to_three_digits_and_carry_into_the_next_unit) {
  EXPECT_EQ(train::scaled(0), "0");
  EXPECT_EQ(train::scaled(950), "950");
  EXPECT_EQ(train::scaled(999.7), "1.00k");
  EXPECT_EQ(train::scaled(15321), "15.3k");
  EXPECT_EQ(train::scaled(9996), "10.0k");
  EXPECT_EQ(train::scaled(152321), "152k");
  EXPECT_EQ(train::scaled(1250000), "1.25M");
  EXPECT_EQ(train::scaled(nan), "-");
  EXPECT_EQ(train::scaled(inf), "-");
  EXPECT_EQ(train::scaled(-1), "-");
}

TEST(decimal, figures_take_an_exponent_from_a_million_on) {
  EXPECT_EQ(train::figure(1.5, 4), "1.5000");
  EXPECT_EQ(train::figure(999999, 1), "999999.0");
  EXPECT_EQ(train::figure(-9.25e28, 2), "-9.25e+28");
  EXPECT_EQ(train::figure(nan, 4), "nan");
  EXPECT_EQ(train::figure(inf, 4), "inf");
}

TEST(decimal, durations_round_to_seconds_and_carry) {
  EXPECT_EQ(train::clock_text(0), "0:00");
  EXPECT_EQ(train::clock_text(7.4), "0:07");
  EXPECT_EQ(train::clock_text(59.6), "1:00");
  EXPECT_EQ(train::clock_text(754), "12:34");
  EXPECT_EQ(train::clock_text(3723), "1:02:03");
  EXPECT_EQ(train::clock_text(-1), "-:--");
  EXPECT_EQ(train::clock_text(nan), "-:--");
  EXPECT_EQ(train::clock_text(1e300), "-:--");
}

TEST(json_line, a_step_has_the_documented_keys_in_order) {
  EXPECT_EQ(train::json_line(train::step_event{7, 100, 2.5, 0.75, 0.001, 51.25, 15000, false}),
            R"({"event":"step","step":7,"loss":2.5,"grad_norm":0.75,"lr":0.001,"ms":51.25,"tokens_per_s":15000})");
}

TEST(json_line, an_evaluation_and_the_end_have_the_documented_keys_in_order) {
  EXPECT_EQ(train::json_line(train::eval_event{250, 1.9375, true}), R"({"event":"eval","step":250,"val_loss":1.9375})");
  EXPECT_EQ(
      train::json_line(train::done_event{2000, train::ending::finished, 1.875, 1.75, 12.5, 1 << 20, 1048832}),
      R"({"event":"done","steps":2000,"val_loss":1.875,"best_val_loss":1.75,"seconds":12.5,"planned_bytes":1048576,"measured_bytes":1048832})");
}

TEST(json_line, what_json_cannot_hold_is_null) {
  EXPECT_EQ(train::json_line(train::step_event{1, 1, nan, inf, 0.5, 1, 2, true}),
            R"({"event":"step","step":1,"loss":null,"grad_norm":null,"lr":0.5,"ms":1,"tokens_per_s":2})");
  EXPECT_EQ(train::json_line(train::done_event{}),
            R"({"event":"done","steps":0,"val_loss":null,"best_val_loss":null,"seconds":0,"planned_bytes":0,"measured_bytes":0})");
}

TEST(plain_line, columns_do_not_move_from_step_to_step) {
  EXPECT_EQ(train::plain_line(train::step_event{10, 2000, 3.20412, 1.2041, 1e-4, 51.23, 15012, false}),
            "step   10/2000  loss 3.2041  norm 1.204  lr 1.00e-04  ms 51.2  tok/s 15.0k");
  EXPECT_EQ(train::plain_line(train::step_event{2000, 2000, 1.5, 0.25, 1e-3, 9.96, 999, true}),
            "step 2000/2000  loss 1.5000  norm 0.250  lr 1.00e-03  ms 10.0  tok/s 999  skipped: not finite");
}

TEST(plain_line, evaluations_checkpoints_and_the_end_read_as_one_line_each) {
  EXPECT_EQ(train::plain_line(train::eval_event{250, 2.01104, true}), "eval at step 250  val loss 2.0110  best");
  EXPECT_EQ(train::plain_line(train::checkpoint_event{250, "runs/a/step-250", false}), "saved step 250  runs/a/step-250");
  EXPECT_EQ(train::plain_line(train::done_event{2000, train::ending::finished, 1.875, 1.75, 62, 0, 3 << 20}),
            "finished after step 2000  val loss 1.8750  best 1.7500  time 1:02  memory 3.0 MiB");
  EXPECT_EQ(train::plain_line(train::done_event{12, train::ending::interrupted, {}, {}, 1, 0, 0}),
            "interrupted after step 12  time 0:01  memory 0.0 MiB");
}

TEST(progress_bar, a_wide_terminal_shows_everything) {
  EXPECT_EQ(train::progress_bar({840, 2000, 1.9321, 2.011, 15012, 62}, 100),
            " 42% [===============>                    ] 840/2000  loss 1.9321  val 2.0110  15.0k tok/s  ETA 1:02");
}

TEST(progress_bar, a_finished_run_has_a_full_bar_without_a_head) {
  EXPECT_EQ(train::progress_bar({10, 10, 1, {}, 50, 0}, 60), "100% [==============] 10/10  loss 1.0000  50 tok/s  ETA 0:00");
}

TEST(progress_bar, an_unknown_rate_shows_dashes) {
  EXPECT_EQ(train::progress_bar({0, 10, 4, {}, nan, -1}, 60), "  0% [                ] 0/10  loss 4.0000  - tok/s  ETA -:--");
}

TEST(progress_bar, no_width_is_exceeded_and_narrow_ones_drop_the_bar_first) {
  const train::progress p{840, 2000, 1.9321, 2.011, 15012, 62};
  for (int width = -1; width <= 200; ++width) EXPECT_LE(int(train::progress_bar(p, width).size()), std::max(width, 0)) << width;
  EXPECT_EQ(train::progress_bar(p, 60), " 42% [===>    ] 840/2000  loss 1.9321  15.0k tok/s  ETA 1:02");
  EXPECT_EQ(train::progress_bar(p, 50), " 42% 840/2000  loss 1.9321  15.0k tok/s  ETA 1:02");
  EXPECT_EQ(train::progress_bar(p, 40), " 42% 840/2000  loss 1.9321  ETA 1:02");
  EXPECT_EQ(train::progress_bar(p, 30), " 42% 840/2000  loss 1.9321");
  EXPECT_EQ(train::progress_bar(p, 8), " 42% 840");
}

TEST(progress_bar, no_steps_and_steps_beyond_the_end_do_not_break_it) {
  EXPECT_EQ(train::progress_bar({0, 0, 0, {}, 0, 0}, 26), "  0% 0/0  loss 0.0000");
  EXPECT_EQ(train::progress_bar({30, 10, 1, {}, 0, 0}, 26), "100% 30/10  loss 1.0000");
}

TEST(pace, the_average_starts_as_a_mean_and_then_forgets_slowly) {
  train::pace p;
  EXPECT_LT(p.seconds_left(10), 0);
  p.add(1, 4);
  p.add(3, 4);
  EXPECT_EQ(p.seconds_per_step, 2);
  p.add(2, 4);
  p.add(2, 4);
  p.add(6, 4);
  EXPECT_EQ(p.seconds_per_step, 3);
  EXPECT_EQ(p.seconds_left(7), 21);
}

}  // namespace lines_test
