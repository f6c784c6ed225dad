#pragma once
/// What one step in flight needs of its own, so that the host fills one lane while the device works on the other.
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../state_dict.hpp"
#include "loaded_plan.hpp"

namespace isotope::vulkan {

struct lane {
  memory upload;    // scalars, inputs, inputs of the evaluation
  memory readback;  // outputs, outputs of the evaluation
  loaded_plan train, evaluate;
  std::vector<std::byte> shadow;  // the inputs as they were written last; empty: unknown
  std::uint64_t pending = 0;      // what the device's timeline reaches when the lane is free

  /// @error out_of_memory
  static result<lane> allocate(const std::shared_ptr<context>& device, std::int64_t upload_bytes, std::int64_t readback_bytes) {
    auto up = memory::allocate(device, upload_bytes, memory_use::upload, "isotope inputs");
    if (!up) return up.error();
    auto down = memory::allocate(device, readback_bytes, memory_use::readback, "isotope outputs");
    if (!down) return down.error();
    lane l;
    l.upload = std::move(*up);
    l.readback = std::move(*down);
    std::memset(l.upload.mapped(), 0, std::size_t(l.upload.bytes()));
    std::memset(l.readback.mapped(), 0, std::size_t(l.readback.bytes()));
    return l;
  }

  void forget() {
    train.forget();
    evaluate.forget();
  }
  /// Writes a batch into the inputs that start `first` bytes into the upload memory, where it differs from what is there or `always`. Returns the
  /// bytes written.
  std::int64_t put(std::span<const port> ports, std::int64_t first, const batch& b, bool always) {
    if (shadow.empty()) {
      shadow.assign(std::size_t(upload.bytes()), std::byte{});
      always = true;
    }
    std::int64_t written = 0;
    const auto copy = [&](std::string_view label, std::span<const std::int32_t> from) {
      const port* p = find_port(ports, label);
      if (p == nullptr || from.empty()) return;
      const auto at = std::size_t(first + p->where.at);
      if (!always && std::memcmp(shadow.data() + at, from.data(), from.size_bytes()) == 0) return;
      std::memcpy(shadow.data() + at, from.data(), from.size_bytes());
      std::memcpy(upload.mapped() + at, from.data(), from.size_bytes());
      written += std::int64_t(from.size_bytes());
    };
    copy("tokens", b.tokens);
    copy("targets", b.targets);
    return written;
  }
  /// An output of one number, `first` bytes into the readback memory; 0 where there is none.
  double number(std::span<const port> ports, std::string_view label, std::int64_t first = 0) const {
    const port* p = find_port(ports, label);
    return p == nullptr ? 0 : number_at(readback.mapped() + first + p->where.at, p->where.type);
  }
  /// The norm that an output holds in one number or by tensor; 0 where there is none.
  double norm(std::span<const port> ports, std::string_view label) const {
    const port* p = find_port(ports, label);
    return p == nullptr ? 0 : norm_at(readback.mapped() + p->where.at, p->where);
  }
};

}  // namespace isotope::vulkan
