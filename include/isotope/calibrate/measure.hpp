#pragma once
/// Measures a device by small plans, which run as those of models do: on any backend, by the clock of the host.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../backend/session/named_plan.hpp"
#include "../isotope.hpp"
#include "../plan/dynamic.hpp"
#include "calibration_file.hpp"
#include "estimate.hpp"

namespace isotope {

/// Seconds that one part of a calibration took: the loading of plans, or a probe, by the name of its figure.
struct calibration_part {
  std::string_view name;
  double seconds = 0;
};

namespace calibrate_detail {

/// One model for every measurement, so that programs contain one tracer. Its operands are pieces of one parameter, so that all probes of a session share its memory.
/// Its result is small but for `whole`, since results are copied to the host.
struct probe {
  enum class kind : std::uint8_t { product, attention, attention_grad, scale, whole, gelu, dropout, chain, apart } what;
  std::int64_t rows = 1, inner = 1, columns = 1;
  /// That follow each other, each with a weight of its own, as in nn::linear: (columns, inner), (inner, columns) and so on.
  int products = 1;
  std::int64_t pool = 0;  // elements of the parameter

  static constexpr int heads = 12, head_size = 64, small_steps = 64;
  /// Elements of the operands.
  constexpr std::int64_t elements() const {
    switch (what) {
      case kind::product: return rows * inner + products * inner * columns;
      case kind::attention:
      case kind::attention_grad: return rows * inner * 3 * heads * head_size;
      case kind::chain:
      case kind::apart: return (small_steps + 2) * 64;
      default: return rows * inner;
    }
  }
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto all = s.param("x", {pool}, init::ones);
    std::int64_t taken = 0;
    const auto take = [&](const shape& dims) {
      const auto at = taken;
      taken += dims.count();
      return reshape(narrow(all, 0, at, dims.count()), dims);
    };
    const auto first = [](tensor<M> y) {  // row
      for (int k = 0; k + 1 < y.rank(); ++k) y = narrow(y, k, 0, 1);
      return y;
    };
    switch (what) {
      case kind::product: {
        auto x = take({rows, inner});
        for (int k = 0; k < products; ++k) x = matmul(x, transpose(take(k % 2 == 0 ? shape{columns, inner} : shape{inner, columns})));
        return first(x);
      }
      case kind::attention:
      case kind::attention_grad: {
        const auto qkv = take({rows, inner, 3 * heads * head_size});
        const attributes how = attention_options{.scale = 0.125}.of(qkv, heads, true, false);  // 1 / sqrt(head_size)
        const auto y = s.machine->apply(rules<op::attention>, std::array{qkv.id}, how, place::current());
        const tensor<M> out{s.machine, y.out[0]};
        if (what == kind::attention) return first(out);
        const auto g = s.machine->apply(rules<op::attention_grad>, std::array{qkv.id, y.out[0], y.out[1], y.out[0]}, how, place::current());
        return first(tensor<M>{s.machine, g.out[0]});
      }
      case kind::scale: return first(scale(take({rows, inner}), 2));
      case kind::whole: return scale(take({rows, inner}), 2);
      case kind::gelu: return first(gelu(take({rows, inner})));
      case kind::dropout: return first(apply<op::dropout>(place::current(), op::dropout::constants{.p = 0.5}, take({rows, inner})));
      default: break;
    }
    const auto w = take({64}), b = take({64});
    auto x = take({small_steps, 64});
    if (what == kind::chain) {
      x = narrow(x, 0, 0, 1);
      for (int k = 0; k < small_steps; ++k) x = layer_norm(x, w, b);
      return x;
    }
    std::array<tensor<M>, 8> parts{};
    for (int k = 0; k < 8; ++k) {
      std::array<tensor<M>, 8> y{};
      for (int j = 0; j < 8; ++j) y[std::size_t(j)] = layer_norm(narrow(x, 0, 8 * k + j, 1), w, b);
      parts[std::size_t(k)] = concat({y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7]}, 0);
    }
    return concat({parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6], parts[7]}, 0);
  }
};

/// Loads probes as the plans of one session, and times their runs.
template <Target T, class Device, class Clock> class prober {
 public:
  /// @param window  seconds of a batch of runs
  /// @param spent   gets an entry for each probe and session; null: nobody asks
  prober(const Device& device, const Clock& clock, double window, std::vector<calibration_part>* spent)
      : device_(device), clock_(clock), window_(window), spent_(spent) {}

  /// The first error; its text is empty: there is none.
  const failure& error() const { return failed_; }
  /// Loads probes in place of those that were loaded before.
  void load(std::vector<probe> all) {
    if (!failed_.what.empty()) return;
    const double began = clock_();
    session_.reset();
    std::int64_t pool = 0;
    for (const probe& p : all) pool = std::max(pool, p.elements());
    std::vector<owned_plan> plans;
    for (probe& p : all) {
      p.pool = pool;
      auto plan = plan_inference<T>(p);
      if (!plan) return fail_by(std::move(plan).error());
      plans.push_back({std::to_string(plans.size()), *std::move(plan)});
    }
    auto s = device_.load(std::move(plans));
    if (!s) return fail_by(std::move(s).error());
    session_.emplace(*std::move(s));
    // The system gives the host's pages when they are written. Until then, all of them are the same page, which caches hold.
    if constexpr (Device::on_host) session_->initialize(1);
    note("load", began);
  }
  /// The least seconds of a run of probe k, of batches of runs one after another. Nobody reads the results, so on devices with memory of their own the parameter holds zeros.
  double seconds(std::size_t k, std::string_view name) {
    const double began = clock_();
    timed(k, 1);  // makes what the first run makes, so the next wait would expect another one as long: two runs in a row are other work
    // Batches until the two least agree, at most so many, and no longer than some windows. Other work on the machine may have been in the first of them, so a
    // batch that takes less than half a window makes the next ones longer, whenever it comes.
    constexpr double agree = 1.01, most_windows = 4;
    constexpr int fewest = Device::on_host ? 2 : 3, most = 5, most_runs = 64;
    int times = Device::on_host ? 1 : 2;
    double least = 0, next = 0;
    for (int batch = 0; batch < most;) {
      const double t = timed(k, times);
      if (const int more = int(std::clamp(window_ / t, 1.0, double(most_runs))); more >= 2 * times) {
        times = more, least = next = 0;
        continue;
      }
      next = least == 0 ? 0 : t < least ? least : next == 0 ? t : std::min(next, t);
      least = least == 0 ? t : std::min(least, t);
      ++batch;
      if (batch >= fewest && (next <= agree * least || batch * times * least >= most_windows * window_)) break;
    }
    note(name, began);
    return least;
  }
  /// The least seconds of a run of probe k that is waited for.
  double alone(std::size_t k, std::string_view name) {
    const double began = clock_();
    double least = timed(k, 1);
    for (int turn = 0; turn < 32; ++turn) least = std::min(least, timed(k, 1));
    note(name, began);
    return least;
  }

 private:
  using session = std::remove_cvref_t<decltype(*std::declval<const Device&>().load(std::vector<owned_plan>()))>;
  const Device& device_;
  const Clock& clock_;
  double window_;
  std::vector<calibration_part>* spent_;
  std::optional<session> session_;
  failure failed_;

  void fail_by(failure f) {
    if (failed_.what.empty()) failed_ = std::move(f);
  }
  void note(std::string_view name, double began) {
    if (spent_ != nullptr) spent_->push_back({name, clock_() - began});
  }
  /// Seconds of a run, of so many one after another; 1 after an error.
  double timed(std::size_t k, int times) {
    if (!failed_.what.empty()) return 1;
    const double began = clock_();
    if (auto r = session_->run_plan_times(k, times); !r) return fail_by(r.error()), 1.0;
    return std::max((clock_() - began) / times, 1e-9);
  }
};
}  // namespace calibrate_detail

/// Measures a device in the precision of T. Times are the least of a few, so that other work on the machine disturbs less.
///
/// @param device  key of the calibration (calibration_key)
/// @param clock   seconds from any start
/// @param spent   gets what each part took; null: nobody asks
/// @error         as the device reports; invalid_model where it lacks a kernel of a probe
template <Target T, class Device, class Clock>
result<calibration> measure_device(const Device& device, const Clock& clock, std::string key,
                                   std::vector<calibration_part>* spent = nullptr) {
  using calibrate_detail::probe;
  using kind = probe::kind;
  constexpr bool host = Device::on_host;
  calibration c;
  c.device = std::move(key), c.format = name_of(T::precision::type);
  const double window = host ? 0.002 : 0.0006;  // seconds of a batch of runs
  calibrate_detail::prober<T, Device, Clock> probes(device, clock, window, spent);
  const double element = double(size_of(T::precision::type));

  // Runs of one small step, of 73 that wait for few others, and of 64 that wait for each other. The first has what a run takes besides its steps.
  // Several products follow each other, so that neither the wait for the host nor a cache that holds one weight makes a figure of them.
  const int several = host ? 2 : 8;
  std::vector<probe> small_ones{{kind::scale, 1, 64}, {kind::apart}, {kind::chain}, {kind::product, 512, 512, 512, several}};
  if (host) small_ones.push_back({kind::product, 32, 512, 512, several});
  probes.load(std::move(small_ones));
  const double none = probes.seconds(0, "a run"), apart = probes.seconds(1, name_of(quantity::launch)),
               chain = probes.seconds(2, name_of(quantity::barrier));
  const double launch = std::max(0.0, apart - none) / (probe::small_steps + 8);
  const double barrier = std::max(0.0, (chain - none) / (probe::small_steps - 1) - launch);
  c.measured(quantity::launch, launch);
  c.measured(quantity::barrier, barrier);
  c.measured(quantity::round_trip, probes.alone(0, name_of(quantity::round_trip)));
  const auto of = [&](quantity q, double amount, std::size_t k, double besides = 0) {
    const double t = probes.seconds(k, name_of(q));
    return amount / std::max(t - none - besides, 0.05 * t);
  };
  const auto of_products = [&](quantity q, int n, double amount, std::size_t k) {
    return of(q, n * amount, k, (n - 1) * (launch + barrier));
  };
  const double small = of_products(quantity::product_small, several, 2.0 * 512 * 512 * 512, 3);
  const double of_32_rows = host ? of_products(quantity::product_small, several, 2.0 * 32 * 512 * 512, 4) : 0;

  // A product that fills the device: the largest that takes at most so many windows, and as many of them as take one.
  const auto flops = [](std::int64_t side) { return 2.0 * double(side * side * side); };
  std::int64_t side = host ? 512 : 1024;
  constexpr double most_windows = host ? 10 : 6;
  while (side < 4096 && flops(2 * side) < most_windows * window * small) side *= 2;
  const int large = int(std::clamp(window * small / flops(side), host ? 1.0 : 2.0, double(several)));
  const std::int64_t B = host ? 1 : side > 2048 ? 8 : side > 1024 ? 4 : 1, S = side <= 1024 ? 256 : host ? 512 : 1024;
  constexpr std::int64_t rows = host ? 1024 : 8192, drawn = host ? 256 : 8192;
  const int weights = int(16 / element);  // 128 MiB, more than most caches hold
  constexpr std::int64_t streamed = std::int64_t(host ? 128 : 64) << 20;
  const std::int64_t sent = (std::int64_t(1) << 20) / 1024 / std::int64_t(element);  // rows of 1 MiB, since each frame has memory for them
  const auto stream = [&](std::int64_t bytes) { return probe{kind::scale, bytes / 2 / std::int64_t(element) / 1024, 1024}; };
  probes.load({{kind::product, side, side, side, large},
               {kind::product, 1, 1024, 8192, weights},
               {kind::product, 8, 1024, 8192, weights},
               {kind::product, 8, 1024, 1024, several},
               {kind::attention, B, S},
               {kind::attention_grad, B, S},
               stream(1 << 20),
               stream(streamed),
               {kind::gelu, rows, 1024},
               {kind::dropout, drawn, 1024},
               {kind::scale, sent, 1024},
               {kind::whole, sent, 1024}});
  const double rate = std::max(small, of_products(quantity::product_large, large, flops(side), 0));
  c.measured(quantity::product_large, rate);
  // What a product takes longer than its operations say is about the same for all on a GPU, which is not full. A processor is, and has it in proportion to them; what
  // remains is the start of its threads, which a product of few rows shows.
  constexpr double of_512 = 2.0 * 512 * 512 * 512, of_32 = 2.0 * 32 * 512 * 512;
  const double longer = host ? std::max(0.0, of_32 / of_32_rows - of_32 / rate) : 0;
  c.measured(quantity::product_small, host ? of_512 / (of_512 / rate + longer) : small);
  const double weight = element * 1024 * 8192;  // bytes
  c.measured(quantity::rows, of_products(quantity::rows, weights, weight, 1));
  // Two weights of eight rows: a time besides that of the bytes, and a rate. On a device where the smaller one takes as long per byte, there is only the rate.
  const double long_one = weight / of_products(quantity::rows_8, weights, weight, 2),
               short_one = weight / 8 / of_products(quantity::few_rows, several, weight / 8, 3);
  const double besides_bytes = std::clamp((8 * short_one - long_one) / 7, 0.0, 0.9 * std::min(short_one, long_one));
  c.measured(quantity::few_rows, besides_bytes);
  c.measured(quantity::rows_8, weight / (long_one - besides_bytes));
  const double macs = double(B * probe::heads * probe::head_size) * (double(S) * double(S + 1) / 2);
  const double forward = of(quantity::attention, 4 * macs, 4);
  c.measured(quantity::attention, forward);
  c.measured(quantity::attention_grad, of(quantity::attention_grad, 10 * macs, 5, 4 * macs / forward));
  c.measured(quantity::stream_small, of(quantity::stream_small, double(1 << 20), 6));
  c.measured(quantity::stream_large, of(quantity::stream_large, double(streamed), 7));
  const auto of_elements = [&](quantity q, std::int64_t n, std::size_t k) {
    const double bytes = 2 * element * double(n);
    return of(q, double(n), k, bytes / calibrate_detail::stream(c, bytes));
  };
  c.measured(quantity::heavy, of_elements(quantity::heavy, rows * 1024, 8));
  c.measured(quantity::random, of_elements(quantity::random, drawn * 1024, 9));
  // The same step twice, of whose result the host gets one row or all. Of several runs in a row, some devices send only the last result.
  const double row = probes.alone(10, "a row"), whole = probes.alone(11, name_of(quantity::readback));
  c.measured(quantity::readback, element * double(sent) * 1024 / std::max(whole - row, 0.05 * whole));
  if (!probes.error().what.empty()) return probes.error();
  return c;
}

/// A calibration and what there is to say of its file, in one line; empty: nothing.
struct loaded_calibration {
  calibration figures;
  bool measured_now = false;
  std::string message;
};
/// Reads the calibration of a device, or measures it and writes the file. The caller makes the file's folder. @error as measure_device
template <Target T, class Device, class Clock>
result<loaded_calibration> load_or_measure(const Device& device, const std::string& path, const std::string& key, const Clock& clock,
                                           std::vector<calibration_part>* spent = nullptr) {
  loaded_calibration r;
  auto there = read_calibrations(path, key);
  r.message = there.ignored;
  if (const calibration* c = there.find(name_of(T::precision::type))) return r.figures = *c, r;
  auto c = measure_device<T>(device, clock, key, spent);
  if (!c) return std::move(c).error();
  r.measured_now = true;
  if (auto w = write_calibration(path, *c); !w && r.message.empty()) r.message = w.error().line();
  r.figures = *std::move(c);
  return r;
}

}  // namespace isotope
