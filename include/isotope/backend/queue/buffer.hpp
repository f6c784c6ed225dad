#pragma once
/// Typed device memory that an application owns. It is freed with its object and can be used on its own device only.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "../../core/error.hpp"
#include "../../core/shape.hpp"
#include "queue.hpp"

namespace isotope {

/// `length` zeroed elements of a trivial type E, accessible to host and device. Made by `device::allocate`.
template <class E, Queue Q> class buffer {
  static_assert(std::is_trivially_copyable_v<E>,
                "a buffer holds plain numbers: objects with destructors or pointers cannot live on a device");

 public:
  /// @error invalid_argument: a negative length, or more than 2^40 elements; out_of_memory
  static result<buffer> allocate(std::int64_t length, const typename Q::owner& device) {
    if (length < 0 || length > max_elements)
      return fail(errc::invalid_argument, "a buffer of " + std::to_string(length) + " elements", "device", "ask for 0 to 2^40");
    auto m = Q::allocate_mapped(device, length * std::int64_t(sizeof(E)), memory_use::readback, "isotope buffer");
    if (!m) return m.error();
    return buffer(*std::move(m), length, device);
  }
  std::span<E> span() { return {reinterpret_cast<E*>(memory_.mapped()), std::size_t(length_)}; }
  std::span<const E> span() const { return {reinterpret_cast<const E*>(memory_.mapped()), std::size_t(length_)}; }
  std::uint64_t address() const { return memory_.address(); }
  /// Whether the buffer belongs to this device.
  bool on(const typename Q::owner& device) const { return owner_ == device; }

 private:
  typename Q::memory memory_;
  std::int64_t length_ = 0;
  typename Q::owner owner_;

  buffer(typename Q::memory m, std::int64_t length, typename Q::owner owner)
      : memory_(std::move(m)), length_(length), owner_(std::move(owner)) {}
};

}  // namespace isotope
