#pragma once
/// Times the variants of steps on the device, on memory of their own, and keeps the fastest of those that agree with each other.
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../plan/plan.hpp"
#include "lent_numbers.hpp"
#include "memory_use.hpp"
#include "operand_noise.hpp"
#include "operand_places.hpp"
#include "results_agree.hpp"
#include "variant_cache.hpp"
#include "variant_rounds.hpp"

namespace isotope {

/// What timing needs of a device. `record` lists the dispatches of a plan; `run` makes dispatches ready that run several times, one after the other, and
/// `seconds` of it runs them once more and says how long the device took. `compile` is called before, with all that will be timed, and with all that the plan
/// runs, which a device may compile, too, while others are timed. It may return before they are compiled, and `ready` waits for some of them. A timer may also have
/// `prepare_alone`, of dispatches that are submitted by themselves for each time that they run: then the device has nothing of them at hand, such as their instructions, as in a plan, where other kernels ran before. Its second argument is how many runs
/// last about as long as the host needs to submit some. Its `recordings` is how many such recordings of the same dispatches are to be timed, where each takes a time of its own, by its place in memory. With `copy` between
/// addresses of the device, they run on numbers. Its `page` is the bytes of a page in which operands keep their places; 4,096 without it.
template <class T>
concept VariantTimer = requires(T& t, const step_recording& how, const std::vector<typename T::dispatch>& all, typename T::memory& m,
                                std::span<const std::byte> from, std::span<const memory_piece> pieces, typename T::run& run) {
  requires Dispatch<typename T::dispatch>;
  { t.record(how) } -> std::same_as<std::vector<typename T::dispatch>>;
  { t.compile(all, std::span<const typename T::dispatch>(all)) } -> std::same_as<result<void>>;
  { t.ready(all) } -> std::same_as<result<void>>;
  { t.allocate(std::int64_t{}) } -> std::same_as<result<typename T::memory>>;
  { t.clear(m, std::int64_t{}, std::int64_t{}) } -> std::same_as<result<void>>;
  { t.upload(m, std::int64_t{}, from) } -> std::same_as<result<void>>;
  { t.download(m, pieces) } -> std::same_as<result<void>>;
  { t.prepare(all, int{}) } -> std::same_as<result<typename T::run>>;
  { t.seconds(run) } -> std::same_as<result<double>>;
};

/// Makes the choices that a cache lacks, for the steps of a plan that are recorded.
template <VariantTimer T> class tuner {
 public:
  using dispatch = typename T::dispatch;
  using memory = typename T::memory;

  tuner(const plan_view& p, variant_cache& cache, T& timer) : plan_(p), cache_(cache), timer_(timer) {}

  /// Returns whether choices were made by timing: then the plan is to be recorded again. Without memory, or after `most_seconds`, the rest keeps the fastest by estimate,
  /// and is timed when it is recorded again. A device that fails says so when it is used next.
  bool settle(std::span<const dispatch> all) {
    std::vector<choice> missing = missing_of(all);
    if (missing.empty()) return false;
    if (cache_.level() != tuning::measure) {
      for (const choice& c : missing) cache_.put_estimated(c.signature, c.estimated);
      return false;
    }
    std::erase_if(missing, [&](const choice& c) {
      if (c.variants.size() > 1) return false;
      cache_.put_measured(c.signature, c.estimated);  // no other can be faster
      return true;
    });
    if (missing.empty()) return false;
    bool any = false;
    const auto measured = [&]() -> result<void> {
      const double began = monotonic_seconds();
      if (auto r = reserve(missing, all); !r) return r;
      spent_.preparing += monotonic_seconds() - began;
      std::size_t left = missing.size();
      for (choice& c : missing) {
        const double rest = most_seconds - spent_.comparing - spent_.timing;
        if (rest < 0) break;
        share_ = rest / double(left--);
        auto chosen = fastest(c);
        if (!chosen) return chosen.error();
        if (chosen->empty()) continue;
        cache_.put_measured(c.signature, *chosen);
        any = true;
      }
      return {};
    }();
    store_.reset();
    cache_.spend(spent_);
    if (!measured) cache_.say("variants of kernels were not timed: " + measured.error().line());
    return any;
  }

  static constexpr double most_seconds = 1.5;     // of all choices of a plan, after compilation
  static constexpr double most_predicted = 3;     // times the least predicted time: slower variants are not timed
  static constexpr double window_seconds = 2e-4;  // of one measurement
  static constexpr int most_runs = 50, rounds_behind = 3;
  static constexpr double warm_seconds =
      0.05;  // before the first choice of a plan: an idle device takes a while until its clock is that of work
  static constexpr bool shared = requires { requires T::shared; };  // the device runs other programs meanwhile
  static constexpr double most_alone = 5e-4;                        // seconds: of longer kernels the start does not count
  static constexpr double most_recorded = 1e-4;                     // seconds: of longer kernels the place of the recording does not count
  static constexpr double unlimited = 1e9;                          // times the least time: nothing leaves
  static constexpr double tie_behind = 1.01, tie_alone = 1.003;     // times the least time, which ties take at most

 private:
  using area = operand_places::area;
  using runs = std::vector<std::vector<typename T::run>>;  // of each variant
  struct choice {
    std::string signature, estimated;
    std::int32_t step = -1;
    std::vector<timed_variant> variants;
    operand_places places{page_of<T>()};
    std::vector<std::vector<dispatch>> recorded;  // of each variant
    std::size_t results = 0;                      // of the step, the first of those of `places`
  };
  plan_view plan_;
  variant_cache& cache_;
  T& timer_;
  std::optional<memory> store_;
  std::array<std::int64_t, operand_places::areas> first_{};  // of the areas in the store
  std::int64_t kept_ = 0, kept_bytes_ = 0;                   // behind them: what the plan has where numbers are lent to it
  tuning_times spent_;
  double share_ = 0;  // seconds that a choice may take, so that there is time for all
  int cold_ = 100;    // runs until the device is warm

  /// Whether the sizes of a step are the same in every run.
  bool steady(std::int32_t k) const {
    const step& s = plan_.steps[std::size_t(k)];
    const auto operands = plan_.operands.subspan(std::size_t(s.operands), std::size_t(s.inputs + s.outputs));
    return std::none_of(operands.begin(), operands.end(), [](const operand& o) { return o.dims.has_scalar(); });
  }
  std::vector<choice> missing_of(std::span<const dispatch> all) const {
    std::vector<choice> missing;
    for (const dispatch& d : all) {
      if (d.choice.empty() || d.considered.empty() || !steady(d.step)) continue;
      choice c;
      c.signature = d.choice, c.step = d.step;
      const auto known = cache_.find(d.choice);
      bool there = false;  // a variant of that name
      double least = 0;
      for (const considered_variant& v : d.considered) {
        if (!v.unfit.empty()) continue;
        there = there || v.name == known;
        if (c.estimated.empty() || v.seconds < least) c.estimated = v.name, least = v.seconds;
      }
      for (const considered_variant& v : d.considered)
        if (v.unfit.empty() && v.seconds <= most_predicted * least) c.variants.push_back({v.name, v.seconds});
      if (there || c.variants.empty() ||
          std::any_of(missing.begin(), missing.end(), [&](const choice& o) { return o.signature == c.signature; }))
        continue;
      missing.push_back(std::move(c));
    }
    return missing;
  }
  std::vector<dispatch> record(const choice& c, const std::string& variant, operand_places* places) {
    const one_more_choice known(cache_, c.signature, variant);
    return timer_.record({&known, c.step, places});
  }
  /// What runs behind a step in its plan, on the memory of `places`, too; nothing if it has more bytes, is a product or an exchange with other devices.
  std::vector<dispatch> record_next(const choice& c, operand_places& places) {
    const std::int32_t k = c.step + 1;
    if (k >= std::int32_t(plan_.steps.size()) || !steady(k)) return {};
    const op_info& op = *plan_.steps[std::size_t(k)].op;
    if (op.collective || op.gemm_operands > 0 || bytes_of_step(k) > bytes_of_step(c.step)) return {};
    return timer_.record({&cache_, k, &places});
  }
  std::int64_t bytes_of_step(std::int32_t k) const {
    const step& s = plan_.steps[std::size_t(k)];
    std::int64_t n = 0;
    for (const operand& o : plan_.operands.subspan(std::size_t(s.operands), std::size_t(s.inputs + s.outputs))) n += o.bytes;
    return n;
  }
  /// Begins to compile the variants of all choices and what else the plan runs, and makes a store for any one of them.
  result<void> reserve(std::vector<choice>& missing, std::span<const dispatch> all) {
    std::array<std::int64_t, operand_places::areas> bytes{};
    std::vector<dispatch> every;
    for (choice& c : missing) {
      record(c, c.estimated, &c.places);
      c.results = c.places.results().size();
      if constexpr (runs_alone) record_next(c, c.places);
      for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = std::max(bytes[k], c.places.bytes_of(area(k)));
      const bool is_short = std::any_of(c.variants.begin(), c.variants.end(), [](const auto& v) { return v.predicted < most_alone; });
      if (CopiesOnDevice<T> && is_short) kept_bytes_ = std::max(kept_bytes_, c.places.bytes_of(area::noise));
    }
    for (std::size_t k = 1; k < bytes.size(); ++k) first_[k] = first_[k - 1] + (bytes[k - 1] + 255) / 256 * 256;
    kept_ = first_.back() + (bytes.back() + 255) / 256 * 256;
    auto m = timer_.allocate(kept_ + kept_bytes_);
    if (!m) return m.error();
    store_ = *std::move(m);
    for (choice& c : missing) {
      const std::uint64_t at = store_->address();
      c.places.place(at, at + std::uint64_t(first_[1]), at + std::uint64_t(first_[2]));
      for (timed_variant& v : c.variants) {
        c.recorded.push_back(record(c, v.name, &c.places));
        every.insert(every.end(), c.recorded.back().begin(), c.recorded.back().end());
      }
      if constexpr (runs_alone) {
        const auto next = record_next(c, c.places);
        every.insert(every.end(), next.begin(), next.end());
      }
    }
    if (auto r = timer_.compile(every, all); !r) return r;
    if (auto r = timer_.clear(*store_, first_[1], first_[2] - first_[1]); !r) return r;
    return fill(first_[1]);
  }
  result<void> fill(std::int64_t bytes) {
    const auto block = std::as_bytes(std::span(operand_noise()));
    for (std::int64_t done = 0; done < bytes;) {
      const auto n = std::min<std::int64_t>(bytes - done, std::int64_t(block.size()));
      if (auto r = timer_.upload(*store_, done, block.first(std::size_t(n))); !r) return r;
      done += n;
    }
    return {};
  }

  /// Parts of a result that variants are compared by, spread over it.
  static constexpr std::int64_t most_parts = 64, part_bytes = 4096;
  std::vector<result_part> parts_of(const choice& c) const {
    std::vector<result_part> parts;
    const operand_places& places = c.places;
    for (std::size_t i = 0; i < c.results; ++i) {
      const auto& [r, type] = places.results()[i];
      const auto first = std::int64_t(places.at(r.first) - store_->address()), n = std::min(r.bytes(), part_bytes) / 4 * 4;
      const std::int64_t count = n == 0 ? 0 : std::min(most_parts, (r.bytes() + n - 1) / n);
      for (std::int64_t k = 0; k < count; ++k)
        parts.push_back({first + (count == 1 ? 0 : (r.bytes() - n) * k / (count - 1) / 16 * 16), n, type});
    }
    return parts;
  }
  struct first_run {
    std::vector<std::byte> results;
    double seconds = 0;
  };
  /// Runs a variant on the same numbers as every other, with zeros where it writes.
  result<first_run> run_first(typename T::run& once, const operand_places& places, const std::vector<result_part>& parts) {
    if (auto r = timer_.clear(*store_, first_[2], places.bytes_of(area::written) / 4 * 4); !r) return r.error();
    std::int64_t bytes = 0;
    for (const result_part& p : parts) bytes += p.bytes;
    auto t = timer_.seconds(once);
    if (!t) return t.error();
    first_run got{std::vector<std::byte>(std::size_t(bytes), std::byte{}), *t};
    std::vector<memory_piece> pieces;
    std::size_t at = 0;
    for (const result_part& p : parts) {
      pieces.push_back({p.at, std::span(got.results).subspan(at, std::size_t(p.bytes))});
      at += std::size_t(p.bytes);
    }
    if (auto r = timer_.download(*store_, pieces); !r) return r.error();
    return got;
  }

  /// The name of the fastest variant; empty: none could be timed.
  result<std::string> fastest(choice& c) {
    double began = monotonic_seconds();
    const auto took = [&](double& of) {
      const double ended = monotonic_seconds();
      of += ended - std::exchange(began, ended);
    };
    for (const auto& all : c.recorded)
      if (auto r = timer_.ready(all); !r) return r.error();
    took(spent_.compiling);
    const std::vector<result_part> parts = parts_of(c);
    const auto first =
        std::size_t(std::find_if(c.variants.begin(), c.variants.end(), [&](const timed_variant& v) { return v.name == c.estimated; }) -
                    c.variants.begin());
    std::vector<std::byte> want;  // what the variant of the least predicted time writes
    runs several(c.variants.size());
    double least = 0;
    for (std::size_t n = 0; n < c.variants.size(); ++n) {
      const std::size_t k = n == 0 ? first : n - (n <= first ? 1 : 0);
      timed_variant& v = c.variants[k];
      auto once = timer_.prepare(c.recorded[k], 1);
      if (!once) return once.error();
      auto got = run_first(*once, c.places, parts);
      if (!got) return got.error();
      if (n == 0) want = got->results;
      v.agrees = results_agree(parts, want, got->results);
      if (!v.agrees) cache_.say("'" + v.name + "' is not used: its results are not those of '" + c.estimated + "' for " + c.signature);
      constexpr double much = shared ? 2.5 : 1.5, is_short = shared ? 2e-2 : 1e-3;  // of a processor: others may slow any run down by half
      const int more = !v.agrees || (n == 0 && !shared) ? 0 : shared ? 4 : 2;
      for (int again = 0; again < more && got->seconds > much * least && got->seconds < is_short; ++again) {
        auto t = timer_.seconds(*once);  // a single run of a short kernel is not precise
        if (!t) return t.error();
        got->seconds = std::min(got->seconds, *t);
      }
      if (v.agrees && (least == 0 || got->seconds < least)) least = got->seconds;
      if (!v.agrees || got->seconds > much * least) {
        v.seconds = -1;
        continue;
      }
      auto r = timer_.prepare(c.recorded[k], int(std::clamp(window_seconds / std::max(got->seconds, 1e-9), 1.0, double(most_runs))));
      if (!r) return r.error();
      several[k].push_back(*std::move(r));
    }
    took(spent_.comparing);
    if constexpr (runs_alone)
      for (const double end = began + warm_seconds; cold_ > 0; cold_ = monotonic_seconds() > end ? 0 : cold_ - 1)
        if (auto t = timer_.seconds(several[first].front()); !t) return t.error();
    const auto tie = time(c, several);
    if (!tie) return tie.error();
    took(spent_.timing);
    ++spent_.choices, spent_.variants += int(c.variants.size());
    const int best = fastest_of(c.variants, *tie);
    return best < 0 ? std::string() : c.variants[std::size_t(best)].name;
  }
  /// Sets the times of variants, and returns what makes a tie. From the third round on, those leave that take a tenth longer than the fastest, from the fifth on a twentieth. Before, one disturbed
  /// run would do it. Kernels of less than 0.5 ms that are left after three rounds run alone, if the device can do that: behind itself, a kernel starts
  /// sooner than in a plan. Four variants of a product took 19.5 to 21.2 us behind themselves, and alone 21.9 to 26.9, in another order, which is that of plans; so of short ones only those leave before that take a quarter longer.
  result<double> time(choice& c, runs& several) {
    std::vector<timed_variant>& all = c.variants;
    turns how{.tie = tie_behind, .much = [](int round, double) { return round < 3 ? unlimited : round < 5 ? 1.1 : 1.05; }};
    if constexpr (shared) {
      // Other programs only make a run longer, so the least of many counts, and while the order is not known, there is time for more where few choices are to be made. Nothing leaves early but what takes twice as long.
      how = {.part = 0,
             .tie = tie_behind,
             .usual = 40,
             .most = 120,
             .usual_seconds = 0.02,
             .most_seconds = std::max(0.06, share_),
             .much = [](int round, double) { return round < 3   ? unlimited
                                                    : round < 7 ? 2
                                                                : 1.2; }};
    } else if constexpr (runs_alone) {
      turns first = how;
      first.least = first.usual = first.most = rounds_behind;
      first.much = [](int round, double least) { return round < 3 ? unlimited : least < 1e-4 ? 1.25 : 1.1; };
      const auto least = by_turns(timer_, all, several, first);
      if (!least) return least.error();
      const auto left = std::count_if(all.begin(), all.end(), [](const auto& v) { return v.seconds > 0; });
      if (left == 1) return tie_behind;
      if (*least < most_alone) return on_numbers(c, [&] { return time_alone(all, c, *least, several); });
    }
    auto t = by_turns(timer_, all, several, how);
    return t ? result<double>(tie_behind) : t;
  }
  static constexpr bool runs_alone = requires(T& t, const std::vector<dispatch>& all) {
    { t.prepare_alone(all, int{}) } -> std::same_as<result<typename T::run>>;
  };
  /// Whether all that a choice's steps write of these bytes lasts no longer than a run.
  bool temporary(const choice& c, const byte_range& r) const {
    for (std::size_t i = 0; i < c.places.results().size(); ++i) {
      const bool own = i < c.results;
      const step& s = plan_.steps[std::size_t(own ? c.step : c.step + 1)];
      const std::size_t k = std::size_t(s.operands + s.inputs) + (own ? i : i - c.results);
      if (c.places.results()[i].bytes.overlaps(r) && plan_.operands[k].region != value_kind::temp) return false;
    }
    return true;
  }
  static constexpr int recordings = [] {
    if constexpr (requires { T::recordings; }) return T::recordings;
    else return 1;
  }();
  /// Calls f() while the plan has numbers where a choice only reads, if there is memory to keep what it has.
  template <class F> result<double> on_numbers(const choice& c, const F& f) {
    if constexpr (CopiesOnDevice<T>)
      if (c.places.bytes_of(area::noise) <= kept_bytes_) {
        const std::uint64_t kept = store_->address() + std::uint64_t(kept_);
        if (auto r = lend_numbers(timer_, c.places, kept); !r) return r.error();
        auto got = f();
        if (auto r = take_numbers_back(timer_, c.places, kept); !r) return r.error();
        return got;
      }
    return f();
  }
  /// Sets the times of the variants that are left, from rounds in which each runs alone, with what follows it in the plan. They read what they read in the plan, where that lies, since times depend by some percent
  /// on the places of operands in memory, and write where the plan keeps what lasts no longer than a run. The first run of each does not count. Of several recordings the medium one counts.
  ///
  /// @param least  of the variants' seconds
  result<double> time_alone(std::vector<timed_variant>& all, const choice& c, double least, runs& several) {
    operand_places places = c.places;
    places.stay([&](const byte_range& r) { return temporary(c, r); });
    const std::vector<dispatch> next = record_next(c, places);
    const int count = least < most_recorded ? recordings : 1;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].seconds <= 0) continue;
      std::vector<dispatch> dispatches = record(c, all[k].name, &places);
      dispatches.insert(dispatches.end(), next.begin(), next.end());
      if (auto r = timer_.ready(dispatches); !r) return r.error();
      several[k].clear();
      for (int n = 0; n < count; ++n) {
        auto r = timer_.prepare_alone(dispatches, int(std::clamp(window_seconds / all[k].seconds, 1.0, double(most_runs))));
        if (!r) return r.error();
        several[k].push_back(*std::move(r));
      }
      if (auto t = timer_.seconds(several[k].front()); !t) return t.error();
    }
    turns how{.tie = tie_alone, .least = 9, .usual = 9, .much = [](int round, double) {
                return round < 3 ? unlimited : round < 5 ? 1.2 : 1.1;
              }};
    if (count > 1) how.part = 0.5, how.least = how.usual = std::max(count, 9), how.most = std::max(how.most, 3 * how.least);
    auto t = by_turns(timer_, all, several, how);
    return t ? result<double>(tie_alone) : t;
  }
};

}  // namespace isotope
