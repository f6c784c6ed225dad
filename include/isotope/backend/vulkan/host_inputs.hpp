#pragma once
/// The inputs of a session's plans as the host wants them. Each lane has a copy in memory that the device reads, brought up to date before a step.
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "../../core/batch.hpp"
#include "../state_dict.hpp"
#include "lane.hpp"

namespace isotope::vulkan {

class host_inputs {
 public:
  /// Ports of a plan, and where their region lies in the lanes' upload memory.
  struct region {
    std::span<const port> ports;
    std::int64_t first = 0, bytes = 0;
  };
  region train, evaluation;

  host_inputs() = default;
  host_inputs(region of_train, region of_evaluation)
      : train(of_train), evaluation(of_evaluation), bytes_(std::size_t(of_evaluation.first + of_evaluation.bytes)) {}

  /// @error not_found, with the names there are
  template <class E> result<std::span<E>> of_training(std::string_view label) { return find<E>(train, label, "input"); }
  template <class E> result<std::span<E>> of_evaluation(std::string_view label) {
    if (const port* p = find_port(evaluation.ports, label); p != nullptr && same_port(train.ports, *p) != nullptr)
      return of_training<E>(label);
    return find<E>(evaluation, label, "input of the evaluation");
  }
  /// Takes the ids of a batch. False where its size is not the plan's.
  bool take(const batch& b, const region& to) {
    if (!fits(to.ports, b)) return false;
    const auto copy = [&](std::string_view label, std::span<const std::int32_t> from) {
      const port* p = find_port(to.ports, label);
      if (p != nullptr && !from.empty()) std::memcpy(at(to, *p), from.data(), from.size_bytes());
    };
    copy("tokens", b.tokens);
    copy("targets", b.targets);
    return true;
  }
  /// Gives the evaluation the inputs that both plans have.
  void share() {
    for (const port& to : evaluation.ports)
      if (const port* from = same_port(train.ports, to); from != nullptr)
        std::memcpy(at(evaluation, to), at(train, *from), std::size_t(from->where.bytes));
  }
  /// Writes inputs to a lane that is free: those that differ from what is there, or `always`; and the whole region where somebody wrote between
  /// them, as checkers do. Returns the bytes written.
  std::int64_t put(vulkan::lane& l, const region& from, bool always) {
    std::int64_t written = 0;
    for (const port& p : from.ports) written += l.put(from.first + p.where.at, {at(from, p), std::size_t(p.where.bytes)}, always);
    return written + l.put(from.first, {bytes_.data() + from.first, std::size_t(from.bytes)}, false);
  }
  /// What the device reads of a region in a lane, for checkers that look for kernels that write there.
  static std::span<const std::byte> seen(const vulkan::lane& l, const region& r) {
    return {l.upload.mapped() + r.first, std::size_t(r.bytes)};
  }

 private:
  std::vector<std::byte> bytes_;  // laid out as the lanes' upload memory

  std::byte* at(const region& r, const port& p) { return bytes_.data() + r.first + p.where.at; }
  template <class E> result<std::span<E>> find(const region& r, std::string_view label, const char* what) {
    auto p = typed_port(r.ports, label, std::int64_t(sizeof(E)), what);
    if (!p) return p.error();
    return std::span<E>(reinterpret_cast<E*>(at(r, **p)), std::size_t((*p)->where.dims.count()));
  }
};

}  // namespace isotope::vulkan
