#pragma once
/// What a session needs of a device: memory, plans bound to that memory, and a place to submit them. Each backend has one queue type, and
/// session.hpp is written once over this concept.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../../core/diagnostics.hpp"
#include "../../core/error.hpp"
#include "../../core/step.hpp"
#include "../../plan/plan.hpp"
#include "../../plan/report/launch_row.hpp"
#include "arena_layout.hpp"
#include "memory_use.hpp"

namespace isotope {

/// One submission: its value on the queue's timeline, from 1 on, and what it holds.
struct submission {
  std::uint64_t value = 0;
  std::int64_t launches = 0, barriers = 0;
};

/// Types. `memory` has address(), bytes() and mapped(): its bytes on the host, or null where the host does not reach them. `plan` is a plan bound
/// to addresses for one frame. `owner` identifies the device.
template <class Q>
concept HasQueueTypes = requires {
  typename Q::target;
  typename Q::memory;
  typename Q::plan;
  typename Q::owner;
};
/// Constants. `host_memory`: kernels and host share memory, so that nothing is copied between them. `frames`: runs that may be in flight at once.
/// `scalar_bytes`: what put_scalars writes.
template <class Q>
concept HasQueueConstants = requires {
  requires std::same_as<decltype(Q::host_memory), const bool>;
  requires std::same_as<decltype(Q::frames), const std::size_t>;
  requires std::same_as<decltype(Q::scalar_bytes), const std::int64_t>;
};
/// `allocate` gives zeroed memory; `allocate_mapped` gives memory of a device that the host reaches, without a queue. @error out_of_memory
template <class Q>
concept Allocates = requires(Q& q, const typename Q::owner& device, std::int64_t bytes, const std::string& label) {
  { Q::allocate_mapped(device, bytes, memory_use::readback, label) } -> std::same_as<result<typename Q::memory>>;
  { q.allocate(bytes, memory_use::device, label) } -> std::same_as<result<typename Q::memory>>;
};
/// Copies outside of steps, each done when the call returns. `clear` sets bytes, a multiple of four, to zero. @error device_lost, timeout
template <class Q>
concept Copies =
    requires(Q& q, typename Q::memory& m, std::int64_t at, std::span<const std::byte> from, std::span<const memory_piece> pieces) {
      { q.upload(m, at, from) } -> std::same_as<result<void>>;
      { q.download(m, pieces) } -> std::same_as<result<void>>;
      { q.clear(m, at, at) } -> std::same_as<result<void>>;
    };
/// `bind` gives a plan its addresses; `readback` is where its outputs go at the end of a run, 0: nowhere. `prepare` makes what a run with these phases
/// needs; `loaded` is called once all plans of a session are bound and prepared. `submit` starts one and may return before it ends, `observe` calls after(step of the plan) when each step is done, `wait` returns when a
/// submission is done. @error out_of_memory, missing_feature, device_lost, timeout
template <class Q>
concept Runs = requires(Q& q, typename Q::plan& p, const plan_view& v, const region_addresses& base, std::uint8_t active,
                        const std::array<std::int32_t, 16>& sizes, void (*after)(std::size_t)) {
  { q.bind(v, base, std::uint64_t{}) } -> std::same_as<typename Q::plan>;
  { q.prepare(p, active, sizes) } -> std::same_as<result<void>>;
  { q.submit(p, active, sizes) } -> std::same_as<result<submission>>;
  { q.observe(p, active, after) } -> std::same_as<result<submission>>;
  { q.wait(std::uint64_t{}) } -> std::same_as<result<void>>;
  { q.loaded() } -> std::same_as<result<void>>;
  { p.dynamic() } -> std::same_as<bool>;  // whether some size is known only when a step runs
};
/// `put_scalars` writes the scalars of update t as kernels read them. `stored` is told of a parameter whose numbers have changed, with those numbers
/// where the queue has no host memory; true: kernels are chosen anew, so that plans must be prepared again. `rows` describes
/// the launches of a run for reports.
template <class Q>
concept ServesSessions = requires(Q& q, const Q& c, std::byte* to, const step_scalars& x, const slot& s, const region_addresses& base,
                                  std::span<const float> numbers, typename Q::plan& p) {
  q.put_scalars(to, x, std::int64_t{});
  { q.stored(s, base, numbers) } -> std::same_as<bool>;
  { c.rows(p, std::uint8_t{}) } -> std::same_as<std::vector<launch_row>>;
  { p.bytes() } -> std::same_as<std::int64_t>;  // of its tables and its own device memory
  p.forget();                                   // a plan is prepared again before it next runs
  { c.diagnose() } -> std::same_as<const diagnostics&>;
  { c.device() } -> std::same_as<const typename Q::owner&>;
  { c.planned_bytes() } -> std::same_as<std::int64_t>;
  { c.bytes() } -> std::same_as<std::int64_t>;
  { c.objects() } -> std::same_as<std::int64_t>;  // allocations and objects made on the device since it was opened
  { c.totals() } -> std::same_as<std::string>;    // what the device did since it was opened, as text; empty: nothing worth telling
  { c.messages() } -> std::same_as<std::vector<std::string>>;  // what a validation layer said
};

/// Where memory is the host's, `parallel` runs tasks 0 to n - 1 on its threads.
template <class Q>
concept WorksInPlace = !Q::host_memory || requires(Q& q, void (*task)(std::int64_t)) { q.parallel(std::int64_t{}, task); };

template <class Q>
concept Queue = HasQueueTypes<Q> && HasQueueConstants<Q> && Allocates<Q> && Copies<Q> && Runs<Q> && ServesSessions<Q> && WorksInPlace<Q>;

/// A queue whose device has a clock of its own: `time` runs a plan once with a clock around each launch. @error missing_feature
template <class Q>
concept TimesLaunches = requires(Q& q, typename Q::plan& p) { q.time(p, std::uint8_t{}); };
/// A queue that records dispatches, which checkers of hazards and reports look at.
template <class Q>
concept RecordsDispatches = requires(const typename Q::plan& p) { p.dispatches(std::uint8_t{}); };

static_assert(!Queue<int>);

}  // namespace isotope
