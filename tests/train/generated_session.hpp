#pragma once
/// A session whose values are a function of tensor and index. So it can have tensors of any size without storing them, and it checks what is written.
#include <train/fake_session.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fake {

/// Every third parameter has no second moment. The session has no function to ask for that, and reads tensors one by one.
struct generated_session : session {
  using kind = isotope::tensor_kind;
  std::size_t reads = 0, writes = 0, wrong = 0;  // counts of calls; count of written values that are wrong
  std::size_t failing_write = std::size_t(-1);   // the device is lost from this call on
  std::size_t bad_slot = std::size_t(-1);        // the slot whose parameter is not finite

  explicit generated_session(std::vector<slot> all) { slots = std::move(all); }

  static bool has(kind k, std::size_t i) { return k != kind::moment2 || i % 3 != 2; }
  static float number(kind k, std::size_t slot, std::size_t i) {
    const auto mixed = (std::uint32_t(i) + 1) * 2654435761u ^ std::uint32_t(slot) * 40503u ^ std::uint32_t(k) * 977u;
    return float(std::int32_t(mixed >> 8) - (1 << 23)) / 4096.0f;
  }
  isotope::result<void> read(kind k, std::size_t slot, std::span<float> out) {
    ++reads;
    return fill(k, slot, out);
  }
  isotope::result<void> write(kind k, std::size_t slot, std::span<const float> in) {
    if (writes++ >= failing_write) return isotope::fail(isotope::errc::device_lost, "the device is gone", "fake", "open it again");
    for (std::size_t i = 0; i < in.size(); ++i) wrong += in[i] != number(k, slot, i);
    return {};
  }

 protected:
  isotope::result<void> fill(kind k, std::size_t slot, std::span<float> out) const {
    if (!has(k, slot)) return isotope::fail(isotope::errc::not_found, "no such moment", "fake", "ask for another");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = number(k, slot, i);
    if (slot == bad_slot && k == kind::parameter) out.back() = std::numeric_limits<float>::infinity();
    return {};
  }
};

/// A session with the same values that can be asked which tensors it keeps, and reads many tensors at once. `most` is the most numbers read at once.
struct grouped_session : generated_session {
  using generated_session::generated_session;
  std::size_t most = 0;

  bool keeps(kind k, std::size_t slot) const { return has(k, slot); }
  isotope::result<void> read(std::span<const isotope::tensor_read> all) {
    ++reads;
    std::size_t elems = 0;
    for (const auto& t : all) {
      elems += t.out.size();
      if (auto r = fill(t.what, t.slot, t.out); !r) return r;
    }
    most = std::max(most, elems);
    return {};
  }
  isotope::result<void> read(kind k, std::size_t slot, std::span<float> out) {
    const isotope::tensor_read one{k, slot, out};
    return read(std::span(&one, 1));
  }
};

}  // namespace fake
