#pragma once
/// Groups for tests: every rank is a thread of the test, whatever the transport.
#include <gtest/gtest.h>

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

/// Runs body(communicator) on a thread for each rank of the group that `join(rank)` joins, and waits for all of them. A rank that cannot join fails the test.
template <class Join, class Body> void on_ranks(int ranks, const Join& join, const Body& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto c = join(r);
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

inline void expect_ok(const result<void>& r, const std::string& what) { EXPECT_TRUE(r.ok()) << what << ": " << r.error().line(); }
inline void expect_failure(const result<void>& r, errc code, const std::string& says) {
  if (r.ok()) {
    ADD_FAILURE() << "it succeeded, where it should say: " << says;
  } else {
    EXPECT_EQ(r.error().code, code) << r.error().line();
    EXPECT_NE(r.error().what.find(says), std::string::npos) << r.error().line();
  }
}

}  // namespace comm_test
