#pragma once
// The objects of the emulated driver.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <isotope/backend/cuda/driver.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control.hpp"
#include "run_ptx.hpp"
#include "runtime.hpp"

namespace isotope::cuda::handle {
struct context_object {
  int device = 0;
  int retained = 0;
  status broken = status::success;  // every call in the context returns it
};
struct library_object {
  void* library = nullptr;  // of dlopen; null: the code is the text of one kernel
  std::shared_ptr<cuda_test::ptx_program> text;
  std::size_t argument_bytes = 0;  // of that kernel
  std::string module;
  std::map<std::string, std::unique_ptr<kernel_object>> kernels;
};
struct kernel_object {
  const isotope_emulated::kernel* code = nullptr;  // null: the text is run
  isotope_emulated::host_kernel host = nullptr;    // a kernel of an emulated library, which runs instead of either
  std::shared_ptr<cuda_test::ptx_program> text;
  std::string name;
  std::size_t argument_bytes = 0;
  int most_threads = 0;  // 0: no limit but the device's
  std::size_t shared_opt_in = std::size_t(48) << 10;
};
struct event_object {
  stream_object* stream = nullptr;
  std::uint64_t position = 0;  // in the stream's work
  std::uint64_t at = 0;        // driver_state::ticks when the stream reached it
};
struct stream_object {
  std::deque<std::function<status()>> work;
  std::uint64_t submitted = 0, done = 0;
  context_object* context = nullptr;
  graph_object* captured = nullptr;  // takes the work instead while the stream is captured
};
/// A launch with its own copy of the arguments.
struct launched {
  kernel_node what;
  unsigned cluster = 1;
  bool together = false;
  std::vector<std::byte> arguments;
  void* parameters[1] = {nullptr};
};
struct node_object {
  std::function<status()> run;
  std::vector<std::size_t> after;
  std::size_t index = 0;
  int type = 0;  // as cuGraphNodeGetType numbers them
  std::shared_ptr<launched> launch;
};
struct graph_object {
  std::vector<std::unique_ptr<node_object>> nodes;
};
struct executable_object {
  std::shared_ptr<graph_object> graph;
};
}  // namespace isotope::cuda::handle

namespace isotope_emulated {

using isotope::cuda::status;
namespace handle = isotope::cuda::handle;

/// A result of the real driver that the backend does not name.
inline constexpr status invalid_context{201}, not_supported{801};

inline constexpr int kernel_node_type = 0, copy_node_type = 1, graph_node_type = 4;

struct device_memory {
  std::byte *first = nullptr, *data = nullptr;  // of the mapping; what the program gets
  std::size_t mapped = 0, bytes = 0;
  int device = 0;
};
/// Bytes of shared memory of a multiprocessor; a block may have all of it but one KB.
inline std::size_t shared_of_multiprocessor(int compute) { return std::size_t(compute == 90 ? 228 : 164) << 10; }
inline int multiprocessors(int compute) { return compute == 90 ? 132 : 4; }
/// The compute capability of the device until a test sets devices, 10 * major + minor: that of the variable ISOTOPE_EMULATED_COMPUTE, or one that the build has general code for.
int first_compute();

struct driver_state {
  std::uint64_t ticks = 0;  // events that streams have reached; there is no clock, so each counts as a millisecond
  std::recursive_mutex mutex;
  std::vector<std::string> names{"emulated device"};
  std::vector<device_description> devices{device_description{.compute = first_compute()}};
  int version = 13000;
  std::string fault_entry;
  status fault_status = status::success;
  std::int64_t fault_after = 0, fault_times = 0;
  bool eager = false, hung = false;
  node_order order = node_order::adverse;
  std::int64_t late = -1;
  std::map<std::string, std::int64_t, std::less<>> calls;
  bool lists = false;
  std::string listing, listed;

  bool initialized = false;
  std::map<int, std::unique_ptr<handle::context_object>> primary;
  std::map<std::uintptr_t, device_memory> memory;     // by address
  std::map<std::uintptr_t, std::size_t> host_memory;  // page-locked
  std::set<handle::stream_object*> streams;
  std::set<handle::event_object*> events;
  std::set<handle::library_object*> libraries;
  std::set<handle::graph_object*> graphs;
  std::set<handle::executable_object*> executables;
  std::map<std::string, std::unique_ptr<handle::kernel_object>> host_kernels;  // of emulated libraries
  std::uint64_t graph_launches = 0;

  void count(std::string_view what) {
    const auto at = calls.find(what);
    if (at != calls.end()) ++at->second;
    else calls.emplace(what, 1);
    if (lists) listing.append(what) += '\n';
  }
  /// Counts a call; true if it is one that a test wants to fail.
  bool strikes(const char* entry) {
    count(entry);
    if (fault_entry != entry) return false;
    if (fault_after-- > 0) return false;
    if (--fault_times == 0) fault_entry.clear();
    return true;
  }
  std::size_t used(int device) const {
    std::size_t n = 0;
    for (const auto& [at, m] : memory) n += m.device == device ? m.bytes : 0;
    return n;
  }
};
driver_state& state();

/// The contexts of the calling thread.
std::vector<handle::context_object*>& context_stack();
inline handle::context_object* current() { return context_stack().empty() ? nullptr : context_stack().back(); }

/// Runs the body of an entry point that needs no context.
template <class Body> status enter_plain(const char* name, const Body& body) {
  driver_state& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.strikes(name)) return s.fault_status;
  return body(s);
}
/// Runs the body of an entry point in the current context.
template <class Body> status enter(const char* name, const Body& body) {
  return enter_plain(name, [&](driver_state& s) {
    if (!s.initialized) return status::not_initialized;
    if (current() == nullptr) return invalid_context;
    if (current()->broken != status::success) return current()->broken;
    return body(s);
  });
}

/// Puts work on a stream; `launch` describes it if it is a kernel.
status submit(handle::stream_object* stream, std::function<status()> work, std::shared_ptr<handle::launched> launch = nullptr);
/// Runs what was submitted to a stream, up to a position.
status run_until(handle::stream_object* stream, std::uint64_t position);
void run_everything();
/// Frees what a broken context had.
void reclaim(handle::context_object& c);
void free_all(int device);
/// Prints the message and aborts: the program would have undefined behavior on a device.
[[noreturn]] void misused(const std::string& message);
/// Aborts if the device hangs, since the caller would wait for ever.
inline void waits(const char* entry) {
  if (state().hung) misused(std::string(entry) + " waits for work that does not end");
}
/// Whether the bytes lie in one allocation of the current device.
bool on_device(std::uint64_t at, std::size_t bytes);
bool page_locked(const void* at, std::size_t bytes);
/// Aborts if a kernel wrote behind or before an allocation.
void check_red_zones(const std::string& after);

/// Adds the entry points of a part of the driver under the names of cuGetProcAddress.
struct entry_point {
  const char* name;
  int since;  // version of the driver API
  void* function;
};
std::vector<entry_point> memory_entries(), work_entries(), device_entries(), capture_entries(), hopper_entries();
template <class... A> entry_point entry(const char* name, int since, status (*f)(A...)) {
  return {name, since, reinterpret_cast<void*>(f)};
}

}  // namespace isotope_emulated
