/// Attention of the vulkan backend by the device's own clock, forward and backward, with two heads checked against f64.
///
///   bench_vulkan_attention [--device NAME] [--type bf16|f16|f32] [--portable] [--full] [--dropout P] [--sweep] [--times N]
///     [BATCHxHEADSxLENGTHxWIDTH]...
///
/// Without shapes: 32x12x1024x64 and 4x12x1024x64, packed as the model has them, causal unless --full. Medians of --times runs (20) after 300 ms of
/// warm-up; TFLOP/s count the products that a causal triangle needs, 2 forward and 5 backward. --sweep times other tiles: of the matrix kernels
/// subgroups x strips of each x rows of a tile in units of the matrix side, of the portable ones, with --portable and for f32, queries and keys.
#include <isotope/backend/vulkan/constant_pool.hpp>
#include <isotope/backend/vulkan/launch_times.hpp>
#include <isotope/backend/vulkan/tensor_limit.hpp>
#include <isotope/backend/vulkan/transfer.hpp>
#include <isotope/core/philox.hpp>
#include <isotope/kernels/vulkan/native/attention.hpp>
#include <isotope/kernels/vulkan/native/attention_grad.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using namespace isotope;

[[noreturn]] void stop(const failure& f) {
  std::printf("%s\n", f.line().c_str());
  std::exit(1);
}
template <class T> T must(result<T> r) {
  if (!r) stop(r.error());
  return *std::move(r);
}
void must(result<void> r) {
  if (!r) stop(r.error());
}

/// Elements in the format of the operands.
class numbers {
 public:
  explicit numbers(dtype t, std::int64_t n) : type_(t), bytes_(std::size_t(n * size_of(t))) {}
  /// Evenly over [-1.5, 1.5), repeated with a period that no row length meets: scores spread by about 0.75.
  void fill(std::uint64_t seed) {
    constexpr std::int64_t period = 1048583;
    const auto n = std::int64_t(bytes_.size()) / size_of(type_);
    for (std::int64_t i = 0; i < n; ++i) {
      if (i >= period) put(i, at(i - period));
      else put(i, 3 * double(unit_interval(philox(seed, std::uint64_t(i), 0, 0)[0])) - 1.5);
    }
  }
  double at(std::int64_t i) const {
    const auto get = [&](auto x) {
      std::memcpy(&x, bytes_.data() + i * std::int64_t(sizeof x), sizeof x);
      return double(float(x));
    };
    return type_ == dtype::f32 ? get(0.0f) : type_ == dtype::bf16 ? get(bfloat16{}) : get(float16{});
  }
  std::span<std::byte> bytes() { return bytes_; }

 private:
  dtype type_;
  std::vector<std::byte> bytes_;
  void put(std::int64_t i, double x) {
    const auto to = [&](auto y) { std::memcpy(bytes_.data() + i * std::int64_t(sizeof y), &y, sizeof y); };
    if (type_ == dtype::f32) to(float(x));
    else if (type_ == dtype::bf16) to(bfloat16(float(x)));
    else to(float16(float(x)));
  }
};

struct sizes {
  std::int64_t B = 32, H = 12, S = 1024, D = 64;
};

/// Square error relative to the square of what is expected.
struct square_error {
  double error = 0, size = 0;
  void add(double got, double expected) {
    error += (got - expected) * (got - expected);
    size += expected * expected;
  }
};

class program {
 public:
  int times = 20;
  double dropout = 0;
  bool causal = true, portable = false;
  dtype type = dtype::bf16;

  explicit program(const device_options& o) {
    context_ = must(vulkan::context::open(o));
    made_ = std::make_shared<vulkan::pipelines>(context_);
    pool_ = must(vulkan::command_pool::create(context_));
    mover_ = must(vulkan::transfer::create(pool_));
    const_pool_ = std::make_unique<vulkan::constant_pool>(context_);
    const auto& d = context_->physical();
    std::printf("%s, %u multiprocessors, subgroups of %u, %u bytes of shared memory\n", d.name.c_str(), d.limits.multiprocessors,
                d.limits.subgroup, d.limits.shared_bytes);
  }

  /// Operands and results of one step, and its launches.
  struct problem {
    sizes z;
    numbers qkv, dy;
    vulkan::memory qkv_on, dy_on, y_on, lse_on, dqkv_on, scratch, scalars_on;
    attributes attr;
    std::vector<vulkan::view> forward_in, forward_out, backward_in, backward_out;
    vulkan::launch forward, backward;

    problem(const sizes& s, dtype t) : z(s), qkv(t, z.B * z.S * 3 * z.H * z.D), dy(t, z.B * z.S * z.H * z.D) {}
  };
  void set(problem& p) {
    const auto& [B, H, S, D] = p.z;
    const shape packed{B, S, 3 * H * D}, rows{B, S, H * D}, heads{B, H, S};
    p.qkv.fill(1);
    p.dy.fill(2);
    const auto put = [&](vulkan::memory& m, std::int64_t bytes, std::span<std::byte> from) {
      m = must(vulkan::memory::allocate(context_, bytes, isotope::memory_use::device, "operand"));
      if (!from.empty()) must(mover_.upload(m, 0, from));
    };
    put(p.qkv_on, packed.count() * size_of(type), p.qkv.bytes());
    put(p.dy_on, rows.count() * size_of(type), p.dy.bytes());
    put(p.y_on, rows.count() * size_of(type), {});
    put(p.lse_on, heads.count() * 4, {});
    put(p.dqkv_on, packed.count() * size_of(type), {});
    p.attr = op::attention::constants{
        .heads = H, .kv_heads = H, .causal = causal, .packed = true, .scale = 1 / std::sqrt(double(D)), .dropout = dropout};
    auto scalars = vulkan::device_scalars::of({}, 1);
    put(p.scalars_on, sizeof scalars, std::as_writable_bytes(std::span(&scalars, 1)));
    const auto view = [](const vulkan::memory& m, const shape& s, dtype t) {
      return vulkan::view{m.address(), s.count() * size_of(t), s, dense_strides(s), t};
    };
    p.forward_in = {view(p.qkv_on, packed, type)};
    p.forward_out = {view(p.y_on, rows, type), view(p.lse_on, heads, dtype::f32)};
    p.backward_in = {p.forward_in[0], p.forward_out[0], p.forward_out[1], view(p.dy_on, rows, type)};
    p.backward_out = {view(p.dqkv_on, packed, type)};
    const shape in_dims[] = {packed, rows, heads, rows}, out_dims[] = {packed};
    const auto scratch_bytes = vulkan::kernel<op::attention_grad, precision::bf16, kernels::native>::scratch({in_dims, out_dims, &p.attr});
    put(p.scratch, scratch_bytes, {});
    const auto launch = [&](const std::vector<vulkan::view>& in, const std::vector<vulkan::view>& out) {
      vulkan::launch l;
      l.in = in;
      l.out = out;
      l.attr = &p.attr;
      l.scratch = p.scratch.address();
      l.scratch_bytes = scratch_bytes;
      l.scalars = p.scalars_on.address();
      l.device = &context_->physical().limits;
      return l;
    };
    p.forward = launch(p.forward_in, p.forward_out);
    p.backward = launch(p.backward_in, p.backward_out);
  }

  void row(const sizes& z) {
    problem p(z, type);
    set(p);
    using P = precision::bf16;
    const auto forward = recorded([&](vulkan::recording& r) { record<op::attention, P>(p.forward, r); });
    const auto backward = recorded([&](vulkan::recording& r) { record<op::attention_grad, P>(p.backward, r); });
    const double product = 2 * double(z.B * z.H) * double(z.S) * double(z.S) * double(z.D) * (causal ? 0.5 : 1);
    std::printf("%lldx%lldx%lldx%lld %s %s\n", (long long)z.B, (long long)z.H, (long long)z.S, (long long)z.D,
                std::string(name_of(type)).c_str(), causal ? "causal" : "full");
    show("forward", forward, 2 * product);
    const std::string right = check_forward(p);
    show("backward", backward, 5 * product);
    std::printf("  square errors of two heads, at most 1.5e-5 in bf16: %s %s\n", right.c_str(), check_backward(p).c_str());
    std::fflush(stdout);
  }

  void sweep(const sizes& z) {
    problem p(z, type);
    set(p);
    const auto f = vulkan::attention_heads::forward(p.forward), b = vulkan::attention_heads::gradient(p.backward);
    const std::int64_t side = portable ? 0 : vulkan::matrix_side(context_->physical().limits, type);
    const auto row_of = [&](const char* what, const std::string& tiles, auto add) {
      std::printf("  %-8s %s: %9.1f us\n", what, tiles.c_str(), usec(recorded(add)));
      std::fflush(stdout);
    };
    if (side == 0)
      for (const auto& t : vulkan::attention_tile_choices) {
        using grad = vulkan::attention_grad_portable;
        if (!t.fit(f, p.forward)) continue;
        const auto name = std::to_string(t.queries) + " queries, " + std::to_string(t.keys) + " keys";
        row_of("forward", name, [&](vulkan::recording& r) { vulkan::attention_portable::record(f, t, p.forward, r); });
        row_of("keys", name, [&](vulkan::recording& r) { grad::record_keys(b, t, p.backward, r); });
        row_of("queries", name, [&](vulkan::recording& r) { grad::record_queries(b, t, p.backward, r); });
      }
    for (const std::int64_t subgroups : {2, 4, 8, 16})
      for (const std::int64_t strips : {1, 2})
        for (const std::int64_t columns : {2, 4, 8}) {
          using grad = vulkan::attention_grad_khr;
          const vulkan::attention_matrix_tiles t{subgroups, strips, columns * side, side};
          const auto fits = [&](std::int64_t crossings, std::int64_t row_values, std::int64_t column_values) {
            return side != 0 &&
                   t.shared_bytes(z.D, crossings, row_values, column_values) <= std::int64_t(context_->physical().limits.shared_bytes);
          };
          const auto name = std::to_string(subgroups) + "x" + std::to_string(strips) + "x" + std::to_string(columns);
          if (fits(1, 3, 1)) row_of("forward", name, [&](vulkan::recording& r) { vulkan::attention_khr::record(f, t, p.forward, r); });
          if (strips > 1) continue;
          if (fits(2, 1, 2)) row_of("keys", name, [&](vulkan::recording& r) { grad::record_keys(b, t, p.backward, r); });
          if (fits(1, 2, 1)) row_of("queries", name, [&](vulkan::recording& r) { grad::record_queries(b, t, p.backward, r); });
        }
  }

 private:
  std::shared_ptr<vulkan::context> context_;
  std::shared_ptr<vulkan::pipelines> made_;
  vulkan::command_pool pool_;
  vulkan::transfer mover_;
  std::unique_ptr<vulkan::constant_pool> const_pool_;

  template <class Op, class P> void record(const vulkan::launch& l, vulkan::recording& r) const {
    vulkan::enter_set(r, portable ? kernels::portable::name : kernels::native::name);
    if (portable) vulkan::kernel<Op, P, kernels::portable>::record(l, r);
    else vulkan::kernel<Op, P, kernels::native>::record(l, r);
  }
  template <class F> std::vector<vulkan::dispatch> recorded(F add) {
    vulkan::recording r(*const_pool_, *made_);
    add(r);
    return std::move(r.dispatches);
  }
  static double milliseconds_since(std::chrono::steady_clock::time_point t) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
  }
  /// Median microseconds of each dispatch.
  std::vector<double> times_of(const std::vector<vulkan::dispatch>& all) {
    must(made_->make(all));
    const auto before = isotope::plan_barriers(all);
    const auto start = std::chrono::steady_clock::now();
    do must(vulkan::time_launches(pool_, *made_, all, before));
    while (milliseconds_since(start) < 300);
    std::vector<std::vector<double>> usec(all.size());
    for (int i = 0; i < times; ++i) {
      const auto one = must(vulkan::time_launches(pool_, *made_, all, before));
      for (std::size_t k = 0; k < all.size(); ++k) usec[k].push_back(one[k].usec);
    }
    std::vector<double> medians;
    for (auto& u : usec) {
      std::sort(u.begin(), u.end());
      medians.push_back(u[u.size() / 2]);
    }
    return medians;
  }
  double usec(const std::vector<vulkan::dispatch>& all) {
    double sum = 0;
    for (const double t : times_of(all)) sum += t;
    return sum;
  }
  void show(const char* what, const std::vector<vulkan::dispatch>& all, double flops) {
    const auto start = std::chrono::steady_clock::now();
    must(made_->make(all));
    const double compile = milliseconds_since(start);
    const auto medians = times_of(all);
    double sum = 0;
    for (const double t : medians) sum += t;
    std::printf("  %-8s %8.3f ms %8.1f TFLOP/s, pipelines %.0f ms, %s%s%s\n", what, sum * 1e-3, flops / sum * 1e-6, compile,
                std::string(all[0].set).c_str(), all[0].reason.empty() ? "" : ": ", std::string(all[0].reason).c_str());
    for (std::size_t k = 0; k < all.size(); ++k)
      std::printf("    %8.3f ms %s\n", medians[k] * 1e-3, std::string(all[k].code->name).c_str());
  }

  /// The heads that are checked: the first, and the last of the last batch.
  struct head {
    std::vector<double> q, k, v, dy, y, dq, dk, dv;
  };
  /// What dropout multiplies a probability by: stream, step and seed are 0.
  static double share(const problem& p, std::int64_t row, std::size_t t) {
    const double drops = op::attention::constants::of(p.attr).dropout;
    if (drops == 0) return 1;
    const auto words = op::attention_shape::words(0, std::uint32_t(row), std::uint32_t(t / 4), 0, 0);
    return words[t % 4] > op::attention_shape::last_dropped(drops) ? 1 / (1 - drops) : 0;
  }
  head by_definition(const problem& p, std::int64_t b, std::int64_t h) const {
    const auto& [B, H, S, D] = p.z;
    const double scale = op::attention::constants::of(p.attr).scale;
    head x;
    for (auto* m : {&x.q, &x.k, &x.v, &x.dy, &x.y, &x.dq, &x.dk, &x.dv}) m->assign(std::size_t(S * D), 0);
    for (std::int64_t s = 0; s < S; ++s)
      for (std::int64_t d = 0; d < D; ++d) {
        const std::int64_t row = (b * S + s) * 3 * H * D + h * D + d;
        const auto i = std::size_t(s * D + d);
        x.q[i] = p.qkv.at(row);
        x.k[i] = p.qkv.at(row + H * D);
        x.v[i] = p.qkv.at(row + 2 * H * D);
        x.dy[i] = p.dy.at((b * S + s) * H * D + h * D + d);
      }
    const auto n = std::size_t(D);
    std::vector<double> w(std::size_t(S), 0), dp(w);
    for (std::size_t s = 0; s < std::size_t(S); ++s) {
      const std::size_t end = causal ? s + 1 : std::size_t(S);
      double top = -1e300, sum = 0, mean = 0;
      for (std::size_t t = 0; t < end; ++t) {
        w[t] = dp[t] = 0;
        for (std::size_t d = 0; d < n; ++d) {
          w[t] += scale * x.q[s * n + d] * x.k[t * n + d];
          dp[t] += x.dy[s * n + d] * x.v[t * n + d];
        }
        top = std::max(top, w[t]);
      }
      for (std::size_t t = 0; t < end; ++t) sum += w[t] = std::exp(w[t] - top);
      for (std::size_t t = 0; t < end; ++t) mean += (w[t] /= sum) * (dp[t] *= share(p, (b * H + h) * S + std::int64_t(s), t));
      for (std::size_t t = 0; t < end; ++t) {
        const double ds = scale * w[t] * (dp[t] - mean), left = w[t] * share(p, (b * H + h) * S + std::int64_t(s), t);
        for (std::size_t d = 0; d < n; ++d) {
          x.y[s * n + d] += left * x.v[t * n + d];
          x.dv[t * n + d] += left * x.dy[s * n + d];
          x.dq[s * n + d] += ds * x.k[t * n + d];
          x.dk[t * n + d] += ds * x.q[s * n + d];
        }
      }
    }
    return x;
  }
  numbers read(const vulkan::memory& m, std::int64_t elements) {
    numbers x(type, elements);
    must(mover_.download(m, 0, x.bytes()));
    return x;
  }
  static std::string text(const char* name, const square_error& e) {
    char t[64];
    std::snprintf(t, sizeof t, "%s %.2g", name, e.error / e.size);
    return t;
  }
  template <class F> void each_head(const problem& p, F f) const {
    for (const auto& [b, h] : {std::pair<std::int64_t, std::int64_t>(0, 0), std::pair(p.z.B - 1, p.z.H - 1)})
      f(by_definition(p, b, h), b, h);
  }
  std::string check_forward(const problem& p) {
    const auto& [B, H, S, D] = p.z;
    const numbers y = read(p.y_on, B * S * H * D);
    square_error e;
    each_head(p, [&](const head& x, std::int64_t b, std::int64_t h) {
      for (std::int64_t s = 0; s < p.z.S; ++s)
        for (std::int64_t d = 0; d < p.z.D; ++d) e.add(y.at(((b * p.z.S + s) * p.z.H + h) * p.z.D + d), x.y[std::size_t(s * p.z.D + d)]);
    });
    return text("y", e);
  }
  std::string check_backward(const problem& p) {
    const numbers dx = read(p.dqkv_on, p.z.B * p.z.S * 3 * p.z.H * p.z.D);
    square_error e[3];
    each_head(p, [&](const head& x, std::int64_t b, std::int64_t h) {
      const std::vector<double>* parts[] = {&x.dq, &x.dk, &x.dv};
      for (std::int64_t s = 0; s < p.z.S; ++s)
        for (std::int64_t part = 0; part < 3; ++part)
          for (std::int64_t d = 0; d < p.z.D; ++d)
            e[part].add(dx.at((((b * p.z.S + s) * 3 + part) * p.z.H + h) * p.z.D + d), (*parts[part])[std::size_t(s * p.z.D + d)]);
    });
    return text("dq", e[0]) + " " + text("dk", e[1]) + " " + text("dv", e[2]);
  }
};

sizes parse(const std::string& s) {
  sizes z;
  const char* p = s.c_str();
  char* end = nullptr;
  for (std::int64_t* n : {&z.B, &z.H, &z.S, &z.D}) {
    *n = std::strtoll(p, &end, 10);
    p = *end == 'x' ? end + 1 : end;
  }
  return z;
}

}  // namespace

int main(int argc, char** argv) {
  device_options o;
  std::vector<sizes> all;
  dtype type = dtype::bf16;
  bool causal = true, portable = false, sweep = false;
  double dropout = 0;
  int times = 20;
  for (int i = 1; i < argc; ++i) {
    const std::string s = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (s == "--device") o.name = value();
    else if (s == "--times") times = std::max(1, std::atoi(value().c_str()));
    else if (s == "--full") causal = false;
    else if (s == "--dropout") dropout = std::atof(value().c_str());
    else if (s == "--portable") portable = true;
    else if (s == "--sweep") sweep = true;
    else if (s == "--type") {
      const auto t = value();
      type = t == "f32" ? dtype::f32 : t == "f16" ? dtype::f16 : dtype::bf16;
    } else all.push_back(parse(s));
  }
  if (all.empty()) all = {parse("32x12x1024x64"), parse("4x12x1024x64")};
  for (const auto& z : all) must(vulkan::indexable("attention", shape{z.B, z.S, 3 * z.H * z.D}, type));
  program p(o);
  p.times = times;
  p.causal = causal;
  p.dropout = dropout;
  p.portable = portable;
  p.type = type;
  for (const auto& z : all) sweep ? p.sweep(z) : p.row(z);
  return 0;
}
