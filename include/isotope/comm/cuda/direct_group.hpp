#pragma once
/// Groups of NVIDIA GPUs of one process that reach each other's memory: what makes their communicators.
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "../transport.hpp"
#include "direct_communicator.hpp"

namespace isotope {

/// Whether each of the first `gpus` devices reaches the memory of all others of them, so that direct_group serves them.
inline bool reach_each_other(const cuda::driver& d, int gpus) {
  int there = 0;
  if (d->can_access_peer == nullptr || d->device_count(&there) != cuda::status::success || there < gpus) return false;
  for (int a = 0; a < gpus; ++a)
    for (int b = 0; b < gpus; ++b) {
      cuda::device_handle from = 0, to = 0;
      int can = 0;
      if (a == b) continue;
      if (d->device_get(&from, a) != cuda::status::success || d->device_get(&to, b) != cuda::status::success) return false;
      if (d->can_access_peer(&can, from, to) != cuda::status::success || can == 0) return false;
    }
  return true;
}

struct direct_options {
  double timeout_seconds = 600;
  int blocks = 0;  // of the largest exchanges; 0: 32, with which NVLink is busy
};

/// GPUs that communicate by kernels of their own, beside a transport of the host, by which the ranks meet. All ranks of a group join the same object: they are
/// threads. `device_of(rank)` is called on the rank's thread, with its number in the group.
template <Transport Host> class direct_group {
 public:
  static constexpr std::string_view name = direct_communicator::name;

  direct_group(std::unique_ptr<Host> host, const direct_options& o, std::function<gpu_of_rank(int rank)> device_of)
      : host_(std::move(host)), options_(o), device_of_(std::move(device_of)), places_(std::make_shared<direct::places>(host_->ranks())) {}

  int ranks() const { return host_->ranks(); }
  /// @error as the host's transport, and as direct_communicator::join
  result<std::unique_ptr<communicator>> join(int rank) {
    auto host = host_->join(rank);
    if (!host) return host;
    if (ranks() == 1) return host;
    auto c = direct_communicator::join(places_, device_of_(rank), *std::move(host), options_.timeout_seconds, options_.blocks);
    if (!c) return c.error();
    return std::unique_ptr<communicator>(*std::move(c));
  }

 private:
  std::unique_ptr<Host> host_;
  direct_options options_;
  std::function<gpu_of_rank(int)> device_of_;
  std::shared_ptr<direct::places> places_;
};

}  // namespace isotope
