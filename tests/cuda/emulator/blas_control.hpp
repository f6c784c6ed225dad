#pragma once
/// Controls of the emulated cuBLASLt for tests: its version, the algorithms that it offers, which calls fail, and counts.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace isotope_emulated {

/// An algorithm that the library offers. Algorithm n sums a product in n interleaved parts, so results tell algorithms apart.
struct blas_algorithm {
  int number = 1;
  std::uint64_t milliseconds = 1;  // by the emulated clock
  int heuristic_status = 0;        // in the list of the heuristic; 0: it can be used
  int status = 0;                  // of starting it
  std::uint32_t alignment = 16;    // bytes, of every matrix
};

class emulated_blas {
 public:
  /// Null functions if the file is not an emulated library.
  explicit emulated_blas(const std::string& file) : library_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    find(algorithms_, "isotope_emulated_blas_algorithms");
    find(version_, "isotope_emulated_blas_version");
    find(fault_, "isotope_emulated_blas_fault");
    find(calls_, "isotope_emulated_blas_calls");
    find(started_, "isotope_emulated_blas_started");
  }
  bool there() const { return started_ != nullptr; }

  /// In the order in which the heuristic lists them.
  void set_algorithms(const std::vector<blas_algorithm>& all) const { algorithms_(all.data(), all.size()); }
  /// 10000 * major + 100 * minor + patch.
  void set_version(std::size_t v) const { version_(v); }
  /// Every further call of `entry` (such as "cublasLtCreate") returns `status`. Null: none.
  void set_fault(const char* entry, int status) const { fault_(entry, status); }
  /// Three algorithms, of which the second is the fastest; version 13.0.0; no fault; `started` counts from here on.
  void reset() {
    set_algorithms({{1, 5}, {2, 2}, {3, 4}});
    set_version(130000);
    set_fault(nullptr, 0);
    for (std::size_t n = 0; n < before_.size(); ++n) before_[n] = started_(int(n));
  }
  /// How often an entry point was called.
  std::int64_t calls(const char* entry) const { return calls_(entry); }
  /// How often an algorithm was started, of numbers below 8.
  std::int64_t started(int number) const { return started_(number) - before_[std::size_t(number)]; }

 private:
  void* library_ = nullptr;
  void (*algorithms_)(const blas_algorithm*, std::size_t) = nullptr;
  void (*version_)(std::size_t) = nullptr;
  void (*fault_)(const char*, int) = nullptr;
  std::int64_t (*calls_)(const char*) = nullptr;
  std::int64_t (*started_)(int) = nullptr;
  std::array<std::int64_t, 8> before_{};

  template <class F> void find(F& f, const char* name) { f = reinterpret_cast<F>(dlsym(library_, name)); }
};

}  // namespace isotope_emulated
