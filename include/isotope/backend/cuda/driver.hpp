#pragma once
/// The CUDA driver's library, opened at run time: the types and entry points that the backend uses, in our own declarations. Names and numbers are those of
/// the CUDA driver API; tests/cuda compares them with NVIDIA's header where that is installed.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "../../core/error.hpp"
#include "../queue/thread_owner.hpp"

namespace isotope::cuda {

/// Handles of the driver, which only the driver can look into.
namespace handle {
struct context_object;
struct stream_object;
struct event_object;
struct library_object;
struct kernel_object;
struct function_object;
struct graph_object;
struct node_object;
struct executable_object;
}  // namespace handle
using context_handle = handle::context_object*;
using stream_handle = handle::stream_object*;
using event_handle = handle::event_object*;
using library_handle = handle::library_object*;
using kernel_handle = handle::kernel_object*;
using function_handle = handle::function_object*;
using graph_handle = handle::graph_object*;
using node_handle = handle::node_object*;
using executable_handle = handle::executable_object*;
using device_handle = int;
using device_address = std::uint64_t;

/// The results of the driver that the backend tells apart.
enum class status : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  device_unavailable = 46,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  no_binary_for_device = 209,
  invalid_ptx = 218,
  unsupported_ptx_version = 222,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  peer_access_already_enabled = 704,
  context_destroyed = 709,
  assertion = 710,
  illegal_instruction = 715,
  misaligned_address = 716,
  launch_failed = 719,
  not_permitted = 800,
  system_not_ready = 802,
  driver_mismatch = 803,
  unknown = 999,
};

/// Attributes of devices and kernels by the driver's numbers.
enum class device_attribute : int {
  threads_of_block = 1,
  multiprocessors = 16,
  integrated = 18,
  l2_bytes = 38,
  compute_major = 75,
  compute_minor = 76,
  shared_of_multiprocessor = 81,
  shared_of_block_opt_in = 97,
};
enum class kernel_attribute : int { dynamic_shared_bytes = 8, non_portable_cluster = 14 };

/// What a kernel node runs (CUDA_KERNEL_NODE_PARAMS_v2).
struct kernel_node {
  function_handle function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  kernel_handle kernel = nullptr;
  context_handle context = nullptr;
};
enum class memory_kind : unsigned { host = 1, device = 2 };
/// What a copy node copies (CUDA_MEMCPY3D_v2): one row.
struct copy_node {
  std::size_t from_x = 0, from_y = 0, from_z = 0, from_level = 0;
  memory_kind from_kind = memory_kind::device;
  const void* from_host = nullptr;
  device_address from_device = 0;
  void* from_array = nullptr;
  void* reserved_from = nullptr;
  std::size_t from_pitch = 0, from_height = 0;
  std::size_t to_x = 0, to_y = 0, to_z = 0, to_level = 0;
  memory_kind to_kind = memory_kind::device;
  void* to_host = nullptr;
  device_address to_device = 0;
  void* to_array = nullptr;
  void* reserved_to = nullptr;
  std::size_t to_pitch = 0, to_height = 0;
  std::size_t width = 0, height = 1, depth = 1;
};
/// An attribute of a launch (CUlaunchAttribute): the size of a cluster, or that all blocks run at the same time.
struct launch_attribute {
  static constexpr int cooperative = 2, cluster_size = 4;
  int id = cluster_size;
  int padding = 0;
  std::array<unsigned, 16> value{};
};
/// How a node waits for another one (CUgraphEdgeData): `programmatic` lets a kernel start when all blocks of the other kernel have said that it may.
struct edge_data {
  std::uint8_t from_port = 0, to_port = 0, type = 0;
  std::array<std::uint8_t, 5> reserved{};
  static constexpr edge_data programmatic() { return {1, 0, 1, {}}; }
};
/// A launch outside of a graph (CUlaunchConfig).
struct launch_config {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  stream_handle stream = nullptr;
  launch_attribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
struct device_uuid {
  std::array<unsigned char, 16> bytes{};
};

/// The entry points, by the names under which cuGetProcAddress finds them.
struct driver_table {
  template <class... A> using call = status (*)(A...);
  call<unsigned> init = nullptr;
  call<int*> driver_version = nullptr;
  call<status, const char**> error_name = nullptr;
  call<int*> device_count = nullptr;
  call<device_handle*, int> device_get = nullptr;
  call<char*, int, device_handle> device_name = nullptr;
  call<device_uuid*, device_handle> device_uuid_of = nullptr;
  call<std::size_t*, device_handle> device_total_memory = nullptr;
  call<int*, device_attribute, device_handle> device_attribute_of = nullptr;
  call<context_handle*, device_handle> retain_primary_context = nullptr;
  call<device_handle> release_primary_context = nullptr;
  call<context_handle> push_context = nullptr;
  call<context_handle*> pop_context = nullptr;
  call<device_handle*> context_device = nullptr;
  call<int*, device_handle, device_handle> can_access_peer = nullptr;
  call<context_handle, unsigned> enable_peer_access = nullptr;
  call<std::size_t*, std::size_t*> memory_info = nullptr;
  call<device_address*, std::size_t> allocate = nullptr;
  call<device_address> free = nullptr;
  call<void**, std::size_t, unsigned> allocate_host = nullptr;
  call<void*> free_host = nullptr;
  call<device_address, const void*, std::size_t, stream_handle> copy_to_device = nullptr;
  call<void*, device_address, std::size_t, stream_handle> copy_to_host = nullptr;
  call<device_address, device_address, std::size_t, stream_handle> copy_on_device = nullptr;
  call<device_address, unsigned, std::size_t, stream_handle> fill_words = nullptr;
  call<stream_handle*, unsigned> create_stream = nullptr;
  call<stream_handle> destroy_stream = nullptr;
  call<stream_handle> synchronize_stream = nullptr;
  call<event_handle*, unsigned> create_event = nullptr;
  call<event_handle> destroy_event = nullptr;
  call<event_handle, stream_handle> record_event = nullptr;
  call<event_handle> query_event = nullptr;
  call<float*, event_handle, event_handle> elapsed_milliseconds = nullptr;
  call<library_handle*, const void*, void*, void**, unsigned, void*, void**, unsigned> load_library = nullptr;
  call<library_handle> unload_library = nullptr;
  call<kernel_handle*, library_handle, const char*> library_kernel = nullptr;
  call<kernel_attribute, int, kernel_handle, device_handle> set_kernel_attribute = nullptr;
  call<function_handle*, kernel_handle> kernel_function = nullptr;
  call<const launch_config*, function_handle, void**, void**> launch_kernel = nullptr;
  call<int*, function_handle, const launch_config*> clusters_that_fit = nullptr;
  call<graph_handle*, unsigned> create_graph = nullptr;
  call<graph_handle> destroy_graph = nullptr;
  call<node_handle*, graph_handle, const node_handle*, std::size_t, const kernel_node*> add_kernel_node = nullptr;
  call<graph_handle, const node_handle*, const node_handle*, const edge_data*, std::size_t> add_edges = nullptr;  // from 12.3 on
  call<node_handle, int, const void*> set_node_attribute = nullptr;
  call<node_handle*, graph_handle, const node_handle*, std::size_t, const copy_node*, context_handle> add_copy_node = nullptr;
  call<stream_handle, int> begin_capture = nullptr;
  call<stream_handle, graph_handle*> end_capture = nullptr;
  call<node_handle*, graph_handle, const node_handle*, std::size_t, graph_handle> add_graph_node = nullptr;
  call<graph_handle, node_handle*, std::size_t*> graph_nodes = nullptr;
  call<graph_handle, node_handle*, node_handle*, std::size_t*> graph_edges = nullptr;
  call<node_handle, int*> node_type = nullptr;
  call<node_handle, kernel_node*> kernel_node_of = nullptr;
  call<node_handle, node_handle> copy_node_attributes = nullptr;
  call<executable_handle*, graph_handle, unsigned long long> instantiate = nullptr;
  call<executable_handle> destroy_executable = nullptr;
  call<executable_handle, stream_handle> upload_graph = nullptr;
  call<executable_handle, stream_handle> launch_graph = nullptr;
  call<void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int,
       int, int>
      encode_tensor_map = nullptr;

  /// Whether work on a stream can be captured, as products of cuBLASLt are.
  bool captures() const {
    return begin_capture != nullptr && end_capture != nullptr && add_graph_node != nullptr && graph_nodes != nullptr &&
           graph_edges != nullptr && node_type != nullptr && kernel_node_of != nullptr && copy_node_attributes != nullptr;
  }
  /// Calls each(entry point, name, whether it is needed on every device). The others are for cuBLASLt, for tensor maps and for
  /// memory of other devices.
  template <class Each> void for_each(const Each& each) {
    each(init, "cuInit", true);
    each(driver_version, "cuDriverGetVersion", true);
    each(error_name, "cuGetErrorName", true);
    each(device_count, "cuDeviceGetCount", true);
    each(device_get, "cuDeviceGet", true);
    each(device_name, "cuDeviceGetName", true);
    each(device_uuid_of, "cuDeviceGetUuid", true);
    each(device_total_memory, "cuDeviceTotalMem", true);
    each(device_attribute_of, "cuDeviceGetAttribute", true);
    each(retain_primary_context, "cuDevicePrimaryCtxRetain", true);
    each(release_primary_context, "cuDevicePrimaryCtxRelease", true);
    each(push_context, "cuCtxPushCurrent", true);
    each(pop_context, "cuCtxPopCurrent", true);
    each(context_device, "cuCtxGetDevice", true);
    each(can_access_peer, "cuDeviceCanAccessPeer", false);
    each(enable_peer_access, "cuCtxEnablePeerAccess", false);
    each(memory_info, "cuMemGetInfo", true);
    each(allocate, "cuMemAlloc", true);
    each(free, "cuMemFree", true);
    each(allocate_host, "cuMemHostAlloc", true);
    each(free_host, "cuMemFreeHost", true);
    each(copy_to_device, "cuMemcpyHtoDAsync", true);
    each(copy_to_host, "cuMemcpyDtoHAsync", true);
    each(copy_on_device, "cuMemcpyDtoDAsync", true);
    each(fill_words, "cuMemsetD32Async", true);
    each(create_stream, "cuStreamCreate", true);
    each(destroy_stream, "cuStreamDestroy", true);
    each(synchronize_stream, "cuStreamSynchronize", true);
    each(create_event, "cuEventCreate", true);
    each(destroy_event, "cuEventDestroy", true);
    each(record_event, "cuEventRecord", true);
    each(query_event, "cuEventQuery", true);
    each(elapsed_milliseconds, "cuEventElapsedTime", true);
    each(load_library, "cuLibraryLoadData", true);
    each(unload_library, "cuLibraryUnload", true);
    each(library_kernel, "cuLibraryGetKernel", true);
    each(set_kernel_attribute, "cuKernelSetAttribute", true);
    each(kernel_function, "cuKernelGetFunction", true);
    each(launch_kernel, "cuLaunchKernelEx", true);
    each(clusters_that_fit, "cuOccupancyMaxActiveClusters", false);
    each(create_graph, "cuGraphCreate", true);
    each(destroy_graph, "cuGraphDestroy", true);
    each(add_kernel_node, "cuGraphAddKernelNode", true);
    each(set_node_attribute, "cuGraphKernelNodeSetAttribute", true);
    each(add_copy_node, "cuGraphAddMemcpyNode", true);
    each(begin_capture, "cuStreamBeginCapture", false);
    each(end_capture, "cuStreamEndCapture", false);
    each(add_graph_node, "cuGraphAddChildGraphNode", false);
    each(graph_nodes, "cuGraphGetNodes", false);
    each(graph_edges, "cuGraphGetEdges", false);
    each(node_type, "cuGraphNodeGetType", false);
    each(kernel_node_of, "cuGraphKernelNodeGetParams", false);
    each(copy_node_attributes, "cuGraphKernelNodeCopyAttributes", false);
    each(instantiate, "cuGraphInstantiateWithFlags", true);
    each(destroy_executable, "cuGraphExecDestroy", true);
    each(upload_graph, "cuGraphUpload", true);
    each(launch_graph, "cuGraphLaunch", true);
    each(encode_tensor_map, "cuTensorMapEncodeTiled", false);
  }
};

/// The opened library. It is never closed, since the driver's own threads may still run its code.
class driver {
 public:
  /// The version of the driver API whose entry points are asked for: 1000 * major + 10 * minor. The first with every one of them is 12.0.
  static constexpr int api_version = 12000;

  /// @error no_device: no library, or it finds no device; missing_feature: the driver is older than api_version
  static result<std::shared_ptr<const driver>> open(const std::string& file) {
    const std::string name = file.empty() ? "libcuda.so.1" : file;
    std::shared_ptr<driver> d(new driver);
    d->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (d->library_ == nullptr)
      return fail(errc::no_device, "the NVIDIA driver is not installed: the loader finds no " + name, "cuda",
                  "install the driver of the GPU (Debian: apt-get install nvidia-driver), or build with -DBACKEND=vulkan or cpu");
    using get_function = status (*)(const char*, void**, int, std::uint64_t, int*);
    const auto get = reinterpret_cast<get_function>(dlsym(d->library_, "cuGetProcAddress_v2"));
    const auto version = reinterpret_cast<status (*)(int*)>(dlsym(d->library_, "cuDriverGetVersion"));
    if (version != nullptr) version(&d->version_);
    if (get == nullptr) return d->too_old();
    std::string absent;
    d->table_.for_each([&](auto& entry, const char* symbol, bool needed) {
      void* found = nullptr;
      int how = 0;
      get(symbol, &found, api_version, 0, &how);
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(found);
      if (found == nullptr && needed && absent.empty()) absent = symbol;
    });
    if (!absent.empty()) return d->too_old();
    constexpr int edges_version = 12030;
    if (d->version_ >= edges_version) {
      void* found = nullptr;
      int how = 0;
      get("cuGraphAddDependencies", &found, edges_version, 0, &how);
      d->table_.add_edges = reinterpret_cast<decltype(d->table_.add_edges)>(found);
    }
    if (const status s = d->table_.init(0); s != status::success) {
      const char* text = nullptr;
      d->table_.error_name(s, &text);
      const std::string why = text == nullptr ? std::to_string(int(s)) : text;
      return fail(errc::no_device,
                  s == status::no_device ? "the NVIDIA driver finds no device" : "the NVIDIA driver does not start: " + why, "cuda",
                  "check with nvidia-smi, or build with -DBACKEND=vulkan or cpu");
    }
    return std::shared_ptr<const driver>(std::move(d));
  }
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;

  /// Every call of the driver goes through this table.
  const driver_table* operator->() const { return owner_.check(), &table_; }
  const thread_owner& owner() const { return owner_; }
  /// Of the driver API that the installed driver offers: 1000 * major + 10 * minor.
  int version() const { return version_; }
  /// For example "13.0".
  static std::string version_text(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }

 private:
  void* library_ = nullptr;
  driver_table table_;
  thread_owner owner_;
  int version_ = 0;

  driver() = default;
  failure too_old() const {
    return fail(errc::missing_feature,
                "the NVIDIA driver offers CUDA " + version_text(version_) + ", and " + version_text(api_version) + " is needed", "cuda",
                "update the driver, or build with -DBACKEND=vulkan or cpu");
  }
};

}  // namespace isotope::cuda
