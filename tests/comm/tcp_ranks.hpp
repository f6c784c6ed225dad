#pragma once
/// Groups over TCP for tests: every rank listens at a free port of the loopback interface, which the system chooses.
#include <isotope/comm/tcp_group.hpp>

#include <memory>
#include <vector>

#include "ranks.hpp"

namespace comm_test {

struct tcp_ranks {
  std::vector<std::shared_ptr<isotope::tcp_listener>> listeners;
  std::vector<isotope::tcp_address> at;
  isotope::tcp_options options{.run_id = "test"};

  explicit tcp_ranks(int ranks, double timeout_seconds = 600) {
    options.timeout_seconds = timeout_seconds;
    for (int r = 0; r < ranks; ++r) {
      auto l = isotope::tcp_listener::open({"127.0.0.1", 0});
      if (!l) {
        ADD_FAILURE() << l.error().line();
        continue;
      }
      at.push_back((*l)->at());
      listeners.push_back(*std::move(l));
    }
  }
  result<std::unique_ptr<communicator>> join(int rank) const { return join(rank, options); }
  result<std::unique_ptr<communicator>> join(int rank, const isotope::tcp_options& o) const {
    return isotope::tcp_group(at, o, listeners[std::size_t(rank)]).join(rank);
  }
};

}  // namespace comm_test
