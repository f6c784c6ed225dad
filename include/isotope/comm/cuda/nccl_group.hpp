#pragma once
/// Groups of NVIDIA GPUs: what makes their communicators.
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "../transport.hpp"
#include "nccl_communicator.hpp"

namespace isotope {

/// What all groups of GPUs of a program share. `device_of(rank)` is called on the rank's thread, with its number in the group.
struct nccl_options {
  std::shared_ptr<const nccl::library> library;
  nccl_settings settings;
  double timeout_seconds = 600;
};

/// GPUs that communicate by NCCL, beside a transport of the host, by which the ranks meet.
template <Transport Host> class nccl_group {
 public:
  static constexpr std::string_view name = nccl_communicator::name;

  nccl_group(std::unique_ptr<Host> host, const nccl_options& o, std::function<gpu_of_rank(int rank)> device_of)
      : host_(std::move(host)), options_(o), device_of_(std::move(device_of)) {}

  int ranks() const { return host_->ranks(); }
  /// @error as the host's transport, and as nccl_communicator::join
  result<std::unique_ptr<communicator>> join(int rank) {
    auto host = host_->join(rank);
    if (!host) return host;
    if (ranks() == 1) return host;
    auto c = nccl_communicator::join(options_.settings, options_.library, device_of_(rank), *std::move(host), options_.timeout_seconds);
    if (!c) return c.error();
    return std::unique_ptr<communicator>(*std::move(c));
  }

 private:
  std::unique_ptr<Host> host_;
  nccl_options options_;
  std::function<gpu_of_rank(int)> device_of_;
};

}  // namespace isotope
