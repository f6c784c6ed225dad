/// Work in a separate process: the caller learns how it ended, and a process that does not end is killed.
#include "toy.hpp"

#include "../../examples/conform/watched_run.hpp"
#include "../io/scratch_folder.hpp"

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

/// Runs both ops on a device whose kernel of `doubled` never returns, and writes the counts to a file.
struct hanging_job {
  std::string file;
  toy::mistake m = toy::mistake::doubled_hangs;
  int run(conform::run_options o, const conform_program::run_manner& manner) const {
    struct told final : conform::progress_sink {
      const support::work_log* log;
      explicit told(const support::work_log* l) : log(l) {}
      void at(const conform::progress&) override {}
      void begins(std::string_view op) override { log->begins(op); }
    } heard(manner.log);
    toy::toy_device d(m);
    auto t = conform::conformance_run(d, std::move(o), heard).run();
    if (!t || !iso::io::write_file(file, json_of(*t))) return 2;
    return t->failed() == 0 ? 0 : 1;
  }
};
conform::counts counts_in(const std::string& path) {
  conform::counts t;
  auto file = iso::io::read_file(path);
  auto j = file ? iso::io::parse_json(file->text(), path) : iso::result<iso::io::json>(file.error());
  EXPECT_TRUE(j.ok() && conform::read_counts(&*j, t));
  return t;
}
TEST(conform_watched, a_kernel_that_hangs_is_ended_and_fails_and_the_other_ops_go_on) {
  iso::scratch_folder folder;
  for (const bool saved : {false, true}) {
    conform::run_options o;
    o.cases = {{conform::find_spec("doubled"), conform::find_spec("twice")}, iso::dtype::f32, conform::strength::fast, 1, 1};
    o.batch = 4;
    conform::run_options sound = o;
    if (saved) o.checkpoint_file = folder.at("checkpoint");
    const hanging_job job{folder.at("tally")};
    EXPECT_EQ(conform_program::watched(job, o, 1, 5), 1);
    const conform::counts t = counts_in(job.file);
    EXPECT_GT(t.ops.at("doubled").failed, 0);
    EXPECT_EQ(t.ops.at("doubled").failed, t.ops.at("doubled").cases());
    EXPECT_NE(t.failures.begin()->second.find("its op does not end within 5 seconds"), std::string::npos) << t.failures.begin()->second;
    EXPECT_GT(t.ops.at("twice").passed, 0);
    EXPECT_EQ(t.ops.at("twice").passed, t.ops.at("twice").cases());
    EXPECT_EQ(conform_program::watched(hanging_job{folder.at("sound"), toy::mistake::none}, sound, 1, 60), 0) << "without the mistake";
  }
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
