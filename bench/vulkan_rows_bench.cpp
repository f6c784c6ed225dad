/// Kernels of the vulkan backend that are bound by bytes, by the device's own clock, beside a copy of the same bytes.
///
///   bench_vulkan_rows [--device NAME] [--type f32|bf16] [--only TEXT] [--tokens N] [--times N] [--detail]
///
/// Sizes of a GPT-2 124M step: 32768 tokens (--tokens), width 768, 50304 logits, 124 million parameters. Bytes are those that the definition of
/// the op must read and write once. Medians of --times runs (20) after 300 ms of warm-up; --detail lists the dispatches.
#include <isotope/backend/vulkan.hpp>
#include <isotope/backend/vulkan/transfer.hpp>
#include <isotope/core/philox.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace {

using namespace isotope;

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

/// What fills an operand: numbers in [-1, 1), or whole numbers by index.
using numbers = std::function<double(std::int64_t)>;
struct operand {
  shape dims;
  dtype type = dtype::f32;
  numbers fill{};
  extents strides{};  // none: dense
};
struct job {
  std::vector<operand> in, out;
  std::vector<int> over{};  // of output k: the input whose bytes it takes, or -1
  attributes attr{};
  double bytes = 0;
};

class program {
 public:
  int times = 20;
  bool detail = false;
  std::string only;

  explicit program(const device_options& o) {
    context_ = must(vulkan::context::open(o));
    made_ = std::make_shared<vulkan::pipelines>(context_);
    pool_ = must(vulkan::command_pool::create(context_));
    mover_ = must(vulkan::transfer::create(pool_));
    const_pool_ = std::make_unique<vulkan::constant_pool>(context_);
    commands_ = must(pool_.buffer());
    scalars_ = must(vulkan::memory::allocate(context_, sizeof(vulkan::device_scalars), isotope::memory_use::upload, "scalars"));
    vulkan::device_scalars s;
    s.given.clip_norm = s.given.clip_value = 1e-3f;  // clips always
    s.given.weight_decay = 0.1f;
    s.correction1 = s.correction2 = 0.5f;
    std::memcpy(scalars_.mapped(), &s, sizeof s);
    const auto& d = context_->physical();
    std::printf("%s, %u multiprocessors, subgroups of %u\n", d.name.c_str(), d.limits.multiprocessors, d.limits.subgroup);
  }

  /// A row for the kernel K, and its share of what a copy of as many bytes reaches.
  template <class K> void row(const std::string& name, const job& j) {
    if (name.find(only) == name.npos) return;
    if (auto small = indexable(j); !small) {
      std::printf("%-44s %s\n", name.c_str(), small.error().line().c_str());
      return;
    }
    const auto t = measure<K>(j);
    const double rate = j.bytes / t.usec * 1e-3, copy = copy_rate(j.bytes);
    std::printf("%-44s %10.1f us %8.0f GB/s %5.1f %% of a copy's %.0f%s%s\n", name.c_str(), t.usec, rate, 100 * rate / copy, copy,
                t.reason.empty() ? "" : "  ", t.reason.c_str());
    if (detail)
      for (const auto& [code, usec] : t.parts) std::printf("    %-40s %10.1f us\n", code.c_str(), usec);
    std::fflush(stdout);
  }

 private:
  struct timing {
    double usec = 0;
    std::string reason;
    std::vector<std::pair<std::string, double>> parts;
  };
  std::shared_ptr<vulkan::context> context_;
  std::shared_ptr<vulkan::pipelines> made_;
  vulkan::command_pool pool_;
  vulkan::transfer mover_;
  std::unique_ptr<vulkan::constant_pool> const_pool_;
  VkCommandBuffer commands_ = nullptr;
  vulkan::memory scalars_;
  std::map<std::int64_t, double> copies_;

  double copy_rate(double bytes) {
    const std::int64_t n = std::clamp<std::int64_t>(std::int64_t(bytes / 8), 1024, vulkan::tensor_bytes / 4) / 1024 * 1024;
    if (copies_[n] == 0) {
      const operand x{shape{n}};
      copies_[n] = 8 * double(n) / measure<vulkan::kernel<op::copy, precision::f32, kernels::portable>>({{x}, {x}, {}, {}, 0}).usec * 1e-3;
    }
    return copies_[n];
  }

  static vulkan::view view(const operand& o, std::uint64_t at) {
    return {at, o.dims.count() * size_of(o.type), o.dims, o.strides == extents{} ? dense_strides(o.dims) : o.strides, o.type};
  }
  static result<void> indexable(const job& j) {
    std::vector<vulkan::view> in, out;
    for (const auto& o : j.in) in.push_back(view(o, 0));
    for (const auto& o : j.out) out.push_back(view(o, 0));
    return vulkan::indexable("an operand", in, out);
  }
  template <class K> timing measure(const job& j) {
    std::vector<vulkan::memory> memory;
    std::vector<vulkan::view> in, out;
    std::vector<shape> in_dims, out_dims;
    for (const auto& o : j.in) {
      memory.push_back(filled(o));
      in.push_back(view(o, memory.back().address()));
      in_dims.push_back(o.dims);
    }
    for (std::size_t k = 0; k < j.out.size(); ++k) {
      const int from = k < j.over.size() ? j.over[k] : -1;
      if (from < 0)
        memory.push_back(
            must(vulkan::memory::allocate(context_, j.out[k].dims.count() * size_of(j.out[k].type), isotope::memory_use::device, "y")));
      out.push_back(view(j.out[k], from < 0 ? memory.back().address() : in[std::size_t(from)].at));
      out_dims.push_back(j.out[k].dims);
    }
    vulkan::launch l;
    l.in = in;
    l.out = out;
    l.attr = &j.attr;
    l.scalars = scalars_.address();
    l.accumulate = 1;
    l.device = &context_->physical().limits;
    if constexpr (requires { K::scratch(step_shapes{}); }) {
      l.scratch_bytes = K::scratch({in_dims, out_dims, &j.attr});
      memory.push_back(must(vulkan::memory::allocate(context_, l.scratch_bytes, isotope::memory_use::device, "scratch")));
      l.scratch = memory.back().address();
    }
    vulkan::recording r(*const_pool_, *made_);
    vulkan::enter_set(r, kernels::portable::name);
    K::record(l, r);
    must(made_->make(r.dispatches));
    return median(r.dispatches);
  }

  /// Operands are filled with a period that no row length meets, large ones by copies on the device.
  vulkan::memory filled(const operand& o) {
    constexpr std::int64_t period = 2 * 1048583;  // a prime, even for copies of whole words
    const std::int64_t n = std::min(o.dims.count(), o.fill ? o.dims.count() : period), size = size_of(o.type);
    std::vector<std::byte> one(std::size_t((n * size + 3) / 4 * 4));
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = o.fill ? o.fill(i) : 2 * double(unit_interval(philox(1, std::uint64_t(i), 0, 0)[0])) - 1;
      const auto put = [&](auto y) { std::memcpy(one.data() + i * size, &y, sizeof y); };
      if (o.type == dtype::f32) put(float(x));
      else if (o.type == dtype::bf16) put(bfloat16(float(x)));
      else put(std::int32_t(x));
    }
    const std::int64_t step = std::int64_t(one.size()), all = o.dims.count() * size;
    auto m = must(
        vulkan::memory::allocate(context_, (std::max<std::int64_t>(all, 1) + step - 1) / step * step, isotope::memory_use::device, "x"));
    must(mover_.upload(m, 0, one));
    for (std::int64_t done = step; done < m.bytes(); done *= 2) {
      const VkBufferCopy part{0, VkDeviceSize(done), VkDeviceSize(std::min(done, m.bytes() - done))};
      submit([&](VkCommandBuffer c) { context_->f().CmdCopyBuffer(c, m.buffer(), m.buffer(), 1, &part); });
    }
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
  /// From the start of a kernel's first dispatch to the end of its last, and each dispatch by itself.
  timing median(const std::vector<vulkan::dispatch>& one) {
    timing t;
    if (one.empty()) return t;
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
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(300));
    must(context_->wait(must(context_->submit(commands_))));
    context_->f().GetQueryPoolResults(context_->handle(), queries, 0, std::uint32_t(ticks.size()), ticks.size() * 8, ticks.data(), 8,
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    context_->f().DestroyQueryPool(context_->handle(), queries, nullptr);
    const double tick = double(context_->physical().properties.limits.timestampPeriod) * 1e-3;  // microseconds
    const auto middle = [&](std::size_t first, std::size_t last) {
      std::vector<double> usec;
      for (std::size_t i = 0; i < std::size_t(times); ++i)
        usec.push_back(double(ticks[2 * (i * one.size() + last) + 1] - ticks[2 * (i * one.size() + first)]) * tick);
      std::sort(usec.begin(), usec.end());
      return usec[usec.size() / 2];
    };
    t.usec = middle(0, one.size() - 1);
    t.reason = std::string(one[0].reason);
    for (std::size_t k = 0; k < one.size(); ++k) t.parts.emplace_back(std::string(one[k].code->name), middle(k, k));
    return t;
  }
};

/// Frequencies as in text: the k-th most frequent of V tokens has a share near 1 / k; spread over the ids.
numbers text_like(std::int64_t V) {
  return [V](std::int64_t i) {
    const double u = double(unit_interval(philox(3, std::uint64_t(i), 0, 0)[0]));
    const auto rank = std::int64_t(std::exp(u * std::log(double(V)))) - 1;
    return double(std::clamp<std::int64_t>(rank, 0, V - 1) * 7919 % V);
  };
}

template <class Op, class P> using fast = vulkan::kernel<Op, P, kernels::portable>;

template <class P> void rows(program& p, std::int64_t R) {
  const dtype E = P::type, f32 = dtype::f32;
  const double e = double(size_of(E));
  const std::int64_t C = 768, V = 50304, S = std::min<std::int64_t>(R, 1024);
  const double RC = double(R * C), RV = double(R * V);
  const std::string type = " " + std::string(name_of(E));
  const auto name = [&](const char* text) { return text + type; };
  const numbers targets = [V](std::int64_t i) { return double(i * 7919 % V); }, four = [](std::int64_t) { return 4.0; };
  const op::softmax::constants last{.axis = 1};
  const operand x{{R, C}, E}, c{{C}, E}, row{{R}, f32}, column{{C}, f32}, one{{}, f32};

  p.row<fast<op::layer_norm, P>>(name("layer_norm"), {{x, c, c}, {x, row, row}, {}, op::layer_norm::constants{}, 2 * RC * e});
  p.row<fast<op::layer_norm_grad, P>>(name("layer_norm_grad"), {{x, c, c, row, row, x}, {x, column, column}, {}, {}, 3 * RC * e});
  p.row<fast<op::rms_norm, P>>(name("rms_norm"), {{x, c}, {x, row}, {}, op::rms_norm::constants{}, 2 * RC * e});
  p.row<fast<op::rms_norm_grad, P>>(name("rms_norm_grad"), {{x, c, row, x}, {x, column}, {}, {}, 3 * RC * e});
  for (std::int64_t v : {V, std::int64_t(50257)}) {
    const operand logits{{R, v}, E}, target{{R}, dtype::i32, targets}, top{{R}, f32, four}, sum{{R}, f32, four};
    const std::string at = " " + std::to_string(v) + type;
    p.row<fast<op::cross_entropy, P>>("cross_entropy" + at, {{logits, target}, {one, row, row}, {}, {}, RV * e});
    p.row<fast<op::cross_entropy_grad, P>>("cross_entropy_grad" + at, {{logits, target, top, sum, one}, {logits}, {0}, {}, 2 * RV * e});
  }
  const operand text{{R}, dtype::i32, text_like(V)}, places{{R}, dtype::i32, [S](std::int64_t i) { return double(i % S); }};
  const auto distinct = [R](const operand& ids, std::int64_t n) {
    std::vector<bool> seen(std::size_t(n), false);
    for (std::int64_t i = 0; i < R; ++i) seen[std::size_t(ids.fill(i))] = true;
    return double(std::count(seen.begin(), seen.end(), true));
  };
  p.row<fast<op::embedding, P>>(name("embedding"), {{{{V, C}, E}, text}, {x}, {}, {}, (RC + distinct(text, V) * double(C)) * e});
  p.row<fast<op::embedding_grad, P>>(name("embedding_grad text"),
                                     {{{{V, C}, f32}, x, text}, {{{V, C}, f32}}, {0}, {}, RC * e + distinct(text, V) * double(C) * 8});
  p.row<fast<op::embedding_grad, P>>(name("embedding_grad positions"),
                                     {{{{S, C}, f32}, x, places}, {{{S, C}, f32}}, {0}, {}, RC * e + double(S * C) * 8});
  const operand wide{{R, 4 * C}, E};
  p.row<fast<op::sum, P>>(name("sum of columns"), {{wide}, {{{4 * C}, f32}}, {}, op::sum::constants{.axes = 1, .format = f32}, 4 * RC * e});
  p.row<fast<op::sum, P>>(name("sum of rows"), {{wide}, {{{R}, f32}}, {}, op::sum::constants{.axes = 2, .format = f32}, 4 * RC * e});
  p.row<fast<op::sum, P>>(name("sum"), {{wide}, {one}, {}, op::sum::constants{.axes = 3, .format = f32}, 4 * RC * e});
  p.row<fast<op::max, P>>(name("max of rows"), {{wide}, {{{R}, E}}, {}, op::max::constants{.axes = 2}, 4 * RC * e});
  p.row<fast<op::dropout, P>>(name("dropout"), {{wide}, {wide}, {}, op::dropout::constants{.p = 0.1}, 8 * RC * e});
  const operand scores{{R, 1024}, E}, long_rows{{R / 8, 50257}, E};
  p.row<fast<op::softmax, P>>(name("softmax 1024"), {{scores}, {scores}, {}, last, 2048 * double(R) * e});
  p.row<fast<op::softmax_grad, P>>(name("softmax_grad 1024"), {{scores, scores}, {scores}, {}, last, 3072 * double(R) * e});
  p.row<fast<op::softmax, P>>(name("softmax 50257"), {{long_rows}, {long_rows}, {}, last, 2 * double(R / 8 * 50257) * e});
  p.row<fast<op::log_softmax, P>>(name("log_softmax 50257"), {{long_rows}, {long_rows}, {}, last, 2 * double(R / 8 * 50257) * e});
  operand turned{{4 * C, R}, E};
  turned.strides = {1, 4 * C};
  p.row<fast<op::copy, P>>(name("copy transposed"), {{turned}, {{{4 * C, R}, E}}, {}, {}, 8 * RC * e});
  operand heads{{R / S, 12, S, 64}, E};
  heads.strides = {S * C, 64, C, 1};
  p.row<fast<op::copy, P>>(name("copy of heads"), {{heads}, {{{R / S, 12, S, 64}, E}}, {}, {}, 2 * RC * e});
  p.row<fast<op::concat, P>>(name("concat"), {{x, x, x}, {{{R, 3 * C}, E}}, {}, op::concat::constants{.axis = 1}, 6 * RC * e});
  p.row<fast<op::pad, P>>(name("pad"), {{x}, {{{R, 3 * C}, E}}, {}, op::pad::constants{.axis = 1, .first = C, .size = 3 * C}, 4 * RC * e});
  const op::fill::constants zeros{.dims = {R, 4 * C}, .format = E};
  p.row<fast<op::fill, P>>(name("fill"), {{}, {wide}, {}, zeros, 4 * RC * e});
  const operand rotated{{R / S, S, 12, 64}, E};
  p.row<fast<op::rope, P>>(name("rope"), {{rotated}, {rotated}, {}, op::rope::constants{}, 2 * RC * e});

  const std::int64_t N = 124439808;
  const operand flat{{N}, f32}, shadow{{N}, E};
  const bool mixed = E != f32;
  const op::update_rule::constants update{.decaying = N / 2, .shadow = mixed, .clips = true};
  std::vector<operand> adam{flat, flat, flat}, sgd{flat, flat};
  std::vector<int> adam_over{0, 1, 2}, sgd_over{0, 1};
  if (mixed) adam.push_back(shadow), sgd.push_back(shadow), adam_over.push_back(3), sgd_over.push_back(2);
  const auto adam_out = adam, sgd_out = sgd;
  for (auto* in : {&adam, &sgd}) in->insert(in->end(), {flat, one, one});
  const double n = double(N), extra = mixed ? e * n : 0;
  p.row<fast<op::adamw, P>>(name("adamw"), {adam, adam_out, adam_over, update, 28 * n + extra});
  p.row<fast<op::sgd, P>>(name("sgd"), {sgd, sgd_out, sgd_over, update, 20 * n + extra});
  p.row<fast<op::accumulate, P>>(name("accumulate"), {{flat, shadow}, {flat}, {0}, {}, (8 + e) * n});
  p.row<fast<op::cast, P>>(name("cast to f32"), {{shadow}, {flat}, {}, op::cast::constants{.to = f32}, (4 + e) * n});
  if (mixed) return;
  p.row<fast<op::global_norm, P>>("global_norm", {{flat}, {one}, {}, {}, 4 * n});
  p.row<fast<op::clip_norm, P>>("clip_norm", {{flat}, {flat}, {0}, {}, 12 * n});
  p.row<fast<op::clip_value, P>>("clip_value", {{flat}, {flat}, {0}, {}, 8 * n});
}

}  // namespace

int main(int argc, char** argv) {
  device_options o;
  std::string type, only;
  int times = 20;
  bool detail = false;
  std::int64_t tokens = 32768;
  for (int i = 1; i < argc; ++i) {
    const std::string s = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (s == "--device") o.name = value();
    else if (s == "--type") type = value();
    else if (s == "--only") only = value();
    else if (s == "--tokens") tokens = std::max<std::int64_t>(8, std::atoll(value().c_str()));
    else if (s == "--times") times = std::max(1, std::atoi(value().c_str()));
    else if (s == "--detail") detail = true;
  }
  program p(o);
  p.times = times;
  p.detail = detail;
  p.only = only;
  if (type.empty() || type == "f32") rows<precision::f32>(p, tokens);
  if (type.empty() || type == "bf16") rows<precision::bf16>(p, tokens);
  return 0;
}
