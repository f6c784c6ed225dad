#include <isotope/comm/sanity.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "operations.hpp"
#include "tcp_ranks.hpp"

namespace tcp_process_test {

using namespace comm_test;

/// A process that is one rank of a group. It is made before the test has threads, and killed at the latest when the test ends.
class process {
 public:
  /// Runs body(communicator, say) in the process; say() lets `heard` return.
  template <class Body> process(const tcp_ranks& group, int rank, const Body& body) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    id_ = fork();
    EXPECT_GE(id_, 0);
    if (id_ == 0) _exit(run(group, rank, body));
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  ~process() {
    end(SIGKILL);
    for (const int e : ends_) close(e);
  }
  void heard() const {
    char c = 0;
    EXPECT_EQ(read(ends_[0], &c, 1), 1);
  }
  void send(int signal) const { EXPECT_EQ(kill(id_, signal), 0); }
  /// The exit status, or the negated number of the signal that ended it.
  int end(int signal = 0) {
    if (id_ <= 0) return 0;
    if (signal != 0) kill(id_, signal);
    int status = 0;
    waitpid(id_, &status, 0);
    id_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  template <class Body> int run(const tcp_ranks& group, int rank, const Body& body) const {
    auto c = group.join(rank);
    if (!c) return 9;
    bool said = true;
    const result<void> r = body(**c, [&] { said = write(ends_[1], "x", 1) == 1; });
    return !said ? 8 : r ? 0 : 1;
  }
  pid_t id_ = 0;
  std::array<int, 2> ends_{-1, -1};
};

std::vector<float> ones(std::size_t n) { return std::vector<float>(n, 1.0f); }
result<void> sum(communicator& c, std::vector<float>& x) {
  return c.all_reduce(std::as_writable_bytes(std::span(x)), dtype::f32, reduction::sum);
}

TEST(tcp_process, processes_compute_the_bits_of_a_plain_loop) {
  const tcp_ranks group(3);
  const auto body = [](communicator& c, auto&&) -> result<void> {
    for (std::uint64_t n = 1; n <= 30; ++n)
      run_operation(c, n, int(n) % kinds, all_types[n % 6], reduction::sum, std::size_t(n * 97 % 5000));
    if (::testing::Test::HasFailure()) return isotope::fail(errc::corrupt, "an operation is wrong", "", "see above");
    const auto whole = isotope::check_group(c);
    return whole ? result<void>{} : whole.error();
  };
  process one(group, 1, body), two(group, 2, body);
  auto c = group.join(0);
  ASSERT_TRUE(c.ok()) << c.error().line();
  expect_ok(body(**c, 0), "rank 0");
  EXPECT_EQ(one.end(), 0);
  EXPECT_EQ(two.end(), 0);
}

/// Joins ranks 0 and 2 on threads and runs body(communicator) on them.
template <class Body> void on_the_others(const tcp_ranks& group, const Body& body) {
  on_ranks(2, [&](int r) { return group.join(2 * r); }, body);
}

/// Rank 1 is in the middle of a large all_reduce, for which rank 2 has not come, when it is killed.
TEST(tcp_process, a_killed_process_is_named_on_every_rank) {
  const tcp_ranks group(3, 60);
  process one(group, 1, [](communicator& c, auto&& say) {
    auto x = ones(3'000'000);
    say();
    return sum(c, x);
  });
  on_the_others(group, [&](communicator& c) {
    auto x = ones(3'000'000);
    if (c.rank() == 2) {
      one.heard();
      one.send(SIGKILL);
    }
    expect_failure(sum(c, x), errc::peer_lost, "rank 1");
    expect_failure(c.barrier(), errc::peer_lost, "rank 1");
  });
  EXPECT_EQ(one.end(), -SIGKILL);
}

/// A stopped process keeps its connections, and nothing moves over them.
TEST(tcp_process, a_stopped_process_is_named_on_every_rank) {
  const tcp_ranks group(3, 0.2);
  process one(group, 1, [](communicator& c, auto&& say) {
    raise(SIGSTOP);
    say();
    return c.barrier();
  });
  on_the_others(group, [&](communicator& c) {
    auto x = ones(3'000'000);
    expect_late_rank_1(sum(c, x));
  });
}

/// What a rank says last reaches the others, although numbers are on the way.
TEST(tcp_process, a_process_that_ends_with_a_reason_is_quoted) {
  const tcp_ranks group(3, 60);
  process one(group, 1, [](communicator& c, auto&& say) {
    if (auto joined = c.barrier(); !joined) return joined;  // the others are past their join
    say();
    c.abort(isotope::fail(errc::interrupted, "SIGINT after step 7", "train", "resume from the last checkpoint"));
    return c.barrier();
  });
  on_the_others(group, [&](communicator& c) {
    auto x = ones(3'000'000);
    const auto first = c.barrier();
    expect_failure(first ? sum(c, x) : first, errc::peer_lost, "rank 1 ended the group: SIGINT after step 7");
  });
  EXPECT_EQ(one.end(), 1);
}
TEST(tcp_process, a_process_that_ends_has_left) {
  const tcp_ranks group(3, 60);
  process one(group, 1, [](communicator& c, auto&&) { return c.barrier(); });
  on_the_others(group, [&](communicator& c) {
    const auto first = c.barrier();
    expect_failure(first ? c.barrier() : first, errc::peer_lost, "rank 1");
  });
}

}  // namespace tcp_process_test
