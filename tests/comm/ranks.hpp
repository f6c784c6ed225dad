#pragma once
/// Groups for tests: every rank is a thread of the test, whatever the transport.
#include <gtest/gtest.h>

#include <barrier>
#include <isotope/comm/thread_group.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace comm_test {

using isotope::communicator;
using isotope::errc;
using isotope::failure;
using isotope::result;

/// Runs body(communicator) on a thread for each rank of the group that `join(rank)` joins, and waits for all of them. Bodies begin when all have joined. A rank
/// that cannot join fails the test.
template <class Join, class Body> void on_ranks(int ranks, const Join& join, const Body& body) {
  std::vector<std::thread> threads;
  std::barrier all_joined(ranks);
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto c = join(r);
      all_joined.arrive_and_wait();
      if (!c) ADD_FAILURE() << "rank " << r << ": " << c.error().line();
      else body(**c);
    });
  for (auto& t : threads) t.join();
}

/// The ranks of a thread group.
struct threads {
  isotope::thread_group group;
  explicit threads(int ranks, double timeout_seconds = 600) : group(ranks, {.timeout_seconds = timeout_seconds}) {}
  result<std::unique_ptr<communicator>> join(int rank) { return group.join(rank); }
};

template <class T> void expect_ok(const result<T>& r, const std::string& what) { EXPECT_TRUE(r.ok()) << what << ": " << r.error().line(); }
template <class T> void expect_failure(const result<T>& r, errc code, const std::string& says) {
  if (r.ok()) {
    ADD_FAILURE() << "it succeeded, where it should say: " << says;
  } else {
    EXPECT_EQ(r.error().code, code) << r.error().line();
    EXPECT_NE(r.error().what.find(says), std::string::npos) << r.error().line();
  }
}

/// That a timeout names rank 1. On a loaded machine others may be late, too, and are then named with it.
inline void expect_late_rank_1(const result<void>& r) {
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, errc::timeout) << r.error().line();
  const std::string& what = r.error().what;
  EXPECT_TRUE(what.starts_with("rank 1 ") ||
              (what.starts_with("ranks ") && what.substr(0, what.find_first_of("abcdefghijklmnopqrstuvwxyz", 6)).find('1') != what.npos))
      << r.error().line();
}

}  // namespace comm_test
