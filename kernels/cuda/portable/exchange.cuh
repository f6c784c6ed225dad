#pragma once
// How the GPUs of a group meet in one exchange, and loads and stores of memory that another GPU owns.
#include "exchange.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

#if defined(ISOTOPE_EMULATED_DEVICE)
__device__ inline void release(std::uint64_t* at, std::uint64_t x) { *at = x; }
__device__ inline std::uint64_t acquire(const std::uint64_t* at) { return *static_cast<const volatile std::uint64_t*>(at); }
__device__ inline void fence_system() {}
__device__ inline uint4 load_shared_memory(std::uint64_t at) { return *pointer<const uint4>(at); }
__device__ inline void store_shared_memory(std::uint64_t at, const uint4& x) { *pointer<uint4>(at) = x; }
#else
/// Stores x so that every GPU that acquires it sees all that was written before.
__device__ inline void release(std::uint64_t* at, std::uint64_t x) {
  asm volatile("st.release.sys.global.u64 [%0], %1;\n" ::"l"(at), "l"(x) : "memory");
}
__device__ inline std::uint64_t acquire(const std::uint64_t* at) {
  std::uint64_t x;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];\n" : "=l"(x) : "l"(at) : "memory");
  return x;
}
__device__ inline void fence_system() { __threadfence_system(); }
/// 16 bytes that another GPU may own; they are read once, so they take no place in the L1 cache.
__device__ inline uint4 load_shared_memory(std::uint64_t at) {
  uint4 x;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];\n" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(at));
  return x;
}
__device__ inline void store_shared_memory(std::uint64_t at, const uint4& x) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};\n" ::"l"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}
#endif

__device__ inline bool stopped(const exchange_control* control) { return *static_cast<const volatile std::uint32_t*>(&control->stop) != 0; }
/// Waits until a word that another rank writes has reached x. False: the exchange was stopped.
__device__ inline bool reaches(const std::uint64_t* word, std::uint64_t x, const exchange_control* control) {
  constexpr unsigned looks = 64;  // between two looks over the bus at the host's word
  for (unsigned turn = 0;; ++turn) {
    if (acquire(word) >= x) return true;
    if (turn % looks == looks - 1 && stopped(control)) return false;
  }
}

/// What the threads of a block know of the running exchange.
struct exchange_meeting {
  std::uint64_t number;
  std::uint64_t from[most_exchange_ranks], to[most_exchange_ranks];  // by rank
};

/// Begins an exchange: tells the other ranks that this one's numbers are ready, and waits until theirs are. All threads of all blocks call it. False: no rank's
/// memory may be used, and the exchange ends by `leave`.
///
/// The first block tells, since the device starts it before others; each block waits for the other ranks alone, so blocks need not all run at the same time.
__device__ inline bool meet(const exchange_operands& a, exchange_meeting& m) {
  auto* const own = pointer<exchange_box>(a.boxes[a.rank]);
  auto* const control = pointer<exchange_control>(a.control);
  const int p = int(threadIdx.x);
  bool together = true;
  if (p < a.ranks) {
    const std::uint64_t number = own->count + 1;
    if (p == a.rank) {
      m.number = number;
      m.from[p] = a.from;
      m.to[p] = a.to;
    } else {
      if (blockIdx.x == 0) {
        exchange_message& there = pointer<exchange_box>(a.boxes[p])->of[a.rank];
        there.from = a.from;
        there.to = a.to;
        there.what = a.what;
        release(&there.ready, number);
      }
      const exchange_message& here = own->of[p];
      together = reaches(&here.ready, number, control);
      if (together) {
        m.from[p] = *static_cast<const volatile std::uint64_t*>(&here.from);
        m.to[p] = *static_cast<const volatile std::uint64_t*>(&here.to);
        if (*static_cast<const volatile std::uint64_t*>(&here.what) != a.what) {
          *static_cast<volatile std::uint32_t*>(&control->differs) = std::uint32_t(p) + 1;
          while (!stopped(control)) {}  // what follows must not run with these numbers
          together = false;
        }
      }
    }
  }
  return __syncthreads_and(together ? 1 : 0) != 0;
}

/// Ends an exchange: returns from the last block only when every rank has called it, so that no rank reads or writes another one's memory any more. All threads of all
/// blocks call it.
__device__ inline void leave(const exchange_operands& a, const exchange_meeting& m) {
  __shared__ int is_last;
  auto* const own = pointer<exchange_box>(a.boxes[a.rank]);
  __syncthreads();
  if (threadIdx.x == 0) {
    fence_system();
    is_last = atomicAdd(&own->blocks, 1u) == gridDim.x - 1 ? 1 : 0;
    fence_system();
  }
  __syncthreads();
  if (is_last == 0) return;
  const int p = int(threadIdx.x);
  if (p < a.ranks && p != a.rank) {
    release(&pointer<exchange_box>(a.boxes[p])->of[a.rank].done, m.number);
    reaches(&own->of[p].done, m.number, pointer<exchange_control>(a.control));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    own->blocks = 0;
    own->count = m.number;
  }
}

}  // namespace isotope::cuda::gpu
