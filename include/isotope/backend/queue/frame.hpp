#pragma once
/// A frame holds the memory that one run in flight needs for itself, so that the host can fill one frame while the device works on another.
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
  static constexpr std::int64_t head = 256;  // bytes reserved for the scalars at the start of the upload memory
  static_assert(Q::scalar_bytes <= head);

  typename Q::memory upload;    // scalars, then the inputs of every plan
  typename Q::memory readback;  // the outputs of every plan
  std::vector<typename Q::plan> plans;
  std::uint64_t pending = 0;  // the frame is free when the queue's timeline has reached this value

  /// `commands`: whether runs of this frame have commands of their own, which read the device's part of its upload memory. @error out_of_memory
  static result<frame> allocate(Q& queue, std::int64_t upload_bytes, std::int64_t readback_bytes, bool commands) {
    auto up = queue.allocate(upload_bytes, commands ? memory_use::upload : memory_use::readback, "isotope inputs");
    if (!up) return up.error();
    auto down = queue.allocate(readback_bytes, memory_use::readback, "isotope outputs");
    if (!down) return down.error();
    frame f;
    f.upload = *std::move(up);
    f.readback = *std::move(down);
    return f;
  }

  /// Device memory of the frame, including the tables of its plans.
  std::int64_t bytes() const {
    std::int64_t n = upload.bytes() + readback.bytes();
    for (const auto& p : plans) n += p.bytes();
    return n;
  }
  /// Makes every plan be prepared again before it next runs, because the choice of kernels may have changed.
  void forget() {
    for (auto& p : plans) p.forget();
  }
};

}  // namespace isotope
