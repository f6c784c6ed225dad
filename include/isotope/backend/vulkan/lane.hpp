#pragma once
/// What one step in flight needs of its own, so that the host fills one lane while the device works on the other.
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../state_dict.hpp"
#include "loaded_plan.hpp"
#include "session_counters.hpp"

namespace isotope::vulkan {

struct lane {
  memory upload;    // scalars, inputs, inputs of the evaluation
  memory readback;  // outputs, outputs of the evaluation
  loaded_plan train, evaluate;
  std::vector<std::byte> shadow;  // what was written to the upload memory, which is slow to read
  std::uint64_t pending = 0;      // what the device's timeline reaches when the lane is free
  pending_step uncollected;       // the submitted step whose report nobody has asked for
  std::uint64_t finished = 0;     // the submitted step that ended before anybody asked, and its report
  step_report report;

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
    l.shadow.assign(std::size_t(upload_bytes), std::byte{});
    return l;
  }

  /// Taken from the device.
  std::int64_t bytes() const { return upload.bytes() + readback.bytes() + train.word_bytes() + evaluate.word_bytes(); }
  void forget() {
    train.forget();
    evaluate.forget();
  }
  /// Writes `bytes` at `at` of the upload memory where they differ from what is there, or `always`. Returns the bytes written.
  std::int64_t put(std::int64_t at, std::span<const std::byte> bytes, bool always) {
    std::byte* before = shadow.data() + at;
    if (bytes.empty() || (!always && std::memcmp(before, bytes.data(), bytes.size()) == 0)) return 0;
    std::memcpy(before, bytes.data(), bytes.size());
    std::memcpy(upload.mapped() + at, bytes.data(), bytes.size());
    return std::int64_t(bytes.size());
  }
  /// An output of one number, `first` bytes into the readback memory; 0 where there is none.
  double number(std::span<const port> ports, std::string_view label, std::int64_t first = 0) const {
    const port* p = find_port(ports, label);
    return p == nullptr ? 0 : number_at(readback.mapped() + first + p->where.at, p->where.type);
  }
  /// Loss and norm of a training step that is done.
  step_report read_report(std::span<const port> ports) const {
    step_report r;
    r.loss = number(ports, "loss");
    r.grad_norm = norm(ports, "grad_norm");
    r.skipped = !std::isfinite(r.loss) || !std::isfinite(r.grad_norm);
    return r;
  }
  /// The norm that an output holds in one number or by tensor; 0 where there is none.
  double norm(std::span<const port> ports, std::string_view label) const {
    const port* p = find_port(ports, label);
    return p == nullptr ? 0 : norm_at(readback.mapped() + p->where.at, p->where);
  }
};

}  // namespace isotope::vulkan
