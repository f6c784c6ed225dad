/// Matrix products of the vulkan backend by the device's own clock, each checked at 1024 places against f64.
///
///   bench_vulkan_matmul [--device NAME] [--tier native|portable] [--type bf16|f16|f32] [--parts N] [--only TEXT] [--times N]
///                       [--sweep] [MxNxK[:nn|nt|tn|tt][:f32]]...
///
/// Without shapes: squares and the products of a GPT-2 124M step at 32768 tokens. The first letter is t where lines of A run across K, the second
/// where those of B run along K; a trailing f32 makes the result f32, as for weight gradients. Medians of --times runs (20) after 300 ms of warm-up.
/// --sweep: every tile of matmul_khr_tile that the device runs, and for f32 of matmul_tile, without shapes on all of that step's.
#include <isotope/backend/vulkan/constant_pool.hpp>
#include <isotope/backend/vulkan/tensor_limit.hpp>
#include <isotope/backend/vulkan/transfer.hpp>
#include <isotope/core/philox.hpp>
#include <isotope/kernels/vulkan/native/matmul.hpp>
#include <isotope/plan/kernels.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using namespace isotope;

struct shape_case {
  std::int64_t M = 0, N = 0, K = 0;
  bool a_cross = false, b_cross = true;  // lines run across K
  bool wide_result = false;
  std::string name;
};
shape_case parse(const std::string& text) {
  shape_case c;
  c.name = text;
  const char* p = text.c_str();
  char* end = nullptr;
  for (std::int64_t* n : {&c.M, &c.N, &c.K}) {
    *n = std::strtoll(p, &end, 10);
    p = *end == 'x' ? end + 1 : end;
  }
  c.a_cross = text.find(":t") != text.npos;
  c.b_cross = text.find(":nt") == text.npos && text.find(":tt") == text.npos;
  c.wide_result = text.find(":f32") != text.npos;
  return c;
}

/// Numbers in [-1, 1) that repeat with a period that no row length meets.
class numbers {
 public:
  static constexpr std::int64_t period = 2 * 1048583;  // a prime, even for copies of whole words
  numbers(dtype t, std::uint64_t seed) : type_(t), bytes_(std::size_t(period * size_of(t))) {
    for (std::int64_t i = 0; i < period; ++i) {
      const float x = 2 * unit_interval(philox(seed, std::uint64_t(i), 0, 0)[0]) - 1;
      if (t == dtype::f32) put(i, x);
      else if (t == dtype::bf16) put(i, bfloat16(x));
      else put(i, float16(x));
    }
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  double at(std::int64_t i) const { return value(type_, bytes_.data() + i % period * size_of(type_)); }
  static double value(dtype t, const std::byte* from) {
    const auto get = [&](auto x) {
      std::memcpy(&x, from, sizeof x);
      return double(float(x));
    };
    return t == dtype::f32 ? get(0.0f) : t == dtype::bf16 ? get(bfloat16{}) : get(float16{});
  }

 private:
  dtype type_;
  std::vector<std::byte> bytes_;
  template <class E> void put(std::int64_t i, E x) { std::memcpy(bytes_.data() + i * std::int64_t(sizeof x), &x, sizeof x); }
};

[[noreturn]] void stop(const failure& f) {
  std::printf("%s\n", f.line().c_str());
  std::exit(1);
}
template <class T> T must(result<T> r) {
  if (!r) stop(r.error());
  return std::move(*r);
}
void must(result<void> r) {
  if (!r) stop(r.error());
}

class program {
 public:
  explicit program(const device_options& o) {
    context_ = must(vulkan::context::open(o));
    made_ = std::make_shared<vulkan::pipelines>(context_);
    pool_ = must(vulkan::command_pool::create(context_));
    mover_ = must(vulkan::transfer::create(pool_));
    const_pool_ = std::make_unique<vulkan::constant_pool>(context_);
    commands_ = must(pool_.buffer());
    const auto& d = context_->physical();
    std::printf("%s, %u multiprocessors, subgroups of %u, %u bytes of shared memory\n", d.name.c_str(), d.limits.multiprocessors,
                d.limits.subgroup, d.limits.shared_bytes);
    for (const auto& m : d.limits.matrices) std::printf("  matrices %s %ux%ux%u\n", std::string(name_of(m.type)).c_str(), m.m, m.n, m.k);
  }

  int times = 20;
  std::uint32_t parts = 0;

  /// `tile`: of the native product, other than the backend's choice.
  template <class K, class T = vulkan::matmul_tile> void row(const shape_case& c, dtype t, const T* tile = nullptr) {
    const dtype out = c.wide_result ? dtype::f32 : t;
    const shape a_dims{c.M, c.K}, b_dims{c.K, c.N}, y_dims{c.M, c.N};
    const auto view = [](const shape& s, bool transposed, dtype type) {
      vulkan::view v{0, s.count() * size_of(type), s, dense_strides(s), type};
      if (transposed) v.strides[0] = 1, v.strides[1] = s[0];
      return v;
    };
    vulkan::view in[] = {view(a_dims, c.a_cross, t), view(b_dims, !c.b_cross, t)}, to[] = {view(y_dims, false, out)};
    if (auto small = vulkan::indexable("matmul", in, to); !small) {
      std::printf("%-28s %-4s %s\n", c.name.c_str(), std::string(name_of(t)).c_str(), small.error().line().c_str());
      return;
    }
    auto a = filled(t, 1, c.M * c.K), b = filled(t, 2, c.K * c.N);
    auto y = must(vulkan::memory::allocate(context_, c.M * c.N * size_of(out), isotope::memory_use::device, "y"));
    const attributes attr = op::matmul::constants{.format = out, .operands = 2};
    const shape in_dims[] = {a_dims, b_dims}, out_dims[] = {y_dims};
    const std::int64_t scratch_bytes = K::scratch({in_dims, out_dims, &attr});
    auto scratch = must(vulkan::memory::allocate(context_, scratch_bytes, isotope::memory_use::device, "scratch"));
    in[0].at = a.address();
    in[1].at = b.address();
    to[0].at = y.address();
    vulkan::device_limits limits = context_->physical().limits;
    limits.switches.split_k = parts;
    vulkan::launch l;
    l.in = in;
    l.out = to;
    l.attr = &attr;
    l.scratch = scratch.address();
    l.scratch_bytes = scratch_bytes;
    l.device = &limits;
    vulkan::recording r(*const_pool_, *made_);
    vulkan::enter_set(r, kernel_traits<K>::set::name);
    if constexpr (requires { K::record_as(l, r, *tile, 0); }) {
      if (tile != nullptr && !K::record_as(l, r, *tile, parts)) return;
    }
    if (tile == nullptr) K::record(l, r);
    const auto start = std::chrono::steady_clock::now();
    must(made_->make(r.dispatches));
    const double compile = milliseconds_since(start);
    const double usec = median(r.dispatches);
    const auto& d = r.dispatches[0];
    std::uint32_t splits = r.dispatches.size() > 1 ? d.count.z : 1;
    const auto chosen = tile == nullptr ? std::string(d.code->name) : name(*tile);
    std::printf("%-28s %-4s %-8s %-22s parts %2u  %10.2f us %8.2f TFLOP/s  %s  pipelines %4.0f ms%s%s\n", c.name.c_str(),
                std::string(name_of(t)).c_str(), std::string(d.set).c_str(), chosen.c_str(), splits, usec,
                2e-6 * double(c.M) * double(c.N) * double(c.K) / usec, check(c, t, out, y).c_str(), compile, d.reason.empty() ? "" : "  ",
                std::string(d.reason).c_str());
    std::fflush(stdout);
  }

 private:
  std::shared_ptr<vulkan::context> context_;
  std::shared_ptr<vulkan::pipelines> made_;
  vulkan::command_pool pool_;
  vulkan::transfer mover_;
  std::unique_ptr<vulkan::constant_pool> const_pool_;
  VkCommandBuffer commands_ = nullptr;

  static std::string name(const vulkan::matmul_khr_tile& t) {
    return std::to_string(t.m) + "x" + std::to_string(t.n) + "x" + std::to_string(t.slab) + ":" + std::to_string(t.teams_m) + "x" +
           std::to_string(t.teams_n);
  }
  static std::string name(const vulkan::matmul_tile& t) {
    return std::to_string(t.size) + "x" + std::to_string(t.size) + "x" + std::to_string(t.slab) + ":" + std::to_string(t.teams);
  }
  static double milliseconds_since(std::chrono::steady_clock::time_point t) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
  }
  static const numbers& source(dtype t, std::uint64_t seed) {
    static std::vector<std::pair<std::pair<dtype, std::uint64_t>, std::unique_ptr<numbers>>> known;
    for (const auto& [k, n] : known)
      if (k == std::pair(t, seed)) return *n;
    known.emplace_back(std::pair(t, seed), std::make_unique<numbers>(t, seed));
    return *known.back().second;
  }
  vulkan::memory filled(dtype t, std::uint64_t seed, std::int64_t elements) {
    const auto bytes = source(t, seed).bytes();
    const std::int64_t one = std::int64_t(bytes.size()), all = elements * size_of(t);
    auto m = must(vulkan::memory::allocate(context_, (all + one - 1) / one * one, isotope::memory_use::device, "operand"));
    must(mover_.upload(m, 0, bytes));
    submit([&](VkCommandBuffer c) {
      for (std::int64_t at = one; at < m.bytes(); at += one) {
        const VkBufferCopy part{0, VkDeviceSize(at), VkDeviceSize(one)};
        context_->f().CmdCopyBuffer(c, m.buffer(), m.buffer(), 1, &part);
      }
    });
    return m;
  }
  template <class F> void submit(F f) {
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0, nullptr};
    context_->f().BeginCommandBuffer(commands_, &begin);
    constexpr auto all = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    constexpr auto any = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT;
    vulkan::barrier(*context_, commands_, all, any, all, any);
    f(commands_);
    vulkan::barrier(*context_, commands_, all, any, all, any);
    context_->f().EndCommandBuffer(commands_);
    must(context_->wait(must(context_->submit(commands_))));
  }
  /// Microseconds from the start of a product's first dispatch to the end of its last.
  double median(const std::vector<vulkan::dispatch>& one) {
    std::vector<vulkan::dispatch> all;
    for (int i = 0; i < times; ++i) all.insert(all.end(), one.begin(), one.end());
    const auto before = isotope::plan_barriers(all);
    const VkQueryPoolCreateInfo info{
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, std::uint32_t(2 * all.size()), 0};
    VkQueryPool queries = VK_NULL_HANDLE;
    if (const auto s = context_->f().CreateQueryPool(context_->handle(), &info, nullptr, &queries); s != VK_SUCCESS)
      stop(vulkan::failed(s, "timestamps"));
    must(vulkan::record_commands(*context_, *made_, commands_, all, before, {queries}));
    std::vector<std::uint64_t> ticks(2 * all.size());
    const auto start = std::chrono::steady_clock::now();
    do must(context_->wait(must(context_->submit(commands_))));
    while (milliseconds_since(start) < 300);
    must(context_->wait(must(context_->submit(commands_))));
    context_->f().GetQueryPoolResults(context_->handle(), queries, 0, std::uint32_t(ticks.size()), ticks.size() * 8, ticks.data(), 8,
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    context_->f().DestroyQueryPool(context_->handle(), queries, nullptr);
    std::vector<double> usec;
    for (std::size_t i = 0; i < std::size_t(times); ++i)
      usec.push_back(double(ticks[2 * (i + 1) * one.size() - 1] - ticks[2 * i * one.size()]) *
                     double(context_->physical().properties.limits.timestampPeriod) * 1e-3);
    std::sort(usec.begin(), usec.end());
    return usec[usec.size() / 2];
  }
  /// The worst error of 1024 elements as a part of its bound (K additions in f32, one rounding of the result), and their mean error towards larger
  /// magnitudes in units of the result's roundoff: rounding to nearest gives 0, truncation -1.
  std::string check(const shape_case& c, dtype t, dtype out, const vulkan::memory& y) {
    const numbers &a = source(t, 1), &b = source(t, 2);
    const double roundoff = out == dtype::f32 ? 0x1p-24 : out == dtype::bf16 ? 0x1p-8 : 0x1p-11;
    double worst = 0, bias = 0;
    for (int i = 0; i < 1024; ++i) {
      const auto u = philox(7, std::uint64_t(i), 0, 0);
      const std::int64_t m = i < 4 ? (i % 2) * (c.M - 1) : std::int64_t(u[0]) % c.M,
                         n = i < 4 ? (i / 2) * (c.N - 1) : std::int64_t(u[1]) % c.N;
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < c.K; ++k) {
        const double x = a.at(c.a_cross ? k * c.M + m : m * c.K + k) * b.at(c.b_cross ? k * c.N + n : n * c.K + k);
        sum += x;
        size += std::fabs(x);
      }
      std::byte raw[4];
      must(mover_.download(y, (m * c.N + n) * size_of(out), std::span(raw).first(std::size_t(size_of(out)))));
      const double got = numbers::value(out, raw), error = got - sum;
      const double part = std::fabs(error) / (2 * double(c.K + 2) * 0x1p-24 * size + 1.01 * roundoff * std::fabs(sum));
      if (!(part <= worst)) worst = part;
      if (!(worst <= 1)) break;  // the comparison would forget NaN
      bias += (sum < 0 ? -error : error) / (roundoff * std::fabs(sum)) / 1024;
    }
    char text[96];
    std::snprintf(text, sizeof text, "%s error %.3f of its bound, bias %+.2f", worst <= 1 ? "right" : "WRONG", worst, bias);
    return text;
  }
};

}  // namespace

int main(int argc, char** argv) {
  device_options o;
  std::string tier, type, only;
  int times = 20;
  std::uint32_t parts = 0;
  bool sweep = false;
  std::vector<shape_case> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string s = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (s == "--device") o.name = value();
    else if (s == "--tier") tier = value();
    else if (s == "--type") type = value();
    else if (s == "--only") only = value();
    else if (s == "--times") times = std::max(1, std::atoi(value().c_str()));
    else if (s == "--sweep") sweep = true;
    else if (s == "--parts") parts = std::uint32_t(std::atoi(value().c_str()));
    else cases.push_back(parse(s));
  }
  if (cases.empty() && sweep)
    for (const char* s :
         {"32768x3072x768:nt", "32768x2304x768:nt", "32768x768x768:nt", "32768x768x3072:nt", "32768x50304x768:nt", "32768x50257x768:nt",
          "32768x768x2304:nn", "32768x768x768:nn", "32768x768x3072:nn", "32768x3072x768:nn", "32768x768x50304:nn", "32768x768x50257:nn",
          "2304x768x32768:tn:f32", "768x768x32768:tn:f32", "3072x768x32768:tn:f32", "768x3072x32768:tn:f32", "50304x768x32768:tn:f32",
          "50257x768x32768:tn:f32", "8192x8192x8192:nt"})
      cases.push_back(parse(s));
  if (cases.empty())
    for (const char* s :
         {"1024x1024x1024:nn",  "2048x2048x2048:nn",  "4096x4096x4096:nn",      "8192x8192x8192:nn",     "8192x8192x8192:nt",
          "8192x8192x8192:tn",  "32768x3072x768:nt",  "32768x768x3072:nt",      "32768x2304x768:nt",     "32768x768x768:nt",
          "32768x768x2304:nn",  "32768x3072x768:nn",  "2304x768x32768:tn:f32",  "3072x768x32768:tn:f32", "768x768x32768:tn:f32",
          "32768x50257x768:nt", "32768x768x50257:nn", "50257x768x32768:tn:f32", "1x50257x768:nt",        "1x2304x768:nt",
          "8x3072x768:nt"})
      cases.push_back(parse(s));
  program p(o);
  p.times = times;
  p.parts = parts;
  for (const dtype t : {dtype::bf16, dtype::f16, dtype::f32}) {
    if (type.empty() ? t == dtype::f16 : name_of(t) != type) continue;
    for (const auto& c : cases) {
      if (c.name.find(only) == c.name.npos) continue;
      if (tier != "portable" && t != dtype::f32) p.row<vulkan::kernel<op::matmul, precision::f32, kernels::native>>(c, t);
      if (sweep && t != dtype::f32)
        for (const auto& tile : vulkan::matmul_khr_tile::all)
          if (!tile.light) p.row<vulkan::kernel<op::matmul, precision::f32, kernels::native>>(c, t, &tile);
      if (tier != "native" && (t == dtype::f32 || tier == "portable")) {
        p.row<vulkan::kernel<op::matmul, precision::f32, kernels::portable>>(c, t);
        if (sweep)
          for (const auto& tile : vulkan::matmul_tile::all)
            p.row<vulkan::kernel<op::matmul, precision::f32, kernels::portable>>(c, t, &tile);
      }
    }
  }
  return 0;
}
