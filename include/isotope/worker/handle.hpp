#pragma once
/// Names for what lives on a device worker. A handle is a plain value; using one whose object was dropped is an error, not an access to another object.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "host_value.hpp"

namespace isotope::worker {

/// Names one object of a worker. Handles of different kinds are different types and convert to nothing.
template <class Kind> struct handle {
  std::uint64_t worker = 0;      // the number of the worker, counted from 1 over the process; 0: the handle names nothing
  std::uint32_t slot = 0;        // where the worker keeps the object
  std::uint32_t generation = 0;  // of the slot: it grows with every object that the slot gets
  friend bool operator==(const handle&, const handle&) = default;
};
template <class Kind> constexpr auto host_members(const handle<Kind>& h) { return std::tie(h.worker, h.slot, h.generation); }

/// A model on one device.
struct model_kind {
  static constexpr std::string_view name = "model";
};
using model_handle = handle<model_kind>;

/// This worker's end of a group of ranks.
struct communicator_kind {
  static constexpr std::string_view name = "communicator";
};
using communicator_handle = handle<communicator_kind>;

/// A model of which every rank of a pool has a part. Jobs of one worker do not take it: all ranks must run the same jobs (worker/pool.hpp).
struct tensor_parallel_kind {
  static constexpr std::string_view name = "tensor-parallel model";
};
using tensor_parallel_handle = handle<tensor_parallel_kind>;

static_assert(!std::is_convertible_v<tensor_parallel_handle, model_handle> &&
              !std::is_constructible_v<model_handle, tensor_parallel_handle>);
static_assert(!std::is_convertible_v<communicator_handle, model_handle> && HostValue<model_handle>);

/// The objects of one kind that a worker has.
template <class Kind, class Object> class handle_table {
 public:
  handle_table() = default;
  explicit handle_table(std::uint64_t worker) : worker_(worker) {}

  handle<Kind> add(Object object) {
    std::uint32_t slot = 0;
    while (slot < slots_.size() && slots_[slot].object) ++slot;
    if (slot == slots_.size()) slots_.emplace_back();
    slots_[slot].object.emplace(std::move(object));
    return {worker_, slot, ++slots_[slot].generation};
  }
  /// @error wrong_device: a handle of another worker; stale_handle: its object was dropped
  result<Object*> find(const handle<Kind>& h) {
    const std::string what = std::string(Kind::name) + " " + std::to_string(h.slot);
    if (h.worker != worker_)
      return fail(errc::wrong_device,
                  "the handle is of worker " + std::to_string(h.worker) + ", and this is worker " + std::to_string(worker_), what,
                  "submit the job to the worker that gave the handle");
    if (h.slot < slots_.size() && slots_[h.slot].object && slots_[h.slot].generation == h.generation) return &*slots_[h.slot].object;
    return fail(errc::stale_handle, "it was dropped: the handle is of generation " + std::to_string(h.generation), what,
                "use the handle that the last load gave");
  }
  /// Takes an object out of the table. @error as `find`
  result<Object> take(const handle<Kind>& h) {
    auto found = find(h);
    if (!found) return std::move(found).error();
    result<Object> object(std::move(**found));
    slots_[h.slot].object.reset();
    return object;
  }
  std::size_t size() const {
    std::size_t n = 0;
    for (const auto& s : slots_) n += s.object ? 1 : 0;
    return n;
  }
  /// Destroys all objects, the newest first.
  void clear() {
    while (!slots_.empty()) slots_.pop_back();
  }
  template <class Each> void for_each(const Each& each) {
    for (auto& s : slots_)
      if (s.object) each(*s.object);
  }

 private:
  struct slot_of {
    std::optional<Object> object;
    std::uint32_t generation = 0;
  };
  std::uint64_t worker_ = 0;
  std::vector<slot_of> slots_;
};

}  // namespace isotope::worker
