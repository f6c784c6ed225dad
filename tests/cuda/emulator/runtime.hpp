#pragma once
// The part of the emulated device that kernels and hosts share: where the running thread is, how threads of a block wait for each other, and launches.
#include <cstddef>
#include <cstdint>

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

/// Runs a kernel to its end. Aborts with a message that names the kernel, the block and the thread if threads wait for each other in vain.
extern "C" ISOTOPE_EMULATOR_EXPORT void isotope_emulated_launch(const kernel* which, index3 grid, index3 block, std::size_t shared_bytes,
                                                                const void* arguments);
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

}  // namespace isotope_emulated
