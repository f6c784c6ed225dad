#pragma once
// The part of the emulated device that kernels and hosts share: where the running thread is, how threads of a block wait for each other, and launches.
#include <cstddef>
#include <cstdint>
#include <vector>

#define ISOTOPE_EMULATOR_EXPORT __attribute__((visibility("default")))

namespace isotope_emulated {

struct index3 {
  unsigned x = 1, y = 1, z = 1;
};
inline bool operator==(const index3& a, const index3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

/// Where the thread that runs is. Kernels read it as threadIdx, blockIdx, blockDim and gridDim.
struct position {
  index3 thread, block, block_size, grid_size;
  unsigned lane;          // of its warp of 32
  unsigned char* shared;  // dynamic shared memory, aligned to 1,024 bytes
  std::size_t shared_bytes;
  unsigned cluster_size;  // blocks of a cluster, along x
};

/// A kernel as the generated wrappers export it, under the name isotope_emulated_NAME.
struct kernel {
  const char* name;
  std::size_t argument_bytes;
  void (*run)(const void* arguments);  // one thread
  int most_threads;                    // of __launch_bounds__; 0: no bound
  void* statics;                       // memory of the module that holds its __shared__ variables; null: unknown
  std::size_t static_bytes;
};

/// Runs a kernel to its end: one block after the other, the blocks of a cluster beside each other, or all of them. Aborts with a message that names the kernel, the block
/// and the thread if threads wait for each other in vain.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_launch(const kernel* which, index3 grid, index3 block, std::size_t shared_bytes,
                                                                const void* arguments, unsigned cluster = 1, bool together = false);
/// Finds a kernel of this program, which was linked with -rdynamic, and runs it. Aborts if there is none or its argument has another size.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_launch_name(const char* name, index3 grid, index3 block, std::size_t shared_bytes,
                                                                     const void* arguments, std::size_t argument_bytes);
template <class Arguments> void launch(const char* name, index3 grid, index3 block, std::size_t shared_bytes, const Arguments& arguments) {
  isotope_emulated_launch_name(name, grid, block, shared_bytes, &arguments, sizeof arguments);
}

/// What follows is for kernels.
extern "C" ISOTOPE_EMULATOR_EXPORT position isotope_emulated_position;
/// Prints the message with the kernel, the block and the thread that run, and aborts.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_fail(const char* message) __attribute__((noreturn));
/// __syncthreads; returns for how many threads of the block `predicate` is true.
extern "C" ISOTOPE_EMULATOR_EXPORT int isotope_emulated_barrier(bool predicate, int line);

/// Gives each lane its result, after all of them have come. `operands[lane]` is what the lane has passed, null if it takes no part.
using combine = void (*)(void* const* operands);
/// Waits for the other lanes of `mask` at the same line of code; lanes that have returned from the kernel are not waited for.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_meet(combine how, std::uint32_t mask, void* operand, const char* name, int line);

/// An asynchronous copy to shared memory, which happens when the thread waits for it; until then the destination holds bytes 0xff. Null source: zeros.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_copy(void* shared, const void* global, std::size_t bytes);
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_commit();
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_wait(int unfinished);

/// What devices of compute capability 9.0 have beside that. An address of shared memory has 32 bits; those of all blocks that run beside each other are different.
extern "C" ISOTOPE_EMULATOR_EXPORT std::uint32_t isotope_emulated_shared_address(const void* shared);
extern "C" ISOTOPE_EMULATOR_EXPORT void* isotope_emulated_shared_at(std::uint32_t address, std::size_t bytes);
/// The same place in block `rank` of the cluster.
extern "C" ISOTOPE_EMULATOR_EXPORT std::uint32_t isotope_emulated_address_in(std::uint32_t own, unsigned rank);

/// Barriers in shared memory, which count arrivals and bytes: a phase ends when all have come.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_memory_barrier_init(std::uint32_t barrier, std::uint32_t arrivals);
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_memory_barrier_arrive(std::uint32_t barrier, std::uint32_t expected_bytes);
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_memory_barrier_wait(std::uint32_t barrier, std::uint32_t parity, int line);

/// Bytes that come to shared memory as late as they may: when no thread can go on without them. Until copies from global memory come, there are bytes 0xff.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_bulk_copy(std::uint32_t to, const void* global, std::uint32_t bytes,
                                                                   std::uint32_t barrier);
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_send(std::uint32_t to, const void* value, std::uint32_t bytes,
                                                              std::uint32_t barrier);
/// A tensor in global memory, as the emulated driver describes it in 128 bytes.
struct tensor_description {
  std::uint64_t magic, address;
  std::uint32_t element_bytes, rank, swizzle_bytes;
  std::uint32_t box[5];
  std::uint64_t dims[5], strides[5];  // bytes; strides[0] is that of an element
  static constexpr std::uint64_t valid = 0x5d3a7e19c0b42f68u;
};
static_assert(sizeof(tensor_description) == 128);
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_tensor_copy(std::uint32_t to, const void* description, const std::int32_t* first,
                                                                     int rank, std::uint32_t barrier);

/// `threads` threads come to one of the block's barriers 1 to 15; those that do not wait only count.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_named_barrier(int number, int threads, bool waits, int line);
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_cluster_arrive();
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_cluster_wait(int line);
/// Lets other threads run before a word is read that other blocks store, and says that one was stored.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_poll();
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_stored();

/// A product of a warpgroup that was started: this thread's sums, and the operands of its warp.
struct started_product {
  float* d;
  std::uint64_t a, b;     // descriptors
  std::uint32_t of_a[4];  // where the first operand is in registers
  int columns;
  bool registers, cross_a, cross_b, add;
};
using product_groups = std::vector<std::vector<started_product>>;  // the last one is open
/// Those of the running thread.
extern "C" ISOTOPE_EMULATOR_EXPORT product_groups* isotope_emulated_products();

}  // namespace isotope_emulated
