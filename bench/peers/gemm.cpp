// Products of the cpu backend's native kernels beside OpenBLAS, oneDNN and Eigen, in one process and in alternation; compare-gemm.sh builds and runs
// it. One thread is timed by its own CPU clock, more by the wall clock. Every result is checked against f64 on 400 of its elements.
//   gemm THREADS ROUNDS [bf16] [gpt2] [head] [char] [square] [row]
// With bf16 the operands are bf16, and the results, too, but for gradients of weights, which are f32 as in training; oneDNN is the peer, weights plain.
#include <isotope/kernels/cpu/native/matmul.hpp>

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>
#include <Eigen/Core>
#include <dnnl.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <tuple>
#include <vector>

extern "C" {
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void openblas_set_num_threads(int);
char* openblas_get_corename();
}

namespace {
using namespace isotope;

/// C (M,N) = A B; A (M,K) is stored (K,M) where ta, B (K,N) is stored (N,K) where tb.
struct problem {
  bool ta, tb;
  int M, N, K;
  dtype operands = dtype::f32, result = dtype::f32;
  double flops() const { return 2.0 * M * N * K; }
  double a(const void* A, int m, int k) const {
    return number(A, operands, ta ? std::size_t(k) * std::size_t(M) + std::size_t(m) : std::size_t(m) * std::size_t(K) + std::size_t(k));
  }
  double b(const void* B, int k, int n) const {
    return number(B, operands, tb ? std::size_t(n) * std::size_t(K) + std::size_t(k) : std::size_t(k) * std::size_t(N) + std::size_t(n));
  }
  double c(const void* C, int m, int n) const { return number(C, result, std::size_t(m) * std::size_t(N) + std::size_t(n)); }
  static double number(const void* x, dtype t, std::size_t i) {
    return t == dtype::f32 ? double(static_cast<const float*>(x)[i]) : double(float(static_cast<const bfloat16*>(x)[i]));
  }
};

void openblas(const problem& p, const void* A, const void* B, void* C) {
  cblas_sgemm(101, p.ta ? 112 : 111, p.tb ? 112 : 111, p.M, p.N, p.K, 1, static_cast<const float*>(A), p.ta ? p.M : p.K,
              static_cast<const float*>(B), p.tb ? p.K : p.N, 0, static_cast<float*>(C), p.N);
}

void onednn(const problem& p, const void* A, const void* B, void* C) {
  using dnnl::memory;
  struct made {
    dnnl::matmul product;
    memory a, b, c;
  };
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  static std::map<std::tuple<bool, bool, int, int, int>, made> all;
  const auto key = std::make_tuple(p.ta, p.tb, p.M, p.N, p.K);
  auto at = all.find(key);
  if (at == all.end()) {
    const auto type = [](dtype t) { return t == dtype::bf16 ? memory::data_type::bf16 : memory::data_type::f32; };
    const memory::desc a({p.M, p.K}, type(p.operands), p.ta ? memory::dims{1, p.M} : memory::dims{p.K, 1}),
        b({p.K, p.N}, type(p.operands), p.tb ? memory::dims{1, p.K} : memory::dims{p.N, 1}),
        c({p.M, p.N}, type(p.result), memory::dims{p.N, 1});
    const dnnl::matmul::primitive_desc d(engine, a, b, c);
    at = all.emplace(key, made{dnnl::matmul(d), memory(a, engine, nullptr), memory(b, engine, nullptr), memory(c, engine, nullptr)}).first;
  }
  auto& [product, a, b, c] = at->second;
  a.set_data_handle(const_cast<void*>(A));
  b.set_data_handle(const_cast<void*>(B));
  c.set_data_handle(C);
  product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  stream.wait();
}

void eigen(const problem& p, const void* left, const void* right, void* C) {
  const auto *A = static_cast<const float*>(left), *B = static_cast<const float*>(right);
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const matrix> a(A, p.ta ? p.K : p.M, p.ta ? p.M : p.K), b(B, p.tb ? p.N : p.K, p.tb ? p.K : p.N);
  Eigen::Map<matrix> c(static_cast<float*>(C), p.M, p.N);
  if (p.ta) c.noalias() = a.transpose() * b;
  else if (p.tb) c.noalias() = a * b.transpose();
  else c.noalias() = a * b;
}

cpu::thread_pool* pool = nullptr;
template <class P> void ours(const problem& p, const void* A, const void* B, void* C) {
  using kernel = cpu::kernel<op::matmul, P, kernels::native>;
  const shape a{p.M, p.K}, b{p.K, p.N}, c{p.M, p.N};
  const cpu::view in[] = {{const_cast<void*>(A), a, p.ta ? extents{1, p.M} : extents{p.K, 1}, p.operands},
                          {const_cast<void*>(B), b, p.tb ? extents{1, p.K} : extents{p.N, 1}, p.operands}};
  const cpu::view out[] = {{C, c, extents{p.N, 1}, p.result}};
  const attributes t = op::matmul::constants{.format = p.result, .operands = 2};
  const shape ins[] = {a, b}, outs[] = {c};
  static std::vector<float> scratch;
  const auto floats = std::size_t(kernel::scratch({ins, outs, &t})) / 4 + 64;
  if (scratch.size() < floats) scratch.resize(floats);
  cpu::launch l;
  l.in = in;
  l.out = out;
  l.attr = &t;
  l.pool = pool;
  l.scratch = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 255) / 256 * 256);
  kernel::run(l);
}

double now(bool wall) {
  timespec t;
  clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
void* numbers(std::size_t n, dtype t, std::uint32_t seed) {
  const std::size_t huge = std::size_t(2) << 20, bytes = (4 * n + huge) / huge * huge;
  void* p = std::aligned_alloc(huge, bytes);
  if (p == nullptr) std::exit(1);
  madvise(p, bytes, MADV_HUGEPAGE);
  for (std::size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float x = float(int(seed >> 16 & 255) - 128) / 128;  // 8 bits: a bf16, too
    if (t == dtype::bf16) static_cast<bfloat16*>(p)[i] = bfloat16(x);
    else static_cast<float*>(p)[i] = x;
  }
  return p;
}

struct library {
  const char* name;
  void (*run)(const problem&, const void*, const void*, void*);
  std::vector<double> seconds{};
  double error = 0;  // the largest, in parts of what is allowed
};

/// The largest error of 400 elements, the corners among them, against 1e-4 sqrt(K), and 2^-8 of the result where that is bf16.
double error_of(const problem& p, const void* A, const void* B, const void* C) {
  double worst = 0;
  for (int q = 0; q < 400; ++q) {
    const int m = q < 4 ? (q & 1) * (p.M - 1) : int(std::int64_t(q) * 7919 % p.M),
              n = q < 4 ? q / 2 * (p.N - 1) : int(std::int64_t(q) * 104729 % p.N);
    double sum = 0;
    for (int k = 0; k < p.K; ++k) sum += p.a(A, m, k) * p.b(B, k, n);
    const double allowed = 1e-4 * std::sqrt(p.K) + (p.result == dtype::bf16 ? std::fabs(sum) / 256 : 0);
    const double e = std::fabs(sum - p.c(C, m, n)) / allowed;
    worst = e <= worst ? worst : e;  // NaN stays
  }
  return worst;
}
}  // namespace

int main(int count, char** arg) {
  const int threads = count > 1 ? std::atoi(arg[1]) : 1, rounds = count > 2 ? std::atoi(arg[2]) : 5;
  std::vector<problem> all;
  const auto layer = [&](int M, int N, int K) {  // forward, gradient of the activations, gradient of the weights
    all.insert(all.end(), {{false, true, M, N, K}, {false, false, M, K, N}, {true, false, N, K, M}});
  };
  const bool half = count > 3 && std::strcmp(arg[3], "bf16") == 0;
  const int first = half ? 4 : 3;
  for (int i = first; i < count || i == first; ++i) {
    const std::string set = count > first ? arg[i] : "gpt2";
    if (set == "gpt2")
      for (const auto [n, k] : {std::pair{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}}) layer(256, n, k);
    if (set == "head") layer(256, 50304, 768);
    if (set == "char")
      for (const auto [n, k] : {std::pair{384, 128}, {128, 128}, {512, 128}, {128, 512}, {65, 128}}) layer(768, n, k);
    if (set == "square")
      for (const int n : {512, 1024, 2048})
        all.insert(all.end(), {{false, false, n, n, n}, {false, true, n, n, n}, {true, false, n, n, n}});
    if (set == "row")
      for (const auto [n, k] : {std::pair{2304, 768}, {768, 3072}, {50257, 768}})
        all.insert(all.end(), {{false, true, 1, n, k}, {false, false, 1, k, n}});
  }
  cpu::thread_pool own(threads);
  pool = &own;
  omp_set_num_threads(threads);
  openblas_set_num_threads(threads);
  std::size_t most_a = 0, most_b = 0, most_c = 0;
  for (problem& p : all) {
    if (half) {
      p.operands = dtype::bf16;
      if (!p.ta) p.result = dtype::bf16;
    }
    const auto M = std::size_t(p.M), N = std::size_t(p.N), K = std::size_t(p.K);
    most_a = std::max(most_a, M * K);
    most_b = std::max(most_b, K * N);
    most_c = std::max(most_c, M * N);
  }
  const dtype operands = half ? dtype::bf16 : dtype::f32;
  void *A = numbers(most_a, operands, 1), *B = numbers(most_b, operands, 2), *C = numbers(most_c, dtype::f32, 3);
  if (half) std::printf("bf16, ");
  else std::printf("f32, OpenBLAS takes its kernels for %s, ", openblas_get_corename());
  std::printf("%d threads; GFLOP/s, best (median)\n%-20s", threads, "");
  const std::vector<library> list =
      half ? std::vector<library>{{"oneDNN", onednn}, {"isotope", ours<precision::bf16>}}
           : std::vector<library>{{"OpenBLAS", openblas}, {"oneDNN", onednn}, {"Eigen", eigen}, {"isotope", ours<precision::f32>}};
  for (const auto& l : list) std::printf("%16s", l.name);
  std::printf("   isotope / best peer: best (median)\n");
  for (const problem& p : all) {
    std::vector<library> libraries = list;
    const int calls = std::clamp(int(4e9 / p.flops()), 3, 200);
    for (int r = 0; r < rounds; ++r)
      for (auto& l : libraries) {
        usleep(threads > 1 ? 4000 : 200);  // the other libraries' threads go to sleep
        std::memset(C, 0xc2, std::size_t(p.M) * std::size_t(p.N) * std::size_t(size_of(p.result)));  // numbers that no product gives
        l.run(p, A, B, C);
        for (int i = 0; i < calls; ++i) {
          const double start = now(threads > 1);
          l.run(p, A, B, C);
          l.seconds.push_back(now(threads > 1) - start);
        }
        if (r == 0) l.error = error_of(p, A, B, C);
      }
    std::printf("%s%s %5d %5d %5d  ", p.ta ? "T" : "N", p.tb ? "T" : "N", p.M, p.N, p.K);
    double best = 0, median = 0;
    for (auto& l : libraries) {
      std::sort(l.seconds.begin(), l.seconds.end());
      const double b = p.flops() / l.seconds[0] / 1e9, m = p.flops() / l.seconds[l.seconds.size() / 2] / 1e9;
      char text[40];
      std::snprintf(text, sizeof text, "%.0f (%.0f)%s", b, m, l.error <= 1 ? "" : " WRONG");
      std::printf("%16s", text);
      if (&l == &libraries.back()) {
        std::printf("   %.3f (%.3f)\n", b / best, m / median);
      } else {
        best = std::max(best, b);
        median = std::max(median, m);
      }
    }
    std::fflush(stdout);
  }
}
