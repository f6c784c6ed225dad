#pragma once
/// Controls of the emulated driver for tests: which devices there are, which calls fail, in which order graphs run, and counts. The driver's library exports
/// them; `emulator` finds them.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace isotope_emulated {

struct device_description {
  const char* name = "emulated device";
  int compute = 80;
  std::size_t memory = std::size_t(8) << 30;
  bool integrated = false;
  int clusters = 16;  // that run beside each other, on devices of compute capability 9.0
};
/// A kernel that an emulated library runs on the processor. It returns how many milliseconds it takes by the emulated clock.
using host_kernel = std::uint64_t (*)(const void* arguments);

/// Objects that are alive.
struct live_objects {
  std::int64_t contexts, allocations, host_allocations, streams, events, libraries, graphs, executables;
};
/// How graphs order nodes that do not wait for each other.
enum class node_order : int {
  adverse,   // one node, another one at each launch, runs as late as it may, and later nodes run before earlier ones
  creation,  // as they were added
};

class emulator {
 public:
  /// Null functions if the file is not an emulated driver.
  explicit emulator(const std::string& file) : library_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    find(devices_, "isotope_emulator_devices");
    find(version_, "isotope_emulator_version");
    find(fault_, "isotope_emulator_fault");
    find(eager_, "isotope_emulator_eager");
    find(hung_, "isotope_emulator_hung");
    find(order_, "isotope_emulator_order");
    find(calls_, "isotope_emulator_calls");
    find(listing_, "isotope_emulator_listing");
    find(live_, "isotope_emulator_live");
  }
  bool there() const { return live_ != nullptr; }

  void set_devices(const std::vector<device_description>& all) const { devices_(all.data(), all.size()); }
  /// Of the driver API: 1000 * major + 10 * minor.
  void set_version(int v) const { version_(v); }
  /// The `times` calls of `entry` (such as "cuMemAlloc") that follow `after` others return `status`. "kernel" is the execution of a kernel, whose failure the
  /// driver reports at the next wait. Null: no fault.
  void set_fault(const char* entry, int status, std::int64_t after = 0, std::int64_t times = 1) const {
    fault_(entry, status, after, times);
  }
  /// Whether work runs when it is submitted, rather than when it is waited for.
  void set_eager(bool on) const { eager_(on); }
  /// Whether work that was submitted never ends. The program is aborted where it calls what waits for the device.
  void set_hung(bool on) const { hung_(on); }
  /// `late`: the number of the node that runs as late as it may, in adverse order; -1: another one at each launch.
  void set_order(node_order o, std::int64_t late = -1) const { order_(int(o), late); }
  /// One device, a current driver, no fault, work that runs when it is waited for, adverse order.
  void reset() const {
    set_devices({device_description{}});
    set_version(13000);
    set_fault(nullptr, 0);
    set_eager(false);
    set_hung(false);
    set_order(node_order::adverse);
  }
  /// How often an entry point was called.
  std::int64_t calls(const char* entry) const { return calls_(entry); }
  /// Starts a list of calls, and returns the entry points of those since the last start, one a line. "kernel NAME" are executions.
  std::string listing() const { return listing_(); }
  live_objects live() const { return live_(); }

 private:
  void* library_ = nullptr;
  void (*devices_)(const device_description*, std::size_t) = nullptr;
  void (*version_)(int) = nullptr;
  void (*fault_)(const char*, int, std::int64_t, std::int64_t) = nullptr;
  void (*eager_)(bool) = nullptr;
  void (*hung_)(bool) = nullptr;
  void (*order_)(int, std::int64_t) = nullptr;
  std::int64_t (*calls_)(const char*) = nullptr;
  const char* (*listing_)() = nullptr;
  live_objects (*live_)() = nullptr;

  template <class F> void find(F& f, const char* name) { f = reinterpret_cast<F>(dlsym(library_, name)); }
};

}  // namespace isotope_emulated
