// What the emulated driver has for devices of compute capability 9.0: how a program gets one, how many clusters fit, and the descriptors of tensors.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "driver_state.hpp"

namespace isotope_emulated {

using namespace isotope::cuda;

int first_compute() {
  constexpr std::string_view name = "ISOTOPE_EMULATED_COMPUTE=";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::string_view(*entry).substr(0, name.size()) == name) return std::atoi(*entry + name.size());
  return ISOTOPE_EMULATED_COMPUTE;
}

namespace {

/// As the device's description says, whatever the number of multiprocessors.
status clusters_that_fit(int* count, function_handle function, const launch_config* how) {
  return enter("cuOccupancyMaxActiveClusters", [&](driver_state& s) {
    if (count == nullptr || function == nullptr || how == nullptr) return status::invalid_value;
    const device_description& d = s.devices[std::size_t(current()->device)];
    *count = d.compute == 90 ? d.clusters : 0;
    return status::success;
  });
}
status encode_tensor_map(void* to, int type, std::uint32_t rank, void* address, const std::uint64_t* dims, const std::uint64_t* strides,
                         const std::uint32_t* box, const std::uint32_t* element_strides, int interleave, int swizzle, int, int fill) {
  return enter("cuTensorMapEncodeTiled", [&](driver_state&) {
    constexpr int f16 = 6, f32 = 7, bf16 = 9;
    const auto at = reinterpret_cast<std::uint64_t>(address);
    if (reinterpret_cast<std::uintptr_t>(to) % 64 != 0 || at % 16 != 0 || rank < 1 || rank > 5 || interleave != 0 || fill != 0 ||
        swizzle < 0 || swizzle > 3 || (type != f16 && type != f32 && type != bf16))
      return status::invalid_value;
    tensor_description t{.magic = tensor_description::valid,
                         .address = at,
                         .element_bytes = type == f32 ? 4u : 2u,
                         .rank = rank,
                         .swizzle_bytes = swizzle == 0 ? 0u : 16u << swizzle,
                         .box = {},
                         .dims = {},
                         .strides = {}};
    t.strides[0] = t.element_bytes;
    for (std::uint32_t k = 0; k < rank; ++k) {
      if (dims[k] == 0 || box[k] == 0 || box[k] > 256 || element_strides[k] != 1) return status::invalid_value;
      t.box[k] = box[k], t.dims[k] = dims[k];
      if (k == 0) continue;
      t.strides[k] = strides[k - 1];
      if (t.strides[k] % 16 != 0 || t.strides[k] == 0) return status::invalid_value;
    }
    const std::uint32_t line = box[0] * t.element_bytes;
    if (line % 16 != 0 || (t.swizzle_bytes != 0 && line > t.swizzle_bytes)) return status::invalid_value;
    std::memcpy(to, &t, sizeof t);
    return status::success;
  });
}

}  // namespace

std::vector<entry_point> hopper_entries() {
  return {entry("cuOccupancyMaxActiveClusters", 11070, clusters_that_fit), entry("cuTensorMapEncodeTiled", 12000, encode_tensor_map)};
}

}  // namespace isotope_emulated
