// Devices, contexts and code of the emulated driver, how its entry points are found, and the controls of tests.
#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "driver_state.hpp"

namespace isotope_emulated {

using namespace isotope::cuda;

driver_state& state() {
  static driver_state& s = *new driver_state;  // programs may use it until their very end
  return s;
}
std::vector<handle::context_object*>& context_stack() {
  thread_local std::vector<handle::context_object*> all;
  return all;
}
void misused(const std::string& message) {
  std::fprintf(stderr, "emulated driver: %s\n", message.c_str());
  std::fflush(stderr);
  std::abort();
}

namespace {

status init(unsigned) {
  return enter_plain("cuInit", [](driver_state& s) {
    if (s.devices.empty()) return status::no_device;
    s.initialized = true;
    return status::success;
  });
}
status error_name(status s, const char** name) {
  static const std::map<int, const char*> all = {{0, "CUDA_SUCCESS"},
                                                 {1, "CUDA_ERROR_INVALID_VALUE"},
                                                 {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                 {3, "CUDA_ERROR_NOT_INITIALIZED"},
                                                 {100, "CUDA_ERROR_NO_DEVICE"},
                                                 {101, "CUDA_ERROR_INVALID_DEVICE"},
                                                 {200, "CUDA_ERROR_INVALID_IMAGE"},
                                                 {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                 {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                                                 {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
                                                 {218, "CUDA_ERROR_INVALID_PTX"},
                                                 {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
                                                 {500, "CUDA_ERROR_NOT_FOUND"},
                                                 {600, "CUDA_ERROR_NOT_READY"},
                                                 {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                 {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
                                                 {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
                                                 {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
                                                 {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                                                 {719, "CUDA_ERROR_LAUNCH_FAILED"},
                                                 {801, "CUDA_ERROR_NOT_SUPPORTED"},
                                                 {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
                                                 {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
                                                 {999, "CUDA_ERROR_UNKNOWN"}};
  const auto at = all.find(int(s));
  *name = at == all.end() ? nullptr : at->second;
  return at == all.end() ? status::invalid_value : status::success;
}

template <class Body> status with_device(const char* name, device_handle d, const Body& body) {
  return enter_plain(name, [&](driver_state& s) {
    if (!s.initialized) return status::not_initialized;
    if (d < 0 || std::size_t(d) >= s.devices.size()) return status::invalid_device;
    return body(s);
  });
}
status device_count(int* n) {
  return enter_plain("cuDeviceGetCount", [&](driver_state& s) {
    *n = int(s.devices.size());
    return s.initialized ? status::success : status::not_initialized;
  });
}
status device_get(device_handle* d, int ordinal) {
  return with_device("cuDeviceGet", ordinal, [&](driver_state&) {
    *d = ordinal;
    return status::success;
  });
}
status device_name(char* to, int bytes, device_handle d) {
  return with_device("cuDeviceGetName", d, [&](driver_state& s) {
    std::snprintf(to, std::size_t(bytes), "%s", s.names[std::size_t(d)].c_str());
    return status::success;
  });
}
status device_uuid_of(device_uuid* to, device_handle d) {
  return with_device("cuDeviceGetUuid", d, [&](driver_state&) {
    for (std::size_t k = 0; k < to->bytes.size(); ++k) to->bytes[k] = static_cast<unsigned char>(16 * std::size_t(d) + k);
    return status::success;
  });
}
status device_total_memory(std::size_t* bytes, device_handle d) {
  return with_device("cuDeviceTotalMem", d, [&](driver_state& s) {
    *bytes = s.devices[std::size_t(d)].memory;
    return status::success;
  });
}
status device_attribute_of(int* value, device_attribute a, device_handle d) {
  return with_device("cuDeviceGetAttribute", d, [&](driver_state& s) {
    const int compute = s.devices[std::size_t(d)].compute;
    switch (a) {
      case device_attribute::threads_of_block: *value = 1024; break;
      case device_attribute::multiprocessors: *value = multiprocessors(compute); break;
      case device_attribute::integrated: *value = s.devices[std::size_t(d)].integrated ? 1 : 0; break;
      case device_attribute::l2_bytes: *value = 4 << 20; break;
      case device_attribute::compute_major: *value = compute / 10; break;
      case device_attribute::compute_minor: *value = compute % 10; break;
      case device_attribute::shared_of_multiprocessor: *value = int(shared_of_multiprocessor(compute)); break;
      case device_attribute::shared_of_block_opt_in: *value = int(shared_of_multiprocessor(compute)) - 1024; break;
      default: return status::invalid_value;
    }
    return status::success;
  });
}

status retain_primary_context(context_handle* made, device_handle d) {
  return with_device("cuDevicePrimaryCtxRetain", d, [&](driver_state& s) {
    auto& c = s.primary[d];
    if (c == nullptr) {
      c = std::make_unique<handle::context_object>();
      c->device = d;
    }
    ++c->retained;
    *made = c.get();
    return status::success;
  });
}
status release_primary_context(device_handle d) {
  return with_device("cuDevicePrimaryCtxRelease", d, [&](driver_state& s) {
    const auto& c = s.primary[d];
    if (c == nullptr || c->retained == 0) return invalid_context;
    if (--c->retained > 0) return status::success;
    waits("cuDevicePrimaryCtxRelease");
    // The context keeps its address; what was broken in it is gone with it.
    run_everything();
    if (c->broken != status::success) reclaim(*c);
    c->broken = status::success;
    return status::success;
  });
}
status push_context(context_handle c) {
  return enter_plain("cuCtxPushCurrent", [&](driver_state&) {
    if (c == nullptr || c->retained == 0) return invalid_context;
    context_stack().push_back(c);
    return status::success;
  });
}
status pop_context(context_handle* c) {
  return enter_plain("cuCtxPopCurrent", [&](driver_state&) {
    if (context_stack().empty()) return invalid_context;
    *c = context_stack().back();
    context_stack().pop_back();
    return status::success;
  });
}
status context_device(device_handle* d) {
  return enter("cuCtxGetDevice", [&](driver_state&) {
    *d = current()->device;
    return status::success;
  });
}

/// The folder of this library. modules/NAME.so beside it has the kernels of a module.
std::string own_folder() {
  Dl_info where{};
  dladdr(reinterpret_cast<const void*>(&own_folder), &where);
  const std::string file = where.dli_fname == nullptr ? "" : where.dli_fname;
  const auto slash = file.rfind('/');
  return slash == file.npos ? "." : file.substr(0, slash);
}
/// The module that an image is: text "emulated module NAME", or machine code that equals the file NAME.fatbin of the build.
std::string module_of(const char* image) {
  constexpr std::string_view named = "emulated module ";
  if (std::strncmp(image, named.data(), named.size()) == 0) return image + named.size();
  static const std::map<std::string, std::string> files = [] {
    std::map<std::string, std::string> all;
    DIR* const folder = opendir(ISOTOPE_FATBIN_FOLDER);
    if (folder == nullptr) return all;
    while (const dirent* const e = readdir(folder)) {
      const std::string name = e->d_name;
      if (!name.ends_with(".fatbin")) continue;
      std::ifstream in(std::string(ISOTOPE_FATBIN_FOLDER) + "/" + name, std::ios::binary);
      all.emplace(std::string(std::istreambuf_iterator<char>(in), {}), name.substr(0, name.size() - 7));
    }
    closedir(folder);
    return all;
  }();
  struct fatbin_header {
    std::uint32_t magic;
    std::uint16_t version, bytes;
    std::uint64_t rest;
  } h;
  std::memcpy(&h, image, sizeof h);
  if (h.magic != 0xba55ed50u) return {};
  const auto at = files.find(std::string(image, h.bytes + h.rest));
  return at == files.end() ? std::string() : at->second;
}
status load_library(library_handle* made, const void* image, void*, void**, unsigned, void*, void**, unsigned) {
  return enter("cuLibraryLoadData", [&](driver_state& s) {
    const auto* const text = static_cast<const char*>(image);
    if (const std::string_view all(text); all.starts_with(".version")) {
      const auto name = all.find(".entry "), bytes = all.find("arguments[");
      auto program = std::make_shared<isotope::cuda_test::ptx_program>(all);
      if (name == all.npos || bytes == all.npos || !program->error().empty()) {
        std::fprintf(stderr, "emulated driver: %s\n", program->error().c_str());
        return status::invalid_ptx;
      }
      const std::string_view from_name = all.substr(name + 7);
      *made = new handle::library_object{nullptr,
                                         std::move(program),
                                         std::stoul(std::string(all.substr(bytes + 10, 8))),
                                         std::string(from_name.substr(0, from_name.find('('))),
                                         {}};
      s.libraries.insert(*made);
      return status::success;
    }
    const std::string module = module_of(text);
    if (module.empty()) return status::invalid_image;
    void* const library = dlopen((own_folder() + "/modules/" + module + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "emulated driver: %s\n", dlerror());
      return status::no_binary_for_device;
    }
    *made = new handle::library_object{library, nullptr, 0, module, {}};
    s.libraries.insert(*made);
    return status::success;
  });
}
status unload_library(library_handle l) {
  return enter("cuLibraryUnload", [&](driver_state& s) {
    if (s.libraries.erase(l) == 0) return status::invalid_value;
    delete l;  // its code stays, since work that was not waited for may run it
    return status::success;
  });
}
status library_kernel(kernel_handle* found, library_handle l, const char* name) {
  return enter("cuLibraryGetKernel", [&](driver_state& s) {
    if (!s.libraries.contains(l)) return status::invalid_value;
    auto& k = l->kernels[name];
    if (k == nullptr && l->text != nullptr) {
      if (l->module != name) return status::not_found;
      k = std::make_unique<handle::kernel_object>();
      k->text = l->text;
      k->name = name;
      k->argument_bytes = l->argument_bytes;
    } else if (k == nullptr) {
      const auto* const code = static_cast<const kernel*>(dlsym(l->library, ("isotope_emulated_" + std::string(name)).c_str()));
      if (code == nullptr) return status::not_found;
      k = std::make_unique<handle::kernel_object>();
      k->code = code;
      k->name = name;
      k->argument_bytes = code->argument_bytes;
      k->most_threads = code->most_threads;
    }
    *found = k.get();
    return status::success;
  });
}
status set_kernel_attribute(kernel_attribute a, int value, kernel_handle k, device_handle) {
  return enter("cuKernelSetAttribute", [&](driver_state& s) {
    if (k == nullptr || value < 0) return status::invalid_value;
    const int compute = s.devices[std::size_t(current()->device)].compute;
    if (a == kernel_attribute::non_portable_cluster) return compute == 90 ? status::success : not_supported;
    if (a != kernel_attribute::dynamic_shared_bytes || value > int(shared_of_multiprocessor(compute)) - 1024) return status::invalid_value;
    k->shared_opt_in = std::max(k->shared_opt_in, std::size_t(value));
    return status::success;
  });
}
status kernel_function(function_handle* f, kernel_handle k) {
  return enter("cuKernelGetFunction", [&](driver_state&) {
    *f = reinterpret_cast<function_handle>(k);
    return status::success;
  });
}

}  // namespace

extern "C" ISOTOPE_EMULATOR_EXPORT status cuDriverGetVersion(int* v) {
  return enter_plain("cuDriverGetVersion", [&](driver_state& s) {
    *v = s.version;
    return status::success;
  });
}

std::vector<entry_point> device_entries() {
  return {
      entry("cuInit", 2000, init),
      entry("cuDriverGetVersion", 2020, cuDriverGetVersion),
      entry("cuGetErrorName", 6000, error_name),
      entry("cuDeviceGetCount", 2000, device_count),
      entry("cuDeviceGet", 2000, device_get),
      entry("cuDeviceGetName", 2000, device_name),
      entry("cuDeviceGetUuid", 11040, device_uuid_of),
      entry("cuDeviceTotalMem", 3020, device_total_memory),
      entry("cuDeviceGetAttribute", 2000, device_attribute_of),
      entry("cuDevicePrimaryCtxRetain", 7000, retain_primary_context),
      entry("cuDevicePrimaryCtxRelease", 11000, release_primary_context),
      entry("cuCtxPushCurrent", 4000, push_context),
      entry("cuCtxPopCurrent", 4000, pop_context),
      entry("cuCtxGetDevice", 2000, context_device),
      entry("cuLibraryLoadData", 12000, load_library),
      entry("cuLibraryUnload", 12000, unload_library),
      entry("cuLibraryGetKernel", 12000, library_kernel),
      entry("cuKernelSetAttribute", 12000, set_kernel_attribute),
      entry("cuKernelGetFunction", 12000, kernel_function),
  };
}

extern "C" {
ISOTOPE_EMULATOR_EXPORT status cuGetProcAddress_v2(const char* name, void** found, int version, std::uint64_t, int* how) {
  static const std::vector<entry_point> all = [] {
    std::vector<entry_point> made = device_entries();
    for (const auto& more : {memory_entries(), work_entries(), capture_entries(), hopper_entries()})
      made.insert(made.end(), more.begin(), more.end());
    return made;
  }();
  *found = nullptr;
  for (const entry_point& e : all)
    if (std::strcmp(e.name, name) == 0 && e.since <= std::min(version, state().version)) *found = e.function;
  if (how != nullptr) *how = *found == nullptr ? 1 : 0;
  return *found == nullptr ? status::not_found : status::success;
}

ISOTOPE_EMULATOR_EXPORT void isotope_emulator_devices(const device_description* all, std::size_t count) {
  driver_state& s = state();
  const std::lock_guard lock(s.mutex);
  s.devices.assign(all, all + count);
  s.names.clear();
  for (const auto& d : s.devices) s.names.emplace_back(d.name);
}
ISOTOPE_EMULATOR_EXPORT void isotope_emulator_version(int v) { state().version = v; }
ISOTOPE_EMULATOR_EXPORT void isotope_emulator_fault(const char* entry, int what, std::int64_t after, std::int64_t times) {
  driver_state& s = state();
  const std::lock_guard lock(s.mutex);
  s.fault_entry = entry == nullptr ? "" : entry;
  s.fault_status = status(what);
  s.fault_after = after;
  s.fault_times = times;
}
ISOTOPE_EMULATOR_EXPORT void isotope_emulator_eager(bool on) { state().eager = on; }
ISOTOPE_EMULATOR_EXPORT void isotope_emulator_hung(bool on) { state().hung = on; }
ISOTOPE_EMULATOR_EXPORT function_handle isotope_emulator_host_kernel(const char* name, host_kernel run, std::size_t argument_bytes) {
  driver_state& s = state();
  const std::lock_guard lock(s.mutex);
  auto& k = s.host_kernels[name];
  if (k == nullptr) k = std::make_unique<handle::kernel_object>();
  k->host = run;
  k->name = name;
  k->argument_bytes = argument_bytes;
  return reinterpret_cast<function_handle>(k.get());
}
ISOTOPE_EMULATOR_EXPORT void isotope_emulator_order(int o, std::int64_t late) {
  state().order = node_order(o);
  state().late = late;
}
ISOTOPE_EMULATOR_EXPORT std::int64_t isotope_emulator_calls(const char* entry) {
  driver_state& s = state();
  const std::lock_guard lock(s.mutex);
  const auto at = s.calls.find(entry);
  return at == s.calls.end() ? 0 : at->second;
}
ISOTOPE_EMULATOR_EXPORT const char* isotope_emulator_listing() {
  driver_state& s = state();
  const std::lock_guard lock(s.mutex);
  s.listed = std::move(s.listing);
  s.listing.clear();
  s.lists = true;
  return s.listed.c_str();
}
ISOTOPE_EMULATOR_EXPORT live_objects isotope_emulator_live() {
  driver_state& s = state();
  const std::lock_guard lock(s.mutex);
  live_objects n{};
  for (const auto& [device, c] : s.primary) n.contexts += c->retained;
  n.allocations = std::int64_t(s.memory.size());
  n.host_allocations = std::int64_t(s.host_memory.size());
  n.streams = std::int64_t(s.streams.size());
  n.events = std::int64_t(s.events.size());
  n.libraries = std::int64_t(s.libraries.size());
  n.graphs = std::int64_t(s.graphs.size());
  n.executables = std::int64_t(s.executables.size());
  return n;
}
}

}  // namespace isotope_emulated
