#pragma once
/// Ranks as processes, on one machine or several, connected by TCP. Nothing is encrypted: use it in a network whose machines trust each other.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tcp_communicator.hpp"
#include "tcp_join.hpp"
#include "transport.hpp"

namespace isotope {

struct tcp_options {
  std::string run_id{};          // the same on all ranks of a run, and different between runs that could meet; at most 95 bytes
  std::string group = "all";     // which group of the run's mesh this is; at most 95 bytes
  double join_seconds = 120;     // how long `join` waits for the others
  double timeout_seconds = 600;  // how long no byte may move in an operation; infinity: for ever
};

/// One process of a group. `at[r]` is where rank r listens, the same list on all ranks; only the last rank does not listen. Where `listener` is given, it is this
/// rank's, and serves any number of groups one after another; otherwise `join` listens at the rank's own entry while it runs.
class tcp_group {
 public:
  static constexpr std::string_view name = comm::tcp_links::name;

  explicit tcp_group(std::vector<tcp_address> at, tcp_options o = {}, std::shared_ptr<tcp_listener> listener = nullptr)
      : at_(std::move(at)), options_(std::move(o)), listener_(std::move(listener)) {}

  int ranks() const { return int(at_.size()); }
  /// Connects to all others and returns when all have. It may be called once.
  ///
  /// @error invalid_argument: no such rank, a text that is too long, or a time below 0; in_use: another process listens there, or the rank has joined before;
  ///        not_found: a name that cannot be resolved; version_mismatch: the other end is another program, version, run, number of ranks or list of
  ///        addresses, with the numbers of both; timeout: ranks that did not come; peer_lost: a rank gave up, with its reason
  result<std::unique_ptr<communicator>> join(int rank) {
    if (auto r = comm::check::member(rank, ranks(), name); !r) return r.error();
    if (ranks() > most_ranks) return refused(std::to_string(ranks()) + " ranks", "give at most " + std::to_string(most_ranks));
    if (!(options_.join_seconds >= 0 && options_.join_seconds <= longest_join && options_.timeout_seconds >= 0))
      return refused(
          "join_seconds is " + std::to_string(options_.join_seconds) + ", timeout_seconds is " + std::to_string(options_.timeout_seconds),
          "give seconds from 0 on; to join at most " + std::to_string(longest_join));
    if (options_.run_id.size() > comm::hello::longest_text || options_.group.size() > comm::hello::longest_text)
      return refused(
          "a run id of " + std::to_string(options_.run_id.size()) + " bytes, a group of " + std::to_string(options_.group.size()),
          "give texts of at most " + std::to_string(comm::hello::longest_text) + " bytes");
    std::shared_ptr<tcp_listener> listener = listener_;
    if (rank == ranks() - 1) {
      listener = nullptr;  // the others do not connect to it
    } else if (listener == nullptr) {
      auto opened = tcp_listener::open(at_[std::size_t(rank)]);
      if (!opened) return opened.error();
      listener = *std::move(opened);
    }
    comm::hello mine;
    mine.ranks = ranks();
    mine.rank = rank;
    comm::put_text(mine.run_id, options_.run_id);
    comm::put_text(mine.group, options_.group);
    auto links = std::make_unique<comm::tcp_links>(rank, ranks(), options_.timeout_seconds);
    const auto joining = std::make_shared<comm::tcp_joining>(*links, at_, mine);
    if (auto r = joining->run(listener.get(), options_.join_seconds); !r) return r.error();
    std::unique_ptr<communicator> c(new comm::tcp_communicator(std::move(links)));
    if (auto r = c->barrier(); !r) return r.error();
    return c;
  }

 private:
  static constexpr int most_ranks = 1 << 12;
  static constexpr double longest_join = 1e7;
  std::vector<tcp_address> at_;
  tcp_options options_;
  std::shared_ptr<tcp_listener> listener_;

  static failure refused(std::string what, std::string fix) {
    return fail(errc::invalid_argument, std::move(what), std::string(name), std::move(fix));
  }
};

static_assert(Transport<tcp_group>);

}  // namespace isotope
