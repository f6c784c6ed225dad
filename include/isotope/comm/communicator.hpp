#pragma once
/// Communication between the ranks of a group, each of which owns one device.
#include <cstddef>
#include <cstdint>
#include <span>

#include "../core/error.hpp"
#include "../core/precision.hpp"

namespace isotope {

/// How the numbers of several ranks become one.
enum class reduction : std::uint8_t { sum, max };

/// One rank's end of a group. All ranks of a group call the same operations in the same order with the same sizes; each call returns when this rank's
/// result is there. A communicator is made and used on one thread, that of the rank's device worker; only `abort` may be called from others.
///
/// Memory is the host's. A transport between devices has operations on memory of the device besides, in the order of a stream: nccl_communicator.
///
/// Numbers are combined in the order of the ranks, x = ((x[0] + x[1]) + x[2]) + ..., in the accumulation format of their type, and rounded to the type
/// once, at the end. So every rank gets the same bits, and threads and processes
/// give the same bits; NCCL's order is its own, and the same in every run. Any NaN of a result is the quiet, positive one.
///
/// @error peer_lost where another rank failed or left, with its number and reason; timeout; invalid_argument where sizes do not fit or differ between
///        ranks. After an error every later call fails with the first cause.
class communicator {
 public:
  communicator() = default;
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  virtual ~communicator() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// x = the combination of every rank's x. `x` holds numbers of type f32, f64, bf16, f16, i32 or i64.
  virtual result<void> all_reduce(std::span<std::byte> x, dtype type, reduction how) = 0;
  /// whole = part of rank 0, part of rank 1, ...; whole.size() = ranks() x part.size(). `part` may be its own place in `whole`.
  virtual result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) = 0;
  /// part = piece rank() of the combination of every rank's `whole`, which has ranks() pieces. `part` may be its own place in `whole`, which may be
  /// overwritten, but where every rank has 0, it keeps 0.
  virtual result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, dtype type, reduction how) = 0;
  /// x = x of rank `root`.
  virtual result<void> broadcast(std::span<std::byte> x, int root) = 0;
  /// Returns once every rank has called it.
  virtual result<void> barrier() = 0;
  /// Whether the group can still be used; otherwise why it ended. It does not wait, so a rank can ask while it is busy elsewhere. On the rank's thread.
  virtual result<void> state() { return {}; }
  /// Ends the group: calls in progress and later ones fail on every rank, with this cause. It may be called from any thread, and again.
  virtual void abort(failure cause) noexcept = 0;
};

}  // namespace isotope
