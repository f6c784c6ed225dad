#pragma once
/// The concept of a queue: what a session needs from a device. It allocates memory, binds plans to that memory, and runs them. Each backend has one queue
/// type, and session.hpp is written once against this concept.
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

/// One submission: its value on the queue's timeline, which counts from 1, and how many launches and barriers it contains.
struct submission {
  std::uint64_t value = 0;
  std::int64_t launches = 0, barriers = 0;
};

/// Types. `memory` has address(), bytes() and mapped(), a host pointer that is null if the host cannot access the memory. `plan` is a plan bound
/// to the addresses of one frame. `owner` identifies the device.
template <class Q>
concept HasQueueTypes = requires {
  typename Q::target;
  typename Q::memory;
  typename Q::plan;
  typename Q::owner;
};
/// Constants. `host_memory`: kernels work in host memory, so that nothing is copied between host and device. `frames`: how many runs may be in flight at once.
/// `scalar_bytes`: how many bytes put_scalars writes.
template <class Q>
concept HasQueueConstants = requires {
  requires std::same_as<decltype(Q::host_memory), const bool>;
  requires std::same_as<decltype(Q::frames), const std::size_t>;
  requires std::same_as<decltype(Q::scalar_bytes), const std::int64_t>;
};
/// Every frame has the same commands, made for the addresses of the first. `submit` also gets the upload memory and the readback memory of the run's frame on
/// the host; it copies inputs from there before the run, and outputs to there after it.
template <class Q>
concept SharesCommands = requires { requires Q::shared_commands; };
/// The host reads upload memory as fast as its other memory.
template <class Q>
concept HasCachedUploads = requires { requires Q::cached_uploads; };
/// `allocate` returns zeroed memory. `allocate_mapped` needs no queue and returns zeroed memory of a device that the host can access. @error out_of_memory
template <class Q>
concept Allocates = requires(Q& q, const typename Q::owner& device, std::int64_t bytes, const std::string& label) {
  { Q::allocate_mapped(device, bytes, memory_use::readback, label) } -> std::same_as<result<typename Q::memory>>;
  { q.allocate(bytes, memory_use::device, label) } -> std::same_as<result<typename Q::memory>>;
};
/// Copies outside of runs; each is complete when the call returns. `clear` zeroes a number of bytes that is a multiple of four. @error device_lost, timeout
template <class Q>
concept Copies =
    requires(Q& q, typename Q::memory& m, std::int64_t at, std::span<const std::byte> from, std::span<const memory_piece> pieces) {
      { q.upload(m, at, from) } -> std::same_as<result<void>>;
      { q.download(m, pieces) } -> std::same_as<result<void>>;
      { q.clear(m, at, at) } -> std::same_as<result<void>>;
    };
/// Uploads from staging memory, of which there are two pieces of `staging_bytes`: `staging(k)` waits until piece k is free and returns its address, `send(k, ...)`
/// starts a copy from it, and `finish` waits for all copies. @error device_lost, timeout
template <class Q>
concept StagesUploads = requires(Q& q, typename Q::memory& m, std::int64_t at) {
  { Q::staging_bytes } -> std::convertible_to<std::int64_t>;
  { q.staging(0) } -> std::same_as<result<std::byte*>>;
  { q.send(0, m, at, at) } -> std::same_as<result<void>>;
  { q.finish() } -> std::same_as<result<void>>;
};
/// `taken_bytes`: of the device's memory, what is in use by anyone, as the driver says; 0 where it does not say.
template <class Q>
concept ReportsMemory = requires(const Q& q) {
  { q.taken_bytes() } -> std::same_as<std::int64_t>;
};
/// `bind` gives a plan its addresses; the last argument is the address that its outputs are copied to at the end of a run, or 0 if they are not copied.
/// `prepare` makes everything that a run with these phases needs. `loaded` is called when all plans of a session are bound and prepared. `submit` starts a
/// run and may return before it ends. `observe` runs to the end and calls after(index of the step) after each step. `wait` returns when a submission is
/// complete. @error out_of_memory, missing_feature, device_lost, timeout
template <class Q>
concept Runs = requires(Q& q, typename Q::plan& p, const plan_view& v, const region_addresses& base, std::uint8_t active,
                        const std::array<std::int32_t, 16>& sizes, void (*after)(std::size_t)) {
  { q.bind(v, base, std::uint64_t{}) } -> std::same_as<typename Q::plan>;
  { q.prepare(p, active, sizes) } -> std::same_as<result<void>>;
  { q.observe(p, active, after) } -> std::same_as<result<submission>>;
  { q.wait(std::uint64_t{}) } -> std::same_as<result<void>>;
  { q.loaded() } -> std::same_as<result<void>>;
  { p.dynamic() } -> std::same_as<bool>;  // whether the plan has scalar dimensions, whose sizes are known only when it runs
};
template <class Q>
concept Submits = requires(Q& q, typename Q::plan& p, std::uint8_t active, const std::array<std::int32_t, 16>& sizes) {
  { q.submit(p, active, sizes) } -> std::same_as<result<submission>>;
} || (SharesCommands<Q> && requires(Q& q, typename Q::plan& p, std::array<std::int32_t, 16>& sizes, std::byte* host) {
                    { q.submit(p, std::uint8_t{}, sizes, host, host) } -> std::same_as<result<submission>>;
                  });
/// `put_scalars` writes the scalars of optimizer step t as kernels read them. `stored` is called when a parameter's values have changed, with those values
/// unless Q::host_memory or they were staged; it returns true if the choice of kernels depends on them, so that plans must be prepared again. `rows` describes the launches of a
/// run for reports.
template <class Q>
concept ServesSessions = requires(Q& q, const Q& c, std::byte* to, const step_scalars& x, const slot& s, const region_addresses& base,
                                  std::span<const float> numbers, typename Q::plan& p) {
  q.put_scalars(to, x, std::int64_t{});
  { q.stored(s, base, numbers) } -> std::same_as<bool>;
  { c.rows(p, std::uint8_t{}) } -> std::same_as<std::vector<launch_row>>;
  { p.bytes() } -> std::same_as<std::int64_t>;  // of the plan's tables and its own device memory
  p.forget();                                   // makes the plan be prepared again before it next runs
  { c.diagnose() } -> std::same_as<const diagnostics&>;
  { c.device() } -> std::same_as<const typename Q::owner&>;
  { c.planned_bytes() } -> std::same_as<std::int64_t>;
  { c.bytes() } -> std::same_as<std::int64_t>;
  { c.objects() } -> std::same_as<std::int64_t>;               // allocations and objects made on the device since it was opened
  { c.totals() } -> std::same_as<std::string>;                 // what the device did since it was opened, as text for logs; may be empty
  { c.messages() } -> std::same_as<std::vector<std::string>>;  // for the user: of a validation layer, or of files
};

/// With Q::host_memory, `parallel` runs tasks 0 to n - 1 on the queue's threads.
template <class Q>
concept WorksInPlace = !Q::host_memory || requires(Q& q, void (*task)(std::int64_t)) { q.parallel(std::int64_t{}, task); };

template <class Q>
concept Queue =
    HasQueueTypes<Q> && HasQueueConstants<Q> && Allocates<Q> && Copies<Q> && Runs<Q> && Submits<Q> && ServesSessions<Q> && WorksInPlace<Q>;

/// A queue whose device has its own clock: `time` runs a plan once and measures each launch. @error missing_feature
template <class Q>
concept TimesLaunches = requires(Q& q, typename Q::plan& p) { q.time(p, std::uint8_t{}); };
/// A queue that runs a plan several times, one after another, in one submission.
template <class Q>
concept RepeatsRuns = requires(Q& q, typename Q::plan& p, const std::array<std::int32_t, 16>& sizes) {
  { q.submit(p, std::uint8_t{}, sizes, int{}) } -> std::same_as<result<submission>>;
} || (SharesCommands<Q> && requires(Q& q, typename Q::plan& p, const std::array<std::int32_t, 16>& sizes, std::byte* host) {
                        { q.submit(p, std::uint8_t{}, sizes, host, host, int{}) } -> std::same_as<result<submission>>;
                      });
/// A queue whose plans list their dispatches, for hazard checks and reports.
template <class Q>
concept RecordsDispatches = requires(const typename Q::plan& p) { p.dispatches(std::uint8_t{}); };

/// A queue of a device that belongs to groups of ranks, whose collectives it runs: `groups()` are rank_groups.
template <class Q>
concept BelongsToGroups = requires(const Q& q) { q.groups().mesh(); };

/// A queue that runs products of a library: `algorithms` is a digest of the algorithms that were chosen when plans were loaded; empty: there are none.
template <class Q>
concept ChoosesAlgorithms = requires(const Q& q) {
  { q.algorithms() } -> std::convertible_to<std::string>;
};

static_assert(!Queue<int>);

}  // namespace isotope
