// An emulated cuBLASLt: the entry points that the backend uses. Products are computed by plain loops in a kernel of the emulated driver, so that a stream that
// is captured sees a kernel. ISOTOPE_EMULATED_BLAS_PARTIAL leaves out the product, as a library of another kind would.
#include "blas_control.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include <isotope/backend/cuda/blas_library.hpp>
#include <isotope/core/precision.hpp>

#include "control.hpp"
#include "runtime.hpp"

namespace isotope::cuda::blas {
struct handle_object {};
struct description_object {
  std::int32_t transpose_a = 0, transpose_b = 0;
};
struct layout_object {
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading = 0, stride = 0;
  std::int32_t batches = 1;
};
struct preference_object {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = 0;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256};
};
}  // namespace isotope::cuda::blas

namespace isotope_emulated {
namespace {

using namespace isotope::cuda;
constexpr int success = 0, not_initialized = 1, invalid_value = 7, not_supported = 15;
constexpr int real32 = 0, real16 = 2, brain16 = 14;  // cudaDataType

struct library_state {
  std::mutex mutex;
  std::vector<blas_algorithm> algorithms{{1, 5}, {2, 2}, {3, 4}};
  std::size_t version = 130000;
  std::string fault_entry;
  int fault_status = 0;
  std::map<std::string, std::int64_t> calls;
  std::map<int, std::int64_t> started;
};
library_state& state() {
  static library_state& s = *new library_state;  // programs may use it until their very end
  return s;
}
/// Counts a call, and runs its body unless a test wants it to fail.
template <class Body> int enter(const char* name, const Body& body) {
  library_state& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.calls[name];
  return s.fault_entry == name ? s.fault_status : body(s);
}

/// A matrix in device memory, column-major, with its transpose taken if that was asked for.
struct matrix {
  std::uint64_t at;
  std::int64_t down, across, batch;  // distances in elements: to the next row, to the next column, to the next batch
  int type;
  float load(std::int64_t i) const {
    const auto* const p = reinterpret_cast<const std::byte*>(at);
    if (type == brain16) return float(copy<isotope::bfloat16>(p + 2 * i));
    if (type == real16) return float(copy<isotope::float16>(p + 2 * i));
    return copy<float>(p + 4 * i);
  }
  void store(std::int64_t i, float x) const {
    auto* const p = reinterpret_cast<std::byte*>(at);
    const isotope::bfloat16 brain(x);
    const isotope::float16 half(x);
    if (type == brain16) std::memcpy(p + 2 * i, &brain, sizeof brain);
    else if (type == real16) std::memcpy(p + 2 * i, &half, sizeof half);
    else std::memcpy(p + 4 * i, &x, sizeof x);
  }
  template <class E> static E copy(const std::byte* p) {
    E e;
    std::memcpy(&e, p, sizeof e);
    return e;
  }
};
struct product {
  matrix a, b, c, d;
  std::int64_t m, n, k, batches;
  float alpha, beta;
  int parts;
  std::uint64_t milliseconds;
};
std::uint64_t multiply(const void* arguments) {
  const auto& p = *static_cast<const product*>(arguments);
  std::vector<float> sums(std::size_t(p.parts));
  for (std::int64_t z = 0; z < p.batches; ++z)
    for (std::int64_t j = 0; j < p.n; ++j)
      for (std::int64_t i = 0; i < p.m; ++i) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (std::int64_t k = 0; k < p.k; ++k)
          sums[std::size_t(k % p.parts)] +=
              p.a.load(z * p.a.batch + i * p.a.down + k * p.a.across) * p.b.load(z * p.b.batch + k * p.b.down + j * p.b.across);
        float all = 0;
        for (const float s : sums) all += s;
        const float before = p.beta == 0 ? 0 : p.beta * p.c.load(z * p.c.batch + i * p.c.down + j * p.c.across);
        p.d.store(z * p.d.batch + i * p.d.down + j * p.d.across, p.alpha * all + before);
      }
  return p.milliseconds;
}
matrix seen(const void* at, const blas::layout_object& l, bool transposed) {
  return {reinterpret_cast<std::uint64_t>(at), transposed ? l.leading : 1, transposed ? 1 : l.leading, l.stride, l.type};
}

/// What the library uses of the emulated driver, which is in the folder above its own. Another driver may be loaded, too.
struct driver_parts {
  function_handle (*host_kernel_of)(const char*, host_kernel, std::size_t) = nullptr;
  status (*launch)(const launch_config*, function_handle, void**, void**) = nullptr;
};
driver_parts driver_of_program() {
  driver_parts d;
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&driver_of_program), &own);
  const std::string file = own.dli_fname == nullptr ? "" : own.dli_fname;
  void* const library = dlopen((file.substr(0, file.rfind('/') + 1) + "../libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return d;
  using get_function = status (*)(const char*, void**, int, std::uint64_t, int*);
  const auto get = reinterpret_cast<get_function>(dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  int how = 0;
  if (get != nullptr) get("cuLaunchKernelEx", &found, 12000, 0, &how);
  d.launch = reinterpret_cast<decltype(d.launch)>(found);
  d.host_kernel_of = reinterpret_cast<decltype(d.host_kernel_of)>(dlsym(library, "isotope_emulator_host_kernel"));
  return d;
}

template <class Made> int create(const char* entry, Made** made) {
  return enter(entry, [&](library_state&) {
    *made = new Made;
    return success;
  });
}
template <class Made> int destroy(const char* entry, Made* made) {
  return enter(entry, [&](library_state&) {
    delete made;
    return success;
  });
}
template <class To> int set(const char* entry, To* to, const void* from, std::size_t bytes) {
  return enter(entry, [&](library_state&) {
    if (to == nullptr || bytes != sizeof *to) return invalid_value;
    std::memcpy(to, from, bytes);
    return success;
  });
}

}  // namespace

extern "C" {

ISOTOPE_EMULATOR_EXPORT std::size_t cublasLtGetVersion() { return state().version; }
ISOTOPE_EMULATOR_EXPORT int cublasLtCreate(blas::handle* made) { return create("cublasLtCreate", made); }
ISOTOPE_EMULATOR_EXPORT int cublasLtDestroy(blas::handle h) { return destroy("cublasLtDestroy", h); }
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmulDescCreate(blas::description* made, blas::compute, int) {
  return create("cublasLtMatmulDescCreate", made);
}
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmulDescDestroy(blas::description d) { return destroy("cublasLtMatmulDescDestroy", d); }
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmulDescSetAttribute(blas::description d, blas::description_attribute which, const void* from,
                                                           std::size_t bytes) {
  return set("cublasLtMatmulDescSetAttribute", which == blas::description_attribute::transpose_a ? &d->transpose_a : &d->transpose_b, from,
             bytes);
}
ISOTOPE_EMULATOR_EXPORT int cublasLtMatrixLayoutCreate(blas::layout* made, int type, std::uint64_t rows, std::uint64_t columns,
                                                       std::int64_t leading) {
  const int s = create("cublasLtMatrixLayoutCreate", made);
  if (s == success) **made = {type, std::int64_t(rows), std::int64_t(columns), leading};
  return s;
}
ISOTOPE_EMULATOR_EXPORT int cublasLtMatrixLayoutDestroy(blas::layout l) { return destroy("cublasLtMatrixLayoutDestroy", l); }
ISOTOPE_EMULATOR_EXPORT int cublasLtMatrixLayoutSetAttribute(blas::layout l, blas::layout_attribute which, const void* from,
                                                             std::size_t bytes) {
  if (which == blas::layout_attribute::batches) return set("cublasLtMatrixLayoutSetAttribute", &l->batches, from, bytes);
  return set("cublasLtMatrixLayoutSetAttribute", &l->stride, from, bytes);
}
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmulPreferenceCreate(blas::preference* made) {
  return create("cublasLtMatmulPreferenceCreate", made);
}
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmulPreferenceDestroy(blas::preference p) { return destroy("cublasLtMatmulPreferenceDestroy", p); }
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmulPreferenceSetAttribute(blas::preference p, blas::preference_attribute which, const void* from,
                                                                 std::size_t bytes) {
  const char* const name = "cublasLtMatmulPreferenceSetAttribute";
  if (which == blas::preference_attribute::workspace_bytes) return set(name, &p->workspace_bytes, from, bytes);
  if (which == blas::preference_attribute::reduction_schemes) return set(name, &p->reductions, from, bytes);
  return set(name, &p->alignments.at(std::size_t(int(which) - int(blas::preference_attribute::alignment_a))), from, bytes);
}
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmulAlgoGetHeuristic(blas::handle h, blas::description d, blas::layout a, blas::layout b,
                                                           blas::layout c, blas::layout to, blas::preference wish, int most,
                                                           blas::candidate* found, int* count) {
  return enter("cublasLtMatmulAlgoGetHeuristic", [&](library_state& s) {
    if (h == nullptr || d == nullptr || a == nullptr || b == nullptr || c == nullptr || to == nullptr || wish == nullptr)
      return invalid_value;
    *count = 0;
    for (const blas_algorithm& x : s.algorithms) {
      if (*count == most) break;
      if (*std::min_element(wish->alignments.begin(), wish->alignments.end()) < x.alignment) continue;
      blas::candidate& one = found[(*count)++];
      one = {};
      one.algorithm.words[0] = std::uint64_t(x.number);
      one.algorithm.words[7] = 0xfedcba9876543210u;  // the whole of it must be kept
      one.status = x.heuristic_status;
    }
    return *count == 0 ? not_supported : success;
  });
}
#ifndef ISOTOPE_EMULATED_BLAS_PARTIAL
ISOTOPE_EMULATOR_EXPORT int cublasLtMatmul(blas::handle h, blas::description how, const void* alpha, const void* a, blas::layout of_a,
                                           const void* b, blas::layout of_b, const void* beta, const void* c, blas::layout of_c, void* d,
                                           blas::layout of_d, const blas::algorithm* chosen, void*, std::size_t, stream_handle stream) {
  return enter("cublasLtMatmul", [&](library_state& s) {
    static const driver_parts driver = driver_of_program();
    if (h == nullptr || driver.launch == nullptr || driver.host_kernel_of == nullptr) return not_initialized;
    const auto x = std::find_if(s.algorithms.begin(), s.algorithms.end(),
                                [&](const blas_algorithm& one) { return std::uint64_t(one.number) == chosen->words[0]; });
    if (x == s.algorithms.end() || chosen->words[7] != 0xfedcba9876543210u) return not_supported;
    ++s.started[x->number];
    if (x->status != success) return x->status;
    product p{seen(a, *of_a, how->transpose_a != 0), seen(b, *of_b, how->transpose_b != 0), seen(c, *of_c, false), seen(d, *of_d, false)};
    p.m = of_d->rows, p.n = of_d->columns, p.batches = of_d->batches;
    p.k = how->transpose_a != 0 ? of_a->rows : of_a->columns;
    const std::int64_t rows_of_a = how->transpose_a != 0 ? of_a->columns : of_a->rows,
                       rows_of_b = how->transpose_b != 0 ? of_b->columns : of_b->rows,
                       columns_of_b = how->transpose_b != 0 ? of_b->rows : of_b->columns;
    if (rows_of_a != p.m || rows_of_b != p.k || columns_of_b != p.n) return invalid_value;
    std::memcpy(&p.alpha, alpha, sizeof p.alpha);
    std::memcpy(&p.beta, beta, sizeof p.beta);
    p.parts = x->number, p.milliseconds = x->milliseconds;
    launch_config one;
    one.stream = stream;
    void* parameters[] = {&p};
    return driver.launch(&one, driver.host_kernel_of("emulated_product", multiply, sizeof p), parameters, nullptr) == status::success
               ? success
               : 13;
  });
}
#endif

ISOTOPE_EMULATOR_EXPORT void isotope_emulated_blas_algorithms(const blas_algorithm* all, std::size_t count) {
  const std::lock_guard lock(state().mutex);
  state().algorithms.assign(all, all + count);
}
ISOTOPE_EMULATOR_EXPORT void isotope_emulated_blas_version(std::size_t v) { state().version = v; }
ISOTOPE_EMULATOR_EXPORT void isotope_emulated_blas_fault(const char* entry, int what) {
  const std::lock_guard lock(state().mutex);
  state().fault_entry = entry == nullptr ? "" : entry;
  state().fault_status = what;
}
ISOTOPE_EMULATOR_EXPORT std::int64_t isotope_emulated_blas_calls(const char* entry) {
  const std::lock_guard lock(state().mutex);
  return state().calls[entry];
}
ISOTOPE_EMULATOR_EXPORT std::int64_t isotope_emulated_blas_started(int number) {
  const std::lock_guard lock(state().mutex);
  return state().started[number];
}
}

}  // namespace isotope_emulated
