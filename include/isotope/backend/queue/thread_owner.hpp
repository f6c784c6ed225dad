#pragma once
/// The thread that a device belongs to, so that builds with assertions notice a call from another one.
#include <atomic>
#include <cassert>

namespace isotope {

/// A backend has one in the object that all calls of its driver pass through, and calls `check` there. Without assertions, `check` is empty.
class thread_owner {
 public:
  /// Makes the calling thread the owner. Until then, every thread may use the device.
  void claim() const { owner_.store(this_thread(), std::memory_order_relaxed); }
  /// Whether the calling thread may use the device: nobody owns it, or this thread does, or is a helper of the owner.
  bool here() const {
    const void* const owner = owner_.load(std::memory_order_relaxed);
    return owner == nullptr || owner == this_thread() || helped() == this;
  }
  void check() const { assert(here() && "a device that belongs to a device worker was used on another thread"); }

  /// While it lives, the calling thread helps the owner, which waits for it: it may use the device, too.
  class helper {
   public:
    explicit helper(const thread_owner& of) { helped() = &of; }
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;
    ~helper() { helped() = nullptr; }
  };

 private:
  mutable std::atomic<const void*> owner_ = nullptr;  // the address that this_thread() has on the owning thread

  static const void* this_thread() {
    static thread_local char mark = 0;
    return &mark;
  }
  static const thread_owner*& helped() {
    static thread_local const thread_owner* of = nullptr;
    return of;
  }
};

}  // namespace isotope
