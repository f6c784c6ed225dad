// One row per op and shape of the cpu backend's portable kernels, and of native attention, in one or all threads: time, FLOP/s or bytes/s, and the
// share of what this machine reaches with the same threads (a register-bound loop of multiply-adds; a copy of 256 MB).
//   bench_cpu_kernels --benchmark_filter=matmul --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <isotope/kernels/cpu/all.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>
#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#endif

namespace {
using namespace isotope;
using precision::bf16;
using precision::f32;

cpu::thread_pool& pool_of(bool all) {
  static cpu::thread_pool one(1), every(0);
  return all ? every : one;
}
/// One thread is timed by its own CPU clock, which other programs disturb less; all of them by the wall clock, which wants a quiet machine.
double now(bool all) {
  timespec t;
  clock_gettime(all ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
double seconds(bool all, const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = now(all);
    work();
    best = std::min(best, now(all) - start);
  }
  return best;
}
template <class F> void add_row(const std::string& name, bool all, F run) {
  auto* b = benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
  if (all) b->UseRealTime();
}
/// FLOP/s of multiply-adds on operands in L1.
double peak_flops(bool all) {
  const auto measure = [](cpu::thread_pool& pool) {
    using cpu::portable::micro_tile;
    constexpr std::int64_t k = 256, rounds = 2000;
    const double time = seconds(pool.size() > 1, [&] {
      pool.parallel(pool.size(), [](std::int64_t, int) {
        alignas(64) float a[k * micro_tile::rows] = {}, b[k * micro_tile::cols] = {}, c[micro_tile::rows * micro_tile::cols];
        for (std::int64_t i = 0; i < rounds; ++i)
          cpu::portable::microkernel<micro_tile::rows, 2>(a, 1, micro_tile::rows, b, micro_tile::cols, c, micro_tile::cols, k, false);
        benchmark::DoNotOptimize(c);
      });
    });
    return 2.0 * double(k * rounds * micro_tile::rows * micro_tile::cols * pool.size()) / time;
  };
  static const double one = measure(pool_of(false)), every = measure(pool_of(true));
  return all ? every : one;
}
/// Bytes/s read and written by a copy that no cache holds.
double peak_bytes(bool all) {
  const auto measure = [](cpu::thread_pool& pool) {
    std::vector<char> from(128 << 20, 1), to(128 << 20, 2);
    const double time = seconds(pool.size() > 1, [&] {
      pool.parallel(128, [&](std::int64_t t, int) { std::memcpy(to.data() + (t << 20), from.data() + (t << 20), 1 << 20); });
    });
    return 2.0 * double(from.size()) / time;
  };
  static const double one = measure(pool_of(false)), every = measure(pool_of(true));
  return all ? every : one;
}

/// A launch that owns its tensors.
struct job {
  std::vector<std::vector<std::byte>> memory;
  std::vector<cpu::view> in, out;
  std::vector<cpu::instruction> body;
  attributes attr;
  step_scalars scalars;
  std::vector<std::byte> scratch;

  cpu::view tensor(const shape& s, dtype t, double low = -1, double high = 1) {
    memory.emplace_back(std::size_t(s.count() * size_of(t)) + 64);
    cpu::view v{memory.back().data(), s, dense_strides(s), t};
    v.data = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(v.data) + 63) / 64 * 64);
    for (std::int64_t i = 0; i < s.count(); ++i) {
      const double x = low + (high - low) * double(philox(1, std::uint64_t(i), 0, std::uint32_t(memory.size()))[0]) * 0x1p-32;
      if (t == dtype::f32) v.as<float>()[i] = float(x);
      if (t == dtype::bf16) v.as<bfloat16>()[i] = bfloat16(float(x));
      if (t == dtype::i32) v.as<std::int32_t>()[i] = std::int32_t(x);
    }
    return v;
  }
  static cpu::view transposed(cpu::view v) {
    const auto n = std::size_t(v.dims.rank);
    std::swap(v.dims.d[n - 1], v.dims.d[n - 2]);
    std::swap(v.strides[n - 1], v.strides[n - 2]);
    return v;
  }
  template <class Kernel> void measure(benchmark::State& state, bool all, double flops, double bytes) {
    cpu::launch l;
    l.in = in;
    l.out = out;
    l.body = body;
    l.attr = &attr;
    l.scalars = &scalars;
    l.pool = &pool_of(all);
    if constexpr (requires(const step_shapes& s) { Kernel::scratch(s); }) {
      std::vector<shape> ins, outs;
      for (const auto& x : in) ins.push_back(x.dims);
      for (const auto& y : out) outs.push_back(y.dims);
      scratch.resize(std::size_t(Kernel::scratch({ins, outs, &attr})) + 256);
      l.scratch = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 255) / 256 * 256);
    }
    Kernel::run(l);
    for (auto _ : state) Kernel::run(l);
    report(state, all, flops, bytes);
  }
  static void report(benchmark::State& state, bool all, double flops, double bytes) {
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    if (flops > 0) {
      state.counters["FLOP/s"] = benchmark::Counter(flops, rate);
      state.counters["of_peak_flops"] = benchmark::Counter(flops / peak_flops(all), rate);
    }
    state.counters["bytes/s"] = benchmark::Counter(bytes, rate);
    state.counters["of_copy_rate"] = benchmark::Counter(bytes / peak_bytes(all), rate);
  }
};

template <class P> using product = cpu::kernel<op::matmul, P, kernels::portable>;

struct gemm {
  std::int64_t M, N, K;
  bool ta, tb;
  std::string name() const {
    return std::string(ta ? "T" : "N") + (tb ? "T/" : "N/") + std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K);
  }
  double flops() const { return 2.0 * double(M) * double(N) * double(K); }
};
constexpr gemm gemms[] = {{768, 384, 128, false, true},   {768, 512, 128, false, true},  {768, 65, 128, false, true},
                          {768, 128, 512, false, false},  {512, 128, 768, true, false},  {256, 2304, 768, false, true},
                          {256, 768, 3072, false, false}, {2304, 768, 256, true, false}, {256, 50304, 768, false, true},
                          {1024, 1024, 1024, false, true}};

template <class P> void matmul_row(benchmark::State& state, gemm g, bool all) {
  job j;
  const cpu::view a = j.tensor(g.ta ? shape{g.K, g.M} : shape{g.M, g.K}, P::type),
                  b = j.tensor(g.tb ? shape{g.N, g.K} : shape{g.K, g.N}, P::type);
  j.in = {g.ta ? job::transposed(a) : a, g.tb ? job::transposed(b) : b};
  j.out = {j.tensor({g.M, g.N}, P::type)};
  j.attr = op::matmul::constants{.format = P::type, .operands = 2};
  j.measure<product<P>>(state, all, g.flops(), double(g.M * g.K + g.K * g.N + g.M * g.N) * double(size_of(P::type)));
}
#if __has_include(<Eigen/Core>)
/// The peer: Eigen's product of mapped matrices, one thread.
void eigen_row(benchmark::State& state, gemm g) {
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const matrix a = matrix::Random(g.ta ? g.K : g.M, g.ta ? g.M : g.K), b = matrix::Random(g.tb ? g.N : g.K, g.tb ? g.K : g.N);
  matrix y(g.M, g.N);
  for (auto _ : state) {
    if (g.ta) y.noalias() = a.transpose() * b;
    else if (g.tb) y.noalias() = a * b.transpose();
    else y.noalias() = a * b;
    benchmark::DoNotOptimize(y.data());
  }
  job::report(state, false, g.flops(), double(g.M * g.K + g.K * g.N + g.M * g.N) * 4);
}
#endif

template <class P> void norm_row(benchmark::State& state, std::int64_t rows, std::int64_t C, bool back, bool all) {
  job j;
  const auto x = j.tensor({rows, C}, P::type), w = j.tensor({C}, P::type), b = j.tensor({C}, P::type), y = j.tensor({rows, C}, P::type);
  const auto mean = j.tensor({rows}, dtype::f32, 0, 0.1), rstd = j.tensor({rows}, dtype::f32, 1, 2);
  j.attr = op::layer_norm::constants{.epsilon = 1e-5};
  const double bytes = double(rows * C * size_of(P::type));
  if (back) {
    j.in = {x, w, b, mean, rstd, y};
    j.out = {j.tensor({rows, C}, P::type), j.tensor({C}, dtype::f32), j.tensor({C}, dtype::f32)};
    j.measure<cpu::kernel<op::layer_norm_grad, P, kernels::portable>>(state, all, 0, 3 * bytes);
  } else {
    j.in = {x, w, b};
    j.out = {y, mean, rstd};
    j.measure<cpu::kernel<op::layer_norm, P, kernels::portable>>(state, all, 0, 2 * bytes);
  }
}
template <class P, class Set>
void attention_row(benchmark::State& state, std::int64_t B, std::int64_t S, std::int64_t H, std::int64_t D, bool back, bool all) {
  job j;
  const auto qkv = j.tensor({B, S, 3 * H * D}, P::type), y = j.tensor({B, S, H * D}, P::type), lse = j.tensor({B, H, S}, dtype::f32, 3, 4);
  j.attr = op::attention::constants{.heads = H, .kv_heads = H, .causal = true, .packed = true, .scale = 0.125};
  const double product_flops = double(B * H) * double(S) * double(S) * double(D), bytes = double(B * S * H * D * size_of(P::type));
  if (back) {
    j.in = {qkv, y, lse, j.tensor({B, S, H * D}, P::type)};
    j.out = {j.tensor({B, S, 3 * H * D}, P::type)};
    j.measure<cpu::kernel<op::attention_grad, P, Set>>(state, all, 5 * product_flops, 8 * bytes);
  } else {
    j.in = {qkv};
    j.out = {y, lse};
    j.measure<cpu::kernel<op::attention, P, Set>>(state, all, 2 * product_flops, 4 * bytes);
  }
}
template <class P> void classifier_row(benchmark::State& state, std::int64_t rows, std::int64_t V, bool back, bool all) {
  job j;
  const auto x = j.tensor({rows, V}, P::type, -4, 4), targets = j.tensor({rows}, dtype::i32, 0, double(V)),
             top = j.tensor({rows}, dtype::f32, 4, 4), sum = j.tensor({rows}, dtype::f32, 80, 90);
  const double bytes = double(rows * V * size_of(P::type));
  if (back) {
    j.in = {x, targets, top, sum, j.tensor({}, dtype::f32, 1, 1)};
    j.out = {j.tensor({rows, V}, P::type)};
    j.measure<cpu::kernel<op::cross_entropy_grad, P, kernels::portable>>(state, all, 0, 2 * bytes);
  } else {
    j.in = {x, targets};
    j.out = {j.tensor({}, dtype::f32), top, sum};
    j.measure<cpu::kernel<op::cross_entropy, P, kernels::portable>>(state, all, 0, bytes);
  }
}
template <class P, class Op> void unary_row(benchmark::State& state, std::int64_t n, bool all) {
  job j;
  j.in = {j.tensor({n}, P::type, -3, 3), j.tensor({n}, P::type, -3, 3)};
  j.out = {j.tensor({n}, P::type)};
  cpu::instruction i;
  i.run = &cpu::kernel<Op, P, kernels::portable>::block;
  i.arg[0] = 0;
  i.arg[1] = 1;
  i.args = 2;
  i.store = 0;
  i.type = P::type;
  j.body = {i};
  j.measure<cpu::kernel<op::elementwise, P, kernels::portable>>(state, all, 0, 3.0 * double(n * size_of(P::type)));
}
void adamw_row(benchmark::State& state, std::int64_t n, bool all) {
  job j;
  j.out = {j.tensor({n}, dtype::f32), j.tensor({n}, dtype::f32), j.tensor({n}, dtype::f32, 0, 1)};
  j.in = j.out;
  j.in.push_back(j.tensor({n}, dtype::f32));
  j.in.push_back(j.tensor({}, dtype::f32, 1, 1));
  j.in.push_back(j.tensor({}, dtype::f32, 1, 1));
  j.attr = op::adamw::constants{.decaying = n / 2, .clips = true};
  j.measure<cpu::kernel<op::adamw, f32, kernels::portable>>(state, all, 0, 28.0 * double(n));
}

template <class P> void rows_of(bool all) {
  const std::string end = "/" + std::string(P::name) + (all ? "/all" : "/1");
  const auto add = [&](const std::string& name, auto run) { add_row(name + end, all, run); };
  for (const gemm& g : gemms) add("matmul/" + g.name(), [=](benchmark::State& s) { matmul_row<P>(s, g, all); });
  for (const bool back : {false, true}) {
    const std::string grad = back ? "_grad" : "";
    add("layer_norm" + grad + "/768x128", [=](benchmark::State& s) { norm_row<P>(s, 768, 128, back, all); });
    add("layer_norm" + grad + "/4096x768", [=](benchmark::State& s) { norm_row<P>(s, 4096, 768, back, all); });
    for (const auto [B, S, H, D] : {std::array{12, 64, 4, 32}, {4, 64, 12, 64}, {1, 1024, 12, 64}}) {
      const std::string size = std::to_string(B) + "x" + std::to_string(S) + "x" + std::to_string(H) + "x" + std::to_string(D);
      add("attention" + grad + "/portable/" + size,
          [=](benchmark::State& s) { attention_row<P, kernels::portable>(s, B, S, H, D, back, all); });
      if constexpr (cpu::NativeProgram<P>)
        add("attention" + grad + "/native/" + size,
            [=](benchmark::State& s) { attention_row<P, kernels::native>(s, B, S, H, D, back, all); });
    }
    add("cross_entropy" + grad + "/768x65", [=](benchmark::State& s) { classifier_row<P>(s, 768, 65, back, all); });
    add("cross_entropy" + grad + "/256x50257", [=](benchmark::State& s) { classifier_row<P>(s, 256, 50257, back, all); });
  }
  add("add/393216", [=](benchmark::State& s) { unary_row<P, op::add>(s, 393216, all); });
  add("gelu_tanh/393216", [=](benchmark::State& s) { unary_row<P, op::gelu_tanh>(s, 393216, all); });
  add("gelu_tanh_grad/393216", [=](benchmark::State& s) { unary_row<P, op::gelu_tanh_grad>(s, 393216, all); });
}
}  // namespace

int main(int argc, char** argv) {
  for (const bool all : {false, true}) {
    rows_of<f32>(all);
    rows_of<bf16>(all);
    for (const std::int64_t n : {std::int64_t(800'000), std::int64_t(40'000'000)})
      add_row("adamw/" + std::to_string(n) + (all ? "/f32/all" : "/f32/1"), all, [=](benchmark::State& s) { adamw_row(s, n, all); });
  }
#if __has_include(<Eigen/Core>)
  for (const gemm& g : gemms) add_row("eigen/" + g.name() + "/f32/1", false, [=](benchmark::State& s) { eigen_row(s, g); });
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
