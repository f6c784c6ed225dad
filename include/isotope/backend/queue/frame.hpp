#pragma once
/// What one run in flight needs of its own, so that the host fills one frame while the device works on another.
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../session/ports.hpp"
#include "queue.hpp"

namespace isotope {

template <Queue Q> struct frame {
  static constexpr std::int64_t head = 256;  // bytes of the scalars at the front of the upload memory
  static_assert(Q::scalar_bytes <= head);

  typename Q::memory upload;    // scalars, then the inputs of every plan
  typename Q::memory readback;  // the outputs of every plan
  std::vector<typename Q::plan> plans;
  std::uint64_t pending = 0;  // what the queue's timeline reaches when the frame is free

  /// @error out_of_memory
  static result<frame> allocate(Q& queue, std::int64_t upload_bytes, std::int64_t readback_bytes) {
    auto up = queue.allocate(upload_bytes, memory_use::upload, "isotope inputs");
    if (!up) return up.error();
    auto down = queue.allocate(readback_bytes, memory_use::readback, "isotope outputs");
    if (!down) return down.error();
    frame f;
    f.upload = *std::move(up);
    f.readback = *std::move(down);
    return f;
  }

  /// Memory taken from the device, tables included.
  std::int64_t bytes() const {
    std::int64_t n = upload.bytes() + readback.bytes();
    for (const auto& p : plans) n += p.bytes();
    return n;
  }
  /// Plans are prepared again before they next run: what kernels choose by has changed.
  void forget() {
    for (auto& p : plans) p.forget();
  }
};

}  // namespace isotope
