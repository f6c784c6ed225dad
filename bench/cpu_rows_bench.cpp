/// Row kernels and element functions of the cpu backend on one thread: portable and native ones in turn, by the thread's CPU clock, and the native
/// one's share of a bound that is measured beside them.
///
///   bench_cpu_rows [--only TEXT] [--rounds N]
///
/// The bound is the longer one of two loops on whole vectors: one that reads and writes as many bytes as the op must, in memory of the same size, and
/// one that takes as many exponentials (native/math/exp.hpp) of registers. Columns: medians in microseconds, ratio native / portable (of the best
/// calls in brackets), bytes or exp, the bound in microseconds, its share. Sizes of GPT-2 124M with 256 tokens, of the small character model
/// with 768; elements: 2048 of f32, which L1 holds, by the kernel alone, and 65536 as a step, in L2.
#include <isotope/backend/cpu/table.hpp>
#include <isotope/kernels/cpu/all.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {
using namespace isotope;
using precision::bf16;
using precision::f32;
using vectors = cpu::portable::vector;
constexpr std::int64_t lanes = cpu::portable::lanes;

template <class T> void keep(const T& x) { asm volatile("" : : "m"(x) : "memory"); }
double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
/// Of one call, over at least 2 ms of them.
template <class F> double time_of(const F& f, std::int64_t& calls) {
  for (;;) {
    const double start = seconds();
    for (std::int64_t i = 0; i < calls; ++i) f();
    const double took = seconds() - start;
    if (took > 2e-3) return took / double(calls);
    calls *= 2;
  }
}

/// Reads `in` vectors and writes `out` of them, each once.
void stream(const std::vector<vectors>& x, std::vector<vectors>& y, std::int64_t in, std::int64_t out) {
  vectors sum[4] = {};
  const std::int64_t each = out == 0 ? 0 : in / out;
  const vectors* from = x.data();
  if (each == 1) {
    for (std::int64_t i = 0; i + 4 <= out; i += 4, from += 4) {
      y[std::size_t(i)] = from[0];
      y[std::size_t(i + 1)] = from[1];
      y[std::size_t(i + 2)] = from[2];
      y[std::size_t(i + 3)] = from[3];
    }
  } else {
    for (std::int64_t i = 0; i < out; ++i) {
      vectors v = *from++;
      for (std::int64_t k = 1; k < each; ++k) v = v + *from++;
      y[std::size_t(i)] = v;
    }
  }
  for (; from + 4 <= x.data() + in; from += 4)
    for (int k = 0; k < 4; ++k) sum[k] = sum[k] + from[k];
  keep(sum);
  keep(y[0]);
}
/// `n` vectors of exponentials of registers, none of which waits for another.
void exponentials(std::int64_t n) {
  vectors x[4], sum[4] = {};
  for (int k = 0; k < 4; ++k) x[k] = vectors{} - float(k) * 0.1f;
  for (std::int64_t i = 0; i < n; i += 4)
    for (int k = 0; k < 4; ++k) {
      sum[k] = sum[k] + cpu::native::lanewise::exp(x[k]);
      x[k] = x[k] - 1e-6f;
    }
  keep(sum);
}

struct options {
  std::string_view only;
  int rounds = 5;
};

template <class Op, class P> struct native_of {
  using type = cpu::kernel<Op, P, kernels::portable>;
};
template <class Op, class P> requires requires { sizeof(cpu::kernel<Op, P, kernels::native>); } struct native_of<Op, P> {
  using type = cpu::kernel<Op, P, kernels::native>;
};

/// A launch that owns its tensors, on the calling thread.
class job {
 public:
  attributes attr;
  explicit job(const options& o) : o_(o) {}

  cpu::view tensor(const shape& s, dtype t, double low = -1, double high = 1) {
    const auto bytes = std::size_t(s.count() * size_of(t));
    memory_.emplace_back(bytes / sizeof(vectors) + 2);
    cpu::view v{memory_.back().data(), s, dense_strides(s), t};
    std::uint64_t state = memory_.size();
    for (std::int64_t i = 0; i < s.count(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double x = low + (high - low) * double(state >> 40) * 0x1p-24;
      if (t == dtype::f32) v.as<float>()[i] = float(x);
      else if (t == dtype::bf16) v.as<bfloat16>()[i] = bfloat16(float(x));
      else if (t == dtype::i32) v.as<std::int32_t>()[i] = std::int32_t(x);
      else v.as<std::uint8_t>()[i] = x > 0;
    }
    return v;
  }
  job& takes(std::vector<cpu::view> x) {
    in_ = std::move(x);
    return *this;
  }
  job& gives(std::vector<cpu::view> y) {
    out_ = std::move(y);
    return *this;
  }
  /// A row of the table for Op. `read`, `written`: bytes; `exps`: exponentials.
  template <class Op, class P> void row(const std::string& name, double read, double written, double exps) {
    if (!chosen<P>(name)) return;
    using native = typename native_of<Op, P>::type;
    compare(
        name, std::string(P::name), [this] { run<cpu::kernel<Op, P, kernels::portable>>(); }, [this] { run<native>(); }, read, written,
        exps);
  }
  /// The same for an element-wise instruction: of f32 alone in L1, then as a step.
  template <class Op, class P> void element_row(double exps) {
    const std::string name(Op::name);
    double read = 0;
    for (const auto& x : in_) read += double(x.dims.count() * size_of(x.type));
    const double n = double(out_[0].dims.count()), written = n * double(size_of(out_[0].type));
    using portable = cpu::kernel<Op, P, kernels::portable>;
    using native = typename native_of<Op, P>::type;
    if (std::is_same_v<P, f32> && in_[0].type == dtype::f32 && out_[0].type == dtype::f32 && chosen<P>(name)) {
      volatile const std::int64_t few = 2048;  // or g++ unrolls what it need not
      const void* x[3] = {};
      for (std::size_t k = 0; k < in_.size(); ++k) x[k] = in_[k].data;
      const double part = double(few) / n;
      compare(
          name + " 2048", std::string(P::name), [&] { portable::block(x, out_[0].data, few, 0.37); },
          [&] { native::block(x, out_[0].data, few, 0.37); }, read * part, written * part, exps * double(few));
    }
    if (!chosen<P>(name + " step")) return;
    const auto with = [this]<class K>(K) {
      cpu::instruction i;
      const cpu::entry e = cpu::entry_of<K>();
      i.run = e.block;
      i.tile = e.tile;
      for (std::size_t k = 0; k < in_.size(); ++k) i.arg[k] = std::int8_t(k);
      i.args = std::int8_t(in_.size());
      i.store = 0;
      i.type = P::type;
      i.scalar = 0.37;
      body_ = {i};
      run<cpu::kernel<op::elementwise, P, kernels::portable>>();
    };
    compare(name + " step", std::string(P::name), [&] { with(portable()); }, [&] { with(native()); }, read, written, exps * n);
  }

 private:
  template <class P> bool chosen(const std::string& name) const {
    return (name + ' ' + std::string(P::name)).find(o_.only) != std::string::npos;
  }
  template <class Kernel> void run() {
    cpu::launch l;
    l.in = in_;
    l.out = out_;
    l.attr = &attr;
    l.body = body_;
    if constexpr (requires(const step_shapes& s) { Kernel::scratch(s); }) {
      std::vector<shape> ins, outs;
      for (const auto& x : in_) ins.push_back(x.dims);
      for (const auto& y : out_) outs.push_back(y.dims);
      const auto needed = std::size_t(Kernel::scratch({ins, outs, &attr})) / sizeof(vectors) + 1;
      if (scratch_.size() < needed) scratch_.resize(needed);
      l.scratch = scratch_.data();
    }
    Kernel::run(l);
  }
  void compare(const std::string& name, const std::string& format, const std::function<void()>& portable,
               const std::function<void()>& native, double read, double written, double exps) {
    std::vector<vectors> x(std::size_t(read) / sizeof(vectors) + 1), y(std::size_t(written) / sizeof(vectors) + 1);
    const auto in = std::int64_t(read) / std::int64_t(sizeof(vectors)), out = std::int64_t(written) / std::int64_t(sizeof(vectors));
    const auto whole = std::int64_t(exps) / lanes;
    const std::function<void()> runs[] = {portable, native, [&] { stream(x, y, in, out); }, [&] { exponentials(whole); }};
    std::vector<double> took[4];
    std::int64_t calls[4] = {1, 1, 1, 1};
    for (int round = 0; round <= o_.rounds; ++round)
      for (std::size_t k = 0; k < 4; ++k) {
        const double t = k == 3 && whole == 0 ? 0.0 : time_of(runs[k], calls[k]);
        if (round > 0) took[k].push_back(t * 1e6);
      }
    for (auto& t : took) std::sort(t.begin(), t.end());
    const auto median = [&](std::size_t k) { return took[k][took[k].size() / 2]; };
    const bool by_exp = median(3) > median(2);
    const double bound = by_exp ? median(3) : median(2);
    std::printf("%-32s %-4s %10.2f %10.2f %6.2f (%.2f)  %-5s %10.2f %6.2f\n", name.c_str(), format.c_str(), median(0), median(1),
                median(1) / median(0), took[1][0] / took[0][0], by_exp ? "exp" : "bytes", bound, bound / median(1));
    std::fflush(stdout);
  }

  const options& o_;
  std::vector<std::vector<vectors>> memory_;
  std::vector<cpu::view> in_, out_;
  std::vector<cpu::instruction> body_;
  std::vector<vectors> scratch_;
};

std::string sized(const std::string& name, std::int64_t rows, std::int64_t cols) {
  return name + " " + std::to_string(rows) + "x" + std::to_string(cols);
}

template <class P> void norms(const options& o, std::int64_t R, std::int64_t C) {
  const dtype t = P::type;
  const double bytes = double(R * C * size_of(t));
  job j(o);
  const auto x = j.tensor({R, C}, t), w = j.tensor({C}, t), b = j.tensor({C}, t), y = j.tensor({R, C}, t), dy = j.tensor({R, C}, t),
             addend = j.tensor({R, C}, t);
  const auto mean = j.tensor({R}, dtype::f32, 0, 0.1), rstd = j.tensor({R}, dtype::f32, 1, 2), dw = j.tensor({C}, dtype::f32),
             db = j.tensor({C}, dtype::f32);
  j.attr = op::layer_norm::constants{.epsilon = 1e-5};  // those of rms_norm, too
  j.takes({x, w, b}).gives({y, mean, rstd}).row<op::layer_norm, P>(sized("layer_norm", R, C), bytes, bytes, 0);
  j.takes({x, w, b, mean, rstd, dy}).gives({y, dw, db}).row<op::layer_norm_grad, P>(sized("layer_norm_grad", R, C), 2 * bytes, bytes, 0);
  j.takes({x, w, b, mean, rstd, dy, addend})
      .gives({y, dw, db})
      .row<op::layer_norm_grad, P>(sized("layer_norm_grad + addend", R, C), 3 * bytes, bytes, 0);
  j.takes({x, w}).gives({y, rstd}).row<op::rms_norm, P>(sized("rms_norm", R, C), bytes, bytes, 0);
  j.takes({x, w, rstd, dy}).gives({y, dw}).row<op::rms_norm_grad, P>(sized("rms_norm_grad", R, C), 2 * bytes, bytes, 0);
}
template <class P> void classes(const options& o, std::int64_t R, std::int64_t N, std::int64_t V) {
  const dtype t = P::type;
  const double bytes = double(R * N * size_of(t));
  job j(o);
  const auto x = j.tensor({R, N}, t, -4, 4), targets = j.tensor({R}, dtype::i32, 0, double(V)), top = j.tensor({R}, dtype::f32, 4, 4),
             sum = j.tensor({R}, dtype::f32, 80, 90);
  const auto loss = j.tensor({}, dtype::f32), one = j.tensor({}, dtype::f32, 1, 1);
  j.attr = op::cross_entropy::constants{.classes = V};
  const auto n = double(R * V);
  j.takes({x, targets}).gives({loss, top, sum}).row<op::cross_entropy, P>(sized("cross_entropy", R, N), bytes, 0, n);
  const auto dx = j.tensor({R, N}, t);
  j.takes({x, targets, top, sum, one}).gives({dx}).row<op::cross_entropy_grad, P>(sized("cross_entropy_grad", R, N), bytes, bytes, n);
}
template <class P> void softmaxes(const options& o, std::int64_t R, std::int64_t N) {
  const dtype t = P::type;
  const double bytes = double(R * N * size_of(t));
  job j(o);
  const auto x = j.tensor({R, N}, t, -4, 0), y = j.tensor({R, N}, t), dy = j.tensor({R, N}, t);
  j.attr = op::softmax::constants{.axis = 1};
  const auto n = double(R * N);
  j.takes({x}).gives({y}).row<op::softmax, P>(sized("softmax", R, N), bytes, bytes, n);
  j.row<op::log_softmax, P>(sized("log_softmax", R, N), bytes, bytes, n);
  j.takes({x, dy}).row<op::softmax_grad, P>(sized("softmax_grad", R, N), 2 * bytes, bytes, 0);
  j.row<op::log_softmax_grad, P>(sized("log_softmax_grad", R, N), 2 * bytes, bytes, n);
}
template <class P> void sums(const options& o, std::int64_t R, std::int64_t C) {
  const double bytes = double(R * C * size_of(P::type));
  job j(o);
  const auto x = j.tensor({R, C}, P::type), down = j.tensor({C}, dtype::f32), along = j.tensor({R}, dtype::f32);
  j.attr = op::sum::constants{.axes = 1, .format = dtype::f32};
  j.takes({x}).gives({down}).template row<op::sum, P>(sized("sum of rows", R, C), bytes, double(C) * 4, 0);
  j.attr = op::sum::constants{.axes = 2, .format = dtype::f32};
  j.gives({along}).template row<op::sum, P>(sized("sum of columns", R, C), bytes, double(R) * 4, 0);
}
template <class P> void elements(const options& o) {
  constexpr std::int64_t n = 1 << 16;
  const dtype t = P::type;
  job j(o);
  const auto x = j.tensor({n}, t, 0.1, 6), signs = j.tensor({n}, t, -6, 6), c = j.tensor({n}, dtype::boolean),
             b = j.tensor({n}, dtype::boolean);
  const auto y = j.tensor({n}, t);
  j.takes({signs}).gives({y});
  j.element_row<op::scale, P>(0);
  j.element_row<op::shift, P>(0);
  j.element_row<op::square, P>(0);
  j.element_row<op::relu, P>(0);
  j.element_row<op::exp, P>(1);
  j.element_row<op::tanh, P>(1);
  j.element_row<op::sigmoid, P>(1);
  j.element_row<op::silu, P>(1);
  j.element_row<op::gelu_tanh, P>(1);
  j.element_row<op::gelu_erf, P>(1);
  j.takes({x});
  j.element_row<op::sqrt, P>(0);
  j.element_row<op::log, P>(0);
  j.takes({signs, x});
  j.element_row<op::add, P>(0);
  j.element_row<op::mul, P>(0);
  j.element_row<op::div, P>(0);
  j.element_row<op::relu_grad, P>(0);
  j.element_row<op::tanh_grad, P>(0);
  j.element_row<op::sigmoid_grad, P>(0);
  j.element_row<op::silu_grad, P>(1);
  j.element_row<op::gelu_tanh_grad, P>(1);
  j.element_row<op::gelu_erf_grad, P>(1);
  j.takes({x, signs});
  j.element_row<op::sqrt_grad, P>(0);
  j.takes({c, x, signs});
  j.element_row<op::select, P>(0);
  j.takes({x, signs}).gives({b});
  j.element_row<op::less, P>(0);
}
template <class P> void all(const options& o) {
  for (const auto& [R, C] : {std::pair<std::int64_t, std::int64_t>{768, 128}, {256, 768}}) norms<P>(o, R, C);
  classes<P>(o, 768, 65, 65);
  classes<P>(o, 256, 50304, 50257);
  softmaxes<P>(o, 768, 65);
  softmaxes<P>(o, 256, 1024);
  for (const auto& [R, C] : {std::pair<std::int64_t, std::int64_t>{768, 128}, {768, 512}, {256, 768}, {256, 3072}}) sums<P>(o, R, C);
  elements<P>(o);
}
}  // namespace

int main(int argc, char** argv) {
  options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--only") o.only = argv[i + 1];
    else if (flag == "--rounds") o.rounds = std::atoi(argv[i + 1]);
    else return std::printf("unknown flag %s\n", argv[i]), 1;
  }
  std::printf("%-32s %-4s %10s %10s %14s  %-5s %10s %6s\n", "kernel", "", "portable", "native", "ratio (best)", "bound", "us", "share");
  all<f32>(o);
  all<bf16>(o);
}
