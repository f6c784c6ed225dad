/// Whole steps: forward, backward, clipping and AdamW of a model, and its forward pass alone.
#include "row.hpp"

namespace {

namespace iso = isotope;
using iso::model::gpt;

/// 6 operations per parameter and token for the products of forward and backward, and the attention scores.
double step_flops(const gpt& g, int batch, int length) {
  const double tokens = double(batch) * length;
  const double products = double(iso::model::parameter_count(g)) - double(g.context) * g.width;
  return tokens * (6 * products + 6.0 * g.layers * length * g.width);
}

void model(const std::string& name, const gpt& g, int batch, int length) {
  const double parameters = double(iso::model::parameter_count(g)), tokens = double(batch) * length;
  const auto tokens_of = [=](benchmark::State& state) {
    state.counters["tokens/s"] = benchmark::Counter(tokens * double(state.iterations()), benchmark::Counter::kIsRate);
  };
  bench::add("step/" + name, [=](benchmark::State& state) {
    auto s = bench::load(state, iso::plan_training<bench::target>(iso::model::gpt_loss_of{g, batch, length}));
    if (!s) return;
    std::vector<std::int32_t> ids(std::size_t(batch * length));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int32_t((i * 7919) % std::size_t(g.vocab));
    const iso::batch b{ids, ids};
    for (auto _ : state) benchmark::DoNotOptimize(s->step(b, {.learning_rate = 1e-4f, .clip_norm = 1}));
    bench::report(state, {step_flops(g, batch, length), 28 * parameters});
    tokens_of(state);
  });
  bench::add("forward/" + name, [=](benchmark::State& state) {
    auto s = bench::load(state, iso::plan_inference<bench::target>(iso::model::gpt_loss_of{g, batch, length}));
    if (!s) return;
    for (auto _ : state) s->run({}, iso::phase_always);
    bench::report(state, {step_flops(g, batch, length) / 3, 4 * parameters});
    tokens_of(state);
  });
}

}  // namespace

int main(int argc, char** argv) {
  model("char-gpt-cpu", {4, 4, 128, 65, 64}, 12, 64);
  model("gpt2-124m_B4_S64", {}, 4, 64);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
