#pragma once
/// Communication of numbers in device memory.
#include "../../core/error.hpp"
#include "driver.hpp"
#include "launch.hpp"

namespace isotope::cuda {

/// One rank's end of a group whose exchanges are work on a stream, so that a graph can contain them. A communicator of a group that CUDA plans use derives from
/// this as well as from isotope::communicator. All ranks start the same exchanges in the same order.
class stream_communicator {
 public:
  stream_communicator() = default;
  stream_communicator(const stream_communicator&) = delete;
  stream_communicator& operator=(const stream_communicator&) = delete;
  virtual ~stream_communicator() = default;

  /// Puts an exchange on a stream, which may be capturing. @error peer_lost, device_lost
  virtual result<void> start(const library_collective& what, stream_handle stream) = 0;
  /// Whether an exchange is kernels alone, which need nothing that a captured graph owns.
  virtual bool exchanges_by_kernels() const { return false; }
};

}  // namespace isotope::cuda
