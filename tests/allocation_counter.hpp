#pragma once
/// Counts the calls of operator new in `allocations`, the bytes held at present in `held_bytes`, and the most bytes held at once in `most_held_bytes`.
/// It replaces the global operators, so include it in one file of a program only.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// Sanitizers define their own operator new.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
#endif

inline std::atomic<std::int64_t> allocations{0}, held_bytes{0}, most_held_bytes{0};
#if COUNTS_ALLOCATIONS
inline void* counted(void* p) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (p == nullptr) throw std::bad_alloc();
  const auto bytes = std::int64_t(::malloc_usable_size(p)), held = held_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  for (auto most = most_held_bytes.load(std::memory_order_relaxed); most < held && !most_held_bytes.compare_exchange_weak(most, held);) {}
  return p;
}
inline void given_back(void* p) {
  if (p != nullptr) held_bytes.fetch_sub(std::int64_t(::malloc_usable_size(p)), std::memory_order_relaxed);
  std::free(p);
}
// Not inlined, since g++ would warn that free() does not match the standard operator new.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(std::malloc(bytes != 0 ? bytes : 1)); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto a = std::size_t(alignment);
  return counted(std::aligned_alloc(a, (bytes + a - 1) / a * a));
}
[[gnu::noinline]] void operator delete(void* p) noexcept { given_back(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { given_back(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { given_back(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { given_back(p); }
#endif
