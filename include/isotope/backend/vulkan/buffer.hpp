#pragma once
/// Memory of a device that an application owns: typed, released with its object, usable on its own device only.
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "../../core/shape.hpp"
#include "memory.hpp"

namespace isotope::vulkan {

/// `length` zeroed elements of a trivial type E that host and device reach. Made by `device::allocate`.
template <class E> class buffer {
  static_assert(std::is_trivially_copyable_v<E>,
                "a buffer holds plain numbers: objects with destructors or pointers cannot live on a device");

 public:
  /// @error invalid_argument: a negative length, or more than 2^40 elements; out_of_memory
  static result<buffer> allocate(std::int64_t length, std::shared_ptr<context> owner) {
    if (length < 0 || length > max_elements)
      return fail(errc::invalid_argument, "a buffer of " + std::to_string(length) + " elements", "device", "ask for 0 to 2^40");
    auto m = memory::allocate(owner, length * std::int64_t(sizeof(E)), memory_use::readback, "isotope buffer");
    if (!m) return m.error();
    buffer b;
    b.memory_ = std::move(*m);
    b.length_ = length;
    b.owner_ = std::move(owner);
    std::memset(b.memory_.mapped(), 0, std::size_t(b.memory_.bytes()));
    return b;
  }
  std::span<E> span() { return {reinterpret_cast<E*>(memory_.mapped()), std::size_t(length_)}; }
  std::span<const E> span() const { return {reinterpret_cast<const E*>(memory_.mapped()), std::size_t(length_)}; }
  std::uint64_t address() const { return memory_.address(); }
  /// Whether the buffer belongs to this device.
  bool on(const std::shared_ptr<context>& device) const { return owner_ == device; }

 private:
  memory memory_;
  std::int64_t length_ = 0;
  std::shared_ptr<context> owner_;
};

}  // namespace isotope::vulkan
