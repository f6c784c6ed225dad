#pragma once
/// cuBLASLt, opened at run time: the few entry points that the backend calls, in our own declarations. Names and numbers are those of NVIDIA's cublasLt.h; a
/// test compares them where that header is installed.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "driver.hpp"

namespace isotope::cuda {

namespace blas {

using handle = struct handle_object*;
using description = struct description_object*;
using layout = struct layout_object*;
using preference = struct preference_object*;

struct algorithm {
  std::array<std::uint64_t, 8> words{};
};
struct candidate {
  blas::algorithm algorithm;
  std::size_t workspace_bytes = 0;
  int status = 0;
  float waves = 0;
  std::array<int, 4> reserved{};
};
enum class compute : int { f32 = 68 };  // never a mode that rounds operands of f32
enum class description_attribute : int { transpose_a = 3, transpose_b = 4 };
enum class layout_attribute : int { batches = 5, batch_stride = 6 };
enum class preference_attribute : int {
  workspace_bytes = 1,
  reduction_schemes = 3,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};

struct table {
  template <class... A> using call = int (*)(A...);  // 0: success
  std::size_t (*version)() = nullptr;
  call<handle*> create = nullptr;
  call<handle> destroy = nullptr;
  call<description*, compute, int> create_description = nullptr;
  call<description> destroy_description = nullptr;
  call<description, description_attribute, const void*, std::size_t> set_description = nullptr;
  call<layout*, int, std::uint64_t, std::uint64_t, std::int64_t> create_layout = nullptr;
  call<layout> destroy_layout = nullptr;
  call<layout, layout_attribute, const void*, std::size_t> set_layout = nullptr;
  call<preference*> create_preference = nullptr;
  call<preference> destroy_preference = nullptr;
  call<preference, preference_attribute, const void*, std::size_t> set_preference = nullptr;
  call<handle, description, layout, layout, layout, layout, preference, int, candidate*, int*> heuristic = nullptr;
  call<handle, description, const void*, const void*, layout, const void*, layout, const void*, const void*, layout, void*, layout,
       const algorithm*, void*, std::size_t, stream_handle>
      matmul = nullptr;

  template <class Each> void for_each(const Each& each) {
    each(version, "cublasLtGetVersion");
    each(create, "cublasLtCreate");
    each(destroy, "cublasLtDestroy");
    each(create_description, "cublasLtMatmulDescCreate");
    each(destroy_description, "cublasLtMatmulDescDestroy");
    each(set_description, "cublasLtMatmulDescSetAttribute");
    each(create_layout, "cublasLtMatrixLayoutCreate");
    each(destroy_layout, "cublasLtMatrixLayoutDestroy");
    each(set_layout, "cublasLtMatrixLayoutSetAttribute");
    each(create_preference, "cublasLtMatmulPreferenceCreate");
    each(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    each(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    each(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    each(matmul, "cublasLtMatmul");
  }
};

}  // namespace blas

/// The opened library. It is never closed, since it registers functions that run when the process ends.
class blas_library {
 public:
  static constexpr std::size_t oldest = 120000;  // 10000 * major + 100 * minor: the first whose numbers are those above

  /// Opens the first library that serves, of version 13, then 12, in `folder`, or where the loader finds it if that is empty. One that is too old, that lacks an
  /// entry point, or that is not `usable`, is passed over. Null: there is none.
  template <class Usable> static std::shared_ptr<const blas_library> open(const std::string& folder, const Usable& usable) {
    for (const char* name : names) {
      void* const library = load(folder, name);
      if (library == nullptr) continue;
      std::shared_ptr<blas_library> b(new blas_library);
      if (b->find(library) && b->table_.version() >= oldest && usable(*b)) return b;
    }
    return nullptr;
  }
  /// Loads what `open` will probably take. It may be called from another thread while the device is opened: the library has hundreds of megabytes.
  static void preload(const std::string& folder) {
    for (const char* name : names)
      if (load(folder, name) != nullptr) return;
  }
  const blas::table* operator->() const { return &table_; }

 private:
  static constexpr std::array<const char*, 2> names{"libcublasLt.so.13", "libcublasLt.so.12"};
  blas::table table_;
  blas_library() = default;

  static void* load(const std::string& folder, const char* name) {
    return dlopen((folder.empty() ? name : folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  }

  /// Whether the library has every entry point.
  bool find(void* library) {
    bool whole = true;
    table_.for_each([&](auto& entry, const char* symbol) {
      void* const found = dlsym(library, symbol);
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(found);
      whole = whole && found != nullptr;
    });
    return whole;
  }
};

}  // namespace isotope::cuda
