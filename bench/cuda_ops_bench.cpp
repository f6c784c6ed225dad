/// bench_cuda_ops [--only TEXT] [--times N]: ops of the cuda backend that bound no training step, in microseconds, in f32: the largest elements of rows, sampling,
/// sums of rows by id and Fourier transforms. A graph runs an op 20 times in a row. Medians of N times 10 such graphs (7) after 300 ms of warm-up;
/// what takes more than 10 ms runs once.
/// bench/peers/ops_torch.py prints the same rows for PyTorch.
#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace iso = isotope;
using target = iso::target<iso::backend::cuda, iso::precision::f32>;
using iso::shape;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class program {
 public:
  std::string only;
  int times = 7;

  explicit program(iso::device<target> d) : device_(std::move(d)) {}

  /// Ops of a forward program.
  template <class Model> void forward(const std::string& name, const Model& model) {
    if (wanted(name)) time(name, iso::plan_inference<target>(model), {}, "");
  }
  /// Tokens that are drawn from `rows` rows of V logits, with these numbers for each row.
  void drawn(const std::string& how, std::int64_t rows, std::int64_t V, std::array<float, 4> sampling, std::int32_t top_k) {
    const auto name = "sample " + how + "/" + std::to_string(rows) + "x" + std::to_string(V);
    if (!wanted(name)) return;
    constexpr std::int64_t context = 1 << 20;  // more than all runs draw
    const auto model = [=]<class M>(iso::scope<M> s) {
      const auto ids = [&](std::string_view label, const shape& dims) { return s.input(label, dims, iso::dtype::i32); };
      const auto state = [&](std::string_view label, const shape& dims) { return s.state(label, dims, iso::dtype::i32); };
      const auto all =
          sample(iso::sample_states<M>{state("history", {rows, context}), state("recent", {1, rows}), state("position", {rows})},
                 s.input("x", {rows, V}), ids("draw", {rows}), s.input("sampling", {rows, 4}), ids("key", {rows, 4}));
      return contiguous(all.recent);
    };
    time(name, iso::plan_inference<target>(model), {}, "sample", [&](auto& s) {
      std::vector<float> numbers;
      std::vector<std::int32_t> keys;
      for (std::int64_t n = 0; n < rows; ++n) {
        numbers.insert(numbers.end(), sampling.begin(), sampling.end());
        keys.insert(keys.end(), {std::int32_t(n), 0, top_k, 0});
      }
      const bool set = s.set("sampling", std::span<const float>(numbers)).ok() && s.set("key", std::span<const std::int32_t>(keys)).ok();
      if (!set) std::printf("%s: the numbers do not fit\n", name.c_str());
    });
  }
  /// The kernels of a program's backward pass whose names begin with `kernel`, or with "id_" where ids are sorted. Ids are below V.
  template <class Model>
  void backward(const std::string& name, std::int64_t V, std::int64_t ids, std::string_view kernel, const Model& model) {
    if (!wanted(name)) return;
    std::vector<std::int32_t> all(static_cast<std::size_t>(ids));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::int32_t(iso::philox(1, i, 0, 0)[0] % std::uint32_t(V));
    time(name, iso::plan_training<target>(model, {.optimizer = iso::optimizer_kind::none}), all, kernel);
  }

 private:
  iso::device<target> device_;

  bool wanted(const std::string& name) const { return name.find(only) != name.npos; }
  static void stop(const std::string& name, const iso::failure& f) { std::printf("%-40s %s\n", name.c_str(), f.line().c_str()); }

  /// `given` sets what other inputs hold than random logits and `ids`.
  struct nothing {
    void operator()(const auto&) const {}
  };
  template <class Given = nothing>
  void time(const std::string& name, iso::result<iso::dynamic_plan> plan, std::span<const std::int32_t> ids, std::string_view kernel,
            const Given& given = {}) {
    if (!plan) return stop(name, plan.error());
    auto s = device_.load(*std::move(plan));
    if (!s) return stop(name, s.error());
    s->initialize(1);
    for (const auto& p : s->plan().inputs)
      if (p.where.type == iso::dtype::f32) {
        const auto x = s->template input<float>(p.label.view());
        for (std::size_t i = 0; x && i < x->size(); ++i) (*x)[i] = float(iso::philox(2, i, 0, 0)[0]) * 0x1p-29f - 4;  // logits from -4 to 4
      } else if (p.label.view() == "ids") {
        if (auto r = s->set("ids", ids); !r) return stop(name, r.error());
      }
    given(*s);
    s->run({}, iso::phase_always);
    const double second = seconds();
    s->run({}, iso::phase_always);
    const bool slow = seconds() - second > 0.01;
    if (auto r = s->status(); !r) return stop(name, r.error());

    std::vector<iso::cuda::dispatch> op;
    for (auto& d : s->dispatches(iso::phase_always)) {
      const std::string_view f = d.function;
      if (d.copy.host == nullptr && (kernel.empty() || f.starts_with(kernel) || f.starts_with("id_"))) op.push_back(std::move(d));
    }
    const std::size_t repeats = slow ? 1 : 20, graphs = slow ? 1 : 10;
    std::vector<iso::cuda::dispatch> all;
    iso::dispatch_edges waits;
    for (std::size_t k = 0; k < repeats; ++k)
      for (const auto& d : op) {
        all.push_back(d);
        waits.emplace_back();
        if (waits.size() > 1) waits.back().push_back(std::uint32_t(waits.size() - 2));
      }
    auto& recorder = s->queue().recorder();
    auto& context = *recorder.device;
    iso::cuda::step_graph graph(recorder.device);
    if (auto r = graph.build(*recorder.functions, all, waits); !r) return stop(name, r.error());
    const auto run = [&] {
      std::uint64_t last = 0;
      for (std::size_t k = 0; k < graphs; ++k)
        if (auto v = context.submit(graph.handle()); v) last = *v;
      const auto r = context.wait(last);
      if (!r) stop(name, r.error());
      return r.ok();
    };
    for (const double began = seconds(); seconds() - began < 0.3;)
      if (!run()) return;
    std::vector<double> usec;
    for (int i = 0; i < times; ++i) {
      const double at = seconds();
      if (!run()) return;
      usec.push_back(1e6 * (seconds() - at) / double(repeats * graphs));
    }
    std::nth_element(usec.begin(), usec.begin() + times / 2, usec.end());
    std::printf("%-40s %10.2f us  %zu launches of %.*s, %.*s\n", name.c_str(), usec[std::size_t(times / 2)], op.size(),
                int(op.back().function.size()), op.back().function.data(), int(op.back().set.size()), op.back().set.data());
    std::fflush(stdout);
  }
};

std::string text(std::int64_t a, std::int64_t b) { return std::to_string(a) + "x" + std::to_string(b); }

}  // namespace

int main(int argc, char** argv) {
  auto device = iso::device<target>::open({});
  if (!device) return std::fprintf(stderr, "bench_cuda_ops: %s\n", device.error().line().c_str()), 1;
  program p(*std::move(device));
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--only") p.only = argv[i + 1];
    if (std::string_view(argv[i]) == "--times") p.times = std::max(1, std::atoi(argv[i + 1]));
  }
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{1, 50257}, {64, 50257}, {16384, 65}}) {
    const shape x{rows, n};
    p.forward("argmax/" + text(rows, n), [=]<class M>(iso::scope<M> s) { return argmax(s.input("x", x)); });
    for (const std::int64_t k : {5, 50})
      p.forward("top_k " + std::to_string(k) + "/" + text(rows, n),
                [=]<class M>(iso::scope<M> s) { return top_k(s.input("x", x), k).first; });
    p.forward("categorical/" + text(rows, n), [=]<class M>(iso::scope<M> s) { return categorical(s.input("x", x)); });
    p.drawn("greedy", rows, n, {0, 1, 0, 1}, 0);
    p.drawn("temperature", rows, n, {0.8f, 1, 0, 1}, 0);
    p.drawn("top_k 40", rows, n, {0.8f, 1, 0, 1}, 40);
    p.drawn("top_p 0.9", rows, n, {0.8f, 0.9f, 0, 1}, 0);
    p.drawn("top_k 40, top_p 0.9", rows, n, {0.8f, 0.9f, 0, 1}, 40);
  }
  for (const auto& [ids, V, C] : {std::array<std::int64_t, 3>{32768, 50257, 768}, {16384, 65, 384}}) {
    const auto model = [=]<class M>(iso::scope<M> s) {
      return mean(embedding(s.param("w", {V, C}, iso::init::normal(1)), s.input("ids", {ids}, iso::dtype::i32)));
    };
    p.backward("sort of ids/" + text(ids, V), V, ids, "id_", model);
    p.backward("embedding_grad/" + text(ids, V) + "x" + std::to_string(C), V, ids, "embedding_grad", model);
  }
  for (const auto& [rows, N] : {std::pair<std::int64_t, std::int64_t>{1024, 1024}, {16384, 256}, {1, 1 << 20}, {1024, 1000}, {4, 100003}}) {
    const shape complex{rows, N, 2}, real{rows, N};
    p.forward("fft/" + text(rows, N), [=]<class M>(iso::scope<M> s) { return fft(s.input("x", complex)); });
    p.forward("rfft/" + text(rows, N), [=]<class M>(iso::scope<M> s) { return rfft(s.input("x", real)); });
  }
}
