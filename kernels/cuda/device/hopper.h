#pragma once
// The descriptor of a tensor in global memory that the tensor memory accelerator reads; included by host and device code.
namespace isotope::cuda::gpu {

/// A CUtensorMap. It is part of a kernel's arguments; the driver encodes it when the node is added to a graph (tensor_map in launch.hpp).
struct alignas(64) tensor_map_bytes {
  unsigned char bytes[128];
};

}  // namespace isotope::cuda::gpu
