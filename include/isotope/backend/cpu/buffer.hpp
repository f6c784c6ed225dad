#pragma once
/// Memory of a device that an application owns: typed, released with its object, usable on its own device only.
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "../../core/shape.hpp"
#include "arena.hpp"
#include "thread_pool.hpp"

namespace isotope::cpu {

/// `length` zeroed elements of a trivial type E. Made by `device::allocate`.
template <class E> class buffer {
  static_assert(std::is_trivially_copyable_v<E>,
                "a buffer holds plain numbers: objects with destructors or pointers cannot live on a device");

 public:
  /// @error invalid_argument: a negative length, or more than 2^40 elements; out_of_memory
  static result<buffer> allocate(std::int64_t length, std::shared_ptr<thread_pool> owner) {
    if (length < 0 || length > max_elements)
      return fail(errc::invalid_argument, "a buffer of " + std::to_string(length) + " elements", "device", "ask for 0 to 2^40");
    auto memory = arena::allocate(length * std::int64_t(sizeof(E)));
    if (!memory) return memory.error();
    buffer b;
    b.memory_ = std::move(*memory);
    b.length_ = length;
    b.owner_ = std::move(owner);
    return b;
  }
  std::span<E> span() { return {reinterpret_cast<E*>(memory_.data()), std::size_t(length_)}; }
  std::span<const E> span() const { return {reinterpret_cast<const E*>(memory_.data()), std::size_t(length_)}; }
  /// Whether the buffer belongs to the device whose threads these are.
  bool on(const std::shared_ptr<thread_pool>& device) const { return owner_ == device; }

 private:
  arena memory_;
  std::int64_t length_ = 0;
  std::shared_ptr<thread_pool> owner_;
};

}  // namespace isotope::cpu
