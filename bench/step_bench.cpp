/// bench_step SIZE BATCH LENGTH [STEPS] [--update after_backward|within_backward] [--pack always|never] [--accumulate N]
/// [--recompute none|cheap|keep_matmuls|all] [--head-chunks N] [--budget MIB] [--dropout P] [--profile]: one training step of a GPT on the
/// backend of this build, on random tokens: median milliseconds, tokens per second, processor time of all threads, time to the first finished step, memory, and
/// with --profile the time of each kernel, by the device's clock where it has one. With --update the step does not clip, so that policies compare;
/// --pack says which weights have packed copies; --accumulate makes a step of N micro-batches; --recompute says what the backward pass computes
/// again; --head-chunks computes logits in N chunks of rows, --budget in as few as the plan needs to fit; --dropout replaces the probability of the
/// size. Two further lines are the processor time that a recorded step takes of the thread that submits it: where it waits for each step, and where it submits
/// steps ahead.
#include <isotope/isotope.hpp>
#include <isotope/plan/report/to_text.hpp>
#include <isotope/selected.hpp>

#include <isotope/train/run_ahead.hpp>
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
namespace iso = isotope;
using target = iso::selected;

double cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }
double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int fail(const iso::failure& f) { return std::fprintf(stderr, "bench_step: %s\n", f.line().c_str()), 1; }

/// Sums of times by kernel.
class kernel_times {
 public:
  void add(const std::string& kernel, double usec, std::int64_t bytes = 0) {
    row& r = rows_[kernel];
    r.usec += usec;
    r.bytes += bytes;
    ++r.launches;
  }
  /// Means of `steps` steps, the slowest kernel first.
  void print(int steps) const {
    double total = 0;
    for (const auto& [name, r] : rows_) total += r.usec;
    std::vector<std::pair<std::string, row>> sorted(rows_.begin(), rows_.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.usec > b.second.usec; });
    std::printf("kernels, %.3f ms in all:\n", total / steps / 1000);
    for (const auto& [name, r] : sorted)
      std::printf("  %8.1f us %5.1f %%  %4d launches  %7.0f GB/s  %s\n", r.usec / steps, 100 * r.usec / total, r.launches / steps,
                  double(r.bytes) / r.usec / 1000, name.c_str());
  }

 private:
  struct row {
    double usec = 0;
    std::int64_t bytes = 0;
    int launches = 0;
  };
  std::map<std::string, row> rows_;
};

/// By the device's clock where it has one, else by the steps of the plan.
template <class Session> void profile(Session& s, const iso::step_scalars& x) {
  kernel_times times;
  if constexpr (requires { s.profile(x); }) {
    static_cast<void>(s.profile(x));
    auto timed = s.profile(x);
    if (!timed) return void(fail(timed.error()));
    for (const auto& t : timed->launches)
      times.add(std::string(t.code) + " (" + std::string(t.set) + (t.reason.empty() ? "" : ": " + std::string(t.reason)) + ")", t.usec,
                t.bytes);
    times.print(1);
  } else {
    constexpr int steps = 20;
    const auto& plan = s.plan();
    for (int i = 0; i < steps; ++i) {
      double before = seconds();
      static_cast<void>(s.observe(x, [&](std::size_t k) {
        const double now = seconds();
        const iso::step& step = plan.steps[k];
        std::int64_t bytes = 0;
        std::string name(step.op->name);
        for (int o = 0; o < step.inputs + step.outputs; ++o) bytes += plan.operands[std::size_t(step.operands + o)].bytes;
        for (int m = 0; m < step.body_size; ++m)
          name += (m == 0 ? ": " : " ") + std::string(plan.micro_ops[std::size_t(step.body + m)].op->name);
        const auto dims = [&](int o) { return " " + std::string(isotope::to_text(plan.operands[std::size_t(step.operands + o)].dims)); };
        times.add(name + dims(step.inputs) + " from" + dims(0) + (step.inputs > 1 ? dims(1) : ""), 1e6 * (now - before), bytes);
        before = seconds();
      }));
    }
    times.print(steps);
  }
}
/// Processor time of this thread alone, microseconds.
[[maybe_unused]] double thread_usec() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * double(t.tv_sec) + 1e-3 * double(t.tv_nsec);
}
/// Prints medians of what a step of one batch takes of the calling thread: to submit it, and with waiting for it and reading its report. Trains on, with another
/// of these batches each time.
template <class Session> void print_host_time(Session& s, std::span<const iso::batch> batches, iso::step_scalars x, std::size_t steps) {
  constexpr std::size_t recorded = 2;  // before that each frame records its commands
  std::vector<double> submit, whole;
  std::int64_t kernels = 0;
  for (std::size_t i = 0; i < steps + recorded; ++i, ++x.counter, ++x.optimizer_step) {
    const std::int64_t launches = s.counters().launches;
    const double before = thread_usec();
    const auto pending = s.submit(batches[i % batches.size()], x);
    const double submitted = thread_usec();
    static_cast<void>(s.collect(pending));
    if (i < recorded) continue;
    whole.push_back(thread_usec() - before);
    submit.push_back(submitted - before);
    kernels = s.counters().launches - launches;
  }
  for (auto* times : {&submit, &whole}) std::nth_element(times->begin(), times->begin() + std::ptrdiff_t(steps / 2), times->end());
  std::printf("calling thread: %.1f us/step to submit, %.1f us with waiting; %lld kernels\n", submit[steps / 2], whole[steps / 2],
              static_cast<long long>(kernels));
}
/// Prints the means of what a step takes of the calling thread where it submits steps ahead, as a training loop does: with waiting, and apart from that to write
/// its ids. Trains on.
template <class Session>
void print_host_time_ahead(Session& s, std::span<const iso::batch> batches, iso::step_scalars x, std::size_t steps) {
  iso::train::run_ahead ahead(Session::frames);
  std::vector<iso::pending_step> flying;
  double writing = 0, ended_at = seconds();
  /// Submits as many steps as there is room for, and waits for half of them. Returns how many ended.
  const auto turn = [&]() -> std::size_t {
    while (flying.size() < ahead.room()) {
      const iso::batch& b = batches[x.counter % batches.size()];
      const auto tokens = s.template next_input<std::int32_t>(iso::batch::tokens_label);
      const auto targets = s.template next_input<std::int32_t>(iso::batch::targets_label);
      if (!tokens || !targets) return steps;  // the device failed
      const double before = thread_usec();
      std::copy(b.tokens.begin(), b.tokens.end(), tokens->begin());
      std::copy(b.targets.begin(), b.targets.end(), targets->begin());
      writing += thread_usec() - before;
      flying.push_back(s.submit(x));
      ++x.counter, ++x.optimizer_step;
    }
    const std::size_t count = ahead.half();
    static_cast<void>(s.collect(flying[count - 1]));
    for (std::size_t i = 0; i + 1 < count; ++i) static_cast<void>(s.collect(flying[i]));
    flying.erase(flying.begin(), flying.begin() + std::ptrdiff_t(count));
    const double now = seconds();
    ahead.took((now - std::exchange(ended_at, now)) / double(count));
    return count;
  };
  for (std::size_t ended = 0; ended < 4 * Session::frames;) ended += turn();  // until the room is known and taken
  writing = 0;
  const double began = seconds(), thread_began = thread_usec();
  std::size_t timed = 0;
  while (timed < steps) timed += turn();
  const double whole = thread_usec() - thread_began, n = double(timed);
  std::printf("with up to %zu steps in flight: %.1f us/step of the calling thread, and %.1f to write ids; %.3f ms/step\n", ahead.room(),
              (whole - writing) / n, writing / n, 1e3 * (seconds() - began) / n);
  for (const auto& p : flying) static_cast<void>(s.collect(p));
}
}  // namespace

int main(int argc, char** argv) {
  const double start = seconds();
  const auto usage = [] {
    return std::fprintf(stderr,
                        "usage: bench_step SIZE BATCH LENGTH [STEPS] [--update after_backward|within_backward] [--pack always|never] "
                        "[--accumulate N] [--recompute none|cheap|keep_matmuls|all] [--head-chunks N] [--budget MIB] [--dropout P] "
                        "[--profile]\n"),
           2;
  };
  if (argc < 4) return usage();
  iso::model::gpt size;
  bool known = false;
  for (const auto& [name, g] : iso::model::gpt_sizes)
    if (name == argv[1]) size = g, known = true;
  if (!known) return std::fprintf(stderr, "bench_step: no size '%s'\n", argv[1]), 2;
  const int batch = std::atoi(argv[2]), length = std::atoi(argv[3]), steps = argc > 4 ? std::max(1, std::atoi(argv[4])) : 20;
  const bool profiled = std::string_view(argv[argc - 1]) == "--profile";
  iso::training_options options;
  int micro_batches = 1;
  for (int i = 4; i + 1 < argc; ++i) {
    const std::string_view flag = argv[i], policy = argv[i + 1];
    if (flag == "--accumulate") micro_batches = std::max(1, std::atoi(argv[i + 1]));
    if (flag == "--dropout") size.dropout = std::atof(argv[i + 1]);
    if (flag == "--head-chunks") options.head = iso::head::in_chunks(std::atoll(argv[i + 1]));
    if (flag == "--budget") options.head = iso::head::within(std::atoll(argv[i + 1]) << 20);
    if (flag == "--recompute") {
      if (policy == "all") options.recompute = iso::recompute::all;
      else if (policy == "keep_matmuls") options.recompute = iso::recompute::keep_matmuls;
      else if (policy == "cheap") options.recompute = iso::recompute::cheap;
      else if (policy != "none") return usage();
    }
    if (flag == "--pack") {
      if (policy != "always" && policy != "never") return usage();
      options.pack = policy == "always" ? iso::packing::always : iso::packing::never;
    }
    if (flag == "--update") {
      if (policy != "after_backward" && policy != "within_backward") return usage();
      options.clip = iso::clipping::none;
      if (policy == "within_backward") options.update = iso::update_policy::within_backward;
    }
  }
  options.accumulate = micro_batches > 1;

  auto plan = iso::plan_training<target>(iso::model::gpt_loss_of{size, batch, length}, options);
  if (!plan) return fail(plan.error());
  auto device = iso::device<target>::open(bench::options_of_environment<typename iso::device<target>::options>());
  if (!device) return fail(device.error());
  const double opened = seconds();
  auto session = device->load(*std::move(plan));
  if (!session) return fail(session.error());
  const double loaded = seconds();
  session->initialize(1);
  const double ready = seconds();

  constexpr std::size_t turns = 5, apart = 16;  // batches of other ids for print_host_time, which begin so many ids apart
  const std::size_t count = std::size_t(batch * length);
  std::vector<std::int32_t> tokens(count + turns * apart), targets(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = std::int32_t(iso::philox(1, i, 0, 0)[0] % std::uint32_t(size.vocab));
    targets[i] = std::int32_t(iso::philox(2, i, 0, 0)[0] % std::uint32_t(size.vocab));
  }
  const auto batch_at = [&](std::size_t turn) {
    return iso::batch{std::span(tokens).subspan(turn * apart, count), std::span(targets).subspan(turn * apart, count)};
  };
  const std::vector<iso::batch> data(std::size_t(micro_batches), batch_at(0));
  iso::step_scalars x;
  x.learning_rate = 1e-4f, x.weight_decay = 0.1f, x.clip_norm = options.clip == iso::clipping::none ? 0.0f : 1.0f;
  std::vector<double> times;
  double loss = 0, first = 0;
  const double warm = 0.3;
  double cpu = 0;  // of the timed steps, all threads
  for (double began = seconds(); int(times.size()) < steps;) {
    const double at = seconds(), cpu_at = cpu_seconds();
    loss = session->step(data, x).loss;
    const double now = seconds();
    if (first == 0) first = now;
    if (now - began > warm || steps < 3) {
      times.push_back(now - at);
      cpu += cpu_seconds() - cpu_at;
    }
    ++x.counter, ++x.optimizer_step;
    if (auto r = session->status(); !r) return fail(r.error());
  }
  std::sort(times.begin(), times.end());
  const double ms = 1000 * times[times.size() / 2];
  std::printf(
      "%s %s %s B=%d T=%d: %.3f ms/step (least %.3f; cpu %.3f), %.0f tokens/s, loss %.4f, %.2f GiB planned; start to first step %.2f s "
      "(open %.2f, "
      "load %.2f, weights %.2f)\n",
      std::string(target::backend::name).c_str(), std::string(target::precision::name).c_str(), argv[1], batch, length, ms, 1000 * times[0],
      1000 * cpu / double(times.size()), double(count) * double(micro_batches) / ms * 1000, loss,
      double(session->planned_bytes()) / (1 << 30), first - start, opened - start, loaded - opened, ready - loaded);
  const iso::plan_totals& totals = session->plan().totals;
  if (totals.head_chunks > 1) std::printf("head in %d chunks of rows\n", totals.head_chunks);
  if (const auto why = text_of(totals.obstacle); !why.empty()) std::printf("head in one piece: %s\n", std::string(why).c_str());
  std::vector<iso::batch> batches;
  for (std::size_t turn = 0; turn < turns; ++turn) batches.push_back(batch_at(turn));
  print_host_time(*session, batches, x, times.size());
  x.counter += times.size() + 2, x.optimizer_step += std::int64_t(times.size()) + 2;
  print_host_time_ahead(*session, batches, x, std::max<std::size_t>(times.size(), 32));
  if (profiled) profile(*session, x);
}
