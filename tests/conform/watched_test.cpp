/// Work in a process of its own: how it ends is told, and one that does not end is ended.
#include "toy.hpp"

#include "../../examples/support/watched_process.hpp"

#include <unistd.h>

namespace watched_test {

namespace iso = isotope;
namespace conform = isotope::conform;
using how = support::watched_end::kind;

template <class Body> support::watched_end watched(double seconds, Body&& body) {
  auto end = support::run_watched(seconds, body);
  EXPECT_TRUE(end.ok());
  return end.ok() ? *end : support::watched_end{};
}

TEST(conform_watched, an_exit_code_and_the_last_work_come_back) {
  const auto end = watched(60, [](const support::work_log& log) {
    log.begins("add");
    log.begins("exp");
    return 3;
  });
  EXPECT_EQ(end.how, how::exited);
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.work, "exp");
}
TEST(conform_watched, work_that_does_not_end_is_ended) {
  const auto end = watched(0.2, [](const support::work_log& log) {
    log.begins("endless");
    for (;;) ::pause();
    return 0;
  });
  EXPECT_EQ(end.how, how::hung);
  EXPECT_EQ(end.work, "endless");
}
TEST(conform_watched, a_crash_is_told_by_its_signal) {
  const auto end = watched(60, [](const support::work_log& log) {
    log.begins("wild");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(end.how, how::crashed);
  EXPECT_EQ(end.code, SIGKILL);
  EXPECT_EQ(end.work, "wild");
}

TEST(conform_run, cases_of_an_op_that_does_not_end_fail_without_running) {
  toy::toy_device d;
  conform::run_options o;
  o.cases = {{conform::find_spec("twice")}, iso::dtype::f32, conform::strength::fast, 1, 1};
  o.endless["twice"] = "its op does not end within 1 seconds";
  conform::silent_progress heard;
  const auto t = conform::conformance_run(d, o, heard).run();
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(d.loads, 0);
  EXPECT_GT(t->total().failed, 0);
  EXPECT_EQ(t->total().failed, t->total().cases());
  EXPECT_NE(t->failures.begin()->second.find("does not end"), std::string::npos);
}

}  // namespace watched_test
