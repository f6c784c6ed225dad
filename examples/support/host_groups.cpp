/// The transports of the host, compiled once for all programs: those that include the sockets of Asio take seconds to compile.
#include "host_groups.hpp"

#include <isotope/comm/tcp_group.hpp>
#include <isotope/comm/thread_group.hpp>

#include <mutex>

namespace support {

using namespace isotope;

result<host_groups> host_groups::open(const rank_team& team, const std::string& run_id, double timeout_seconds) {
  host_groups g;
  if (!team.processes()) {
    struct made_groups {
      std::mutex mutex;
      std::vector<std::shared_ptr<thread_group>> all;
    };
    const auto made = std::make_shared<made_groups>();
    g.make_ = [made, timeout_seconds](const std::string&, const std::vector<int>& members) {
      const auto group = std::make_shared<thread_group>(int(members.size()), thread_group_options{.timeout_seconds = timeout_seconds});
      const std::lock_guard lock(made->mutex);
      made->all.push_back(group);
      return std::make_unique<host_group>(int(members.size()), [group](int rank) { return group->join(rank); });
    };
    g.abort_ = [made](const failure& why) {
      const std::lock_guard lock(made->mutex);
      for (const auto& group : made->all) group->abort(why);
    };
    return g;
  }
  std::shared_ptr<tcp_listener> listener;
  if (team.rank + 1 < team.mesh.ranks()) {  // nobody connects to the last rank
    auto opened = tcp_listener::open(team.at[std::size_t(team.rank)]);
    if (!opened) return opened.error();
    listener = *std::move(opened);
  }
  g.make_ = [at = team.at, listener, run_id, timeout_seconds](const std::string& name, const std::vector<int>& members) {
    std::vector<tcp_address> theirs;
    for (const int r : members) theirs.push_back(at[std::size_t(r)]);
    tcp_options o{.run_id = run_id, .group = name, .timeout_seconds = timeout_seconds};
    const auto group = std::make_shared<tcp_group>(std::move(theirs), std::move(o), listener);
    return std::make_unique<host_group>(int(members.size()), [group](int rank) { return group->join(rank); });
  };
  g.abort_ = [](const failure&) {};
  return g;
}

}  // namespace support
