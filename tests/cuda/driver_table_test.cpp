/// Our declarations of the CUDA driver API against NVIDIA's header, where that is installed.
#include <gtest/gtest.h>

#include <isotope/backend/cuda/driver.hpp>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>

namespace isotope::cuda {
namespace driver_table_test {

#define SAME_OFFSET(ours, field, theirs, their_field) static_assert(offsetof(ours, field) == offsetof(theirs, their_field))
static_assert(sizeof(kernel_node) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
SAME_OFFSET(kernel_node, function, CUDA_KERNEL_NODE_PARAMS_v2, func);
SAME_OFFSET(kernel_node, grid_x, CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
SAME_OFFSET(kernel_node, grid_z, CUDA_KERNEL_NODE_PARAMS_v2, gridDimZ);
SAME_OFFSET(kernel_node, block_x, CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
SAME_OFFSET(kernel_node, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME_OFFSET(kernel_node, parameters, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME_OFFSET(kernel_node, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra);
SAME_OFFSET(kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_OFFSET(kernel_node, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);

static_assert(sizeof(copy_node) == sizeof(CUDA_MEMCPY3D));
SAME_OFFSET(copy_node, from_kind, CUDA_MEMCPY3D, srcMemoryType);
SAME_OFFSET(copy_node, from_host, CUDA_MEMCPY3D, srcHost);
SAME_OFFSET(copy_node, from_device, CUDA_MEMCPY3D, srcDevice);
SAME_OFFSET(copy_node, from_pitch, CUDA_MEMCPY3D, srcPitch);
SAME_OFFSET(copy_node, to_kind, CUDA_MEMCPY3D, dstMemoryType);
SAME_OFFSET(copy_node, to_host, CUDA_MEMCPY3D, dstHost);
SAME_OFFSET(copy_node, to_device, CUDA_MEMCPY3D, dstDevice);
SAME_OFFSET(copy_node, width, CUDA_MEMCPY3D, WidthInBytes);
SAME_OFFSET(copy_node, height, CUDA_MEMCPY3D, Height);
SAME_OFFSET(copy_node, depth, CUDA_MEMCPY3D, Depth);

static_assert(sizeof(launch_attribute) == sizeof(CUlaunchAttribute));
SAME_OFFSET(launch_attribute, value, CUlaunchAttribute, value);
static_assert(sizeof(launch_config) == sizeof(CUlaunchConfig));
SAME_OFFSET(launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_OFFSET(launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_OFFSET(launch_config, stream, CUlaunchConfig, hStream);
SAME_OFFSET(launch_config, attributes, CUlaunchConfig, attrs);
SAME_OFFSET(launch_config, attribute_count, CUlaunchConfig, numAttrs);
static_assert(sizeof(device_uuid) == sizeof(CUuuid) && sizeof(device_address) == sizeof(CUdeviceptr));
#undef SAME_OFFSET

template <class Ours, class Theirs> void same(Ours a, Theirs b) { EXPECT_EQ(long(a), long(b)); }

TEST(cuda_driver_table, numbers_are_those_of_the_header) {
  same(status::success, CUDA_SUCCESS);
  same(status::invalid_value, CUDA_ERROR_INVALID_VALUE);
  same(status::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  same(status::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
  same(status::deinitialized, CUDA_ERROR_DEINITIALIZED);
  same(status::stub_library, CUDA_ERROR_STUB_LIBRARY);
  same(status::device_unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
  same(status::no_device, CUDA_ERROR_NO_DEVICE);
  same(status::invalid_device, CUDA_ERROR_INVALID_DEVICE);
  same(status::invalid_image, CUDA_ERROR_INVALID_IMAGE);
  same(status::no_binary_for_device, CUDA_ERROR_NO_BINARY_FOR_GPU);
  same(status::invalid_ptx, CUDA_ERROR_INVALID_PTX);
  same(status::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  same(status::not_found, CUDA_ERROR_NOT_FOUND);
  same(status::not_ready, CUDA_ERROR_NOT_READY);
  same(status::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
  same(status::launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  same(status::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  same(status::peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  same(status::context_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  same(status::assertion, CUDA_ERROR_ASSERT);
  same(status::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
  same(status::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
  same(status::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
  same(status::not_permitted, CUDA_ERROR_NOT_PERMITTED);
  same(status::system_not_ready, CUDA_ERROR_SYSTEM_NOT_READY);
  same(status::driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  same(status::unknown, CUDA_ERROR_UNKNOWN);
  same(device_attribute::threads_of_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  same(device_attribute::multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  same(device_attribute::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
  same(device_attribute::l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  same(device_attribute::compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  same(device_attribute::compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  same(device_attribute::shared_of_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  same(device_attribute::shared_of_block_opt_in, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  same(kernel_attribute::dynamic_shared_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  same(kernel_attribute::non_portable_cluster, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  same(memory_kind::host, CU_MEMORYTYPE_HOST);
  same(memory_kind::device, CU_MEMORYTYPE_DEVICE);
  same(launch_attribute{}.id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
}

}  // namespace driver_table_test
}  // namespace isotope::cuda
#else
TEST(cuda_driver_table, numbers_are_those_of_the_header) { GTEST_SKIP() << "cuda.h is not installed"; }
#endif
