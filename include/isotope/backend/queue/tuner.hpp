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
#include "../session/ports.hpp"
#include "memory_use.hpp"
#include "operand_places.hpp"
#include "time_beside_others.hpp"
#include "variant_cache.hpp"

namespace isotope {

/// What timing needs of a device. `record` lists the dispatches of a plan; `run` makes dispatches ready that run several times, one after the other, and
/// `seconds` of it runs them once more and says how long the device took. `compile` is called before, with all that will be timed, and with all that the plan
/// runs, which a device may compile, too, while others are timed. It may return before they are compiled, and `ready` waits for some of them. A timer may also have
/// `prepare_alone`, of dispatches that run once for each time that the device is told to: then it has nothing of them at hand, such as their instructions, as in a plan, where other kernels ran before.
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

/// One variant of a choice that is being made.
struct timed_variant {
  std::string name;
  double predicted = 0, seconds = 0;  // seconds: the median of several; 0: it was not timed
  bool agrees = true;                 // with the variant of the least predicted time
};

/// The fastest of variants; where several take at most `tie` times as long, the one of the least predicted time among them, so that ties are the same in every run. -1: none agrees and was timed.
inline int fastest_of(std::span<const timed_variant> all, double tie = 1.01) {
  double least = 0;
  for (const auto& v : all)
    if (v.agrees && v.seconds > 0 && (least == 0 || v.seconds < least)) least = v.seconds;
  int best = -1;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].agrees && all[k].seconds > 0 && all[k].seconds <= tie * least &&
        (best < 0 || all[k].predicted < all[std::size_t(best)].predicted))
      best = int(k);
  return best;
}

/// Whether two results of the same sums, added up in different orders, agree: the norm of the difference is at most 2^-6 of the norm of a run of numbers where
/// they are rounded to 16 bits, and 2^-9 where they are not. Rounding differs by at most 2^-7 (bf16) of each number, sums of K products of independent signs by about
/// 2^-23 sqrt(K); a wrong element of such a sum is off by about its size.
inline bool results_agree(dtype type, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (std::equal(a.begin(), a.end(), b.begin(), b.end())) return true;
  if (!is_floating(type)) return false;
  const auto width = std::size_t(size_of(type));
  constexpr std::size_t run = 64;  // elements
  for (std::size_t at = 0; at < a.size() / width; at += run) {
    double difference = 0, size = 0;
    for (std::size_t i = at; i < std::min(at + run, a.size() / width); ++i) {
      const double x = number_at(a.data() + i * width, type), y = number_at(b.data() + i * width, type);
      difference += (x - y) * (x - y);
      size += std::max(x * x, y * y);
    }
    const double bound = size_of(type) == 2 ? 0x1p-6 : 0x1p-9;
    if (!(difference <= bound * bound * size)) return false;
  }
  return true;
}

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
      for (choice& c : missing) {
        if (spent_.comparing + spent_.timing > most_seconds) break;
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
  static constexpr int rounds = 7, most_runs = 50, rounds_behind = 3, rounds_alone = 9;
  static constexpr bool shared = requires { requires T::shared; };  // the device runs other programs meanwhile
  static constexpr double most_alone = 1e-4;                        // seconds: of longer kernels the start does not count
  static constexpr double tie_behind = 1.01, tie_alone = 1.003;     // times the least median, which ties take at most

 private:
  using area = operand_places::area;
  struct choice {
    std::string signature, estimated;
    std::int32_t step = -1;
    std::vector<timed_variant> variants;
    operand_places places;
    std::vector<std::vector<dispatch>> recorded;  // of each variant
  };
  /// Remembers all that the cache does, and one choice otherwise.
  struct one_more : known_choices {
    const variant_cache& cache;
    const std::string &signature, &name;
    one_more(const variant_cache& c, const std::string& s, const std::string& n) : cache(c), signature(s), name(n) {}
    std::string find(const std::string& s) const override { return s == signature ? name : cache.find(s); }
  };
  plan_view plan_;
  variant_cache& cache_;
  T& timer_;
  std::optional<memory> store_;
  std::array<std::int64_t, operand_places::areas> first_{};  // of the areas in the store
  tuning_times spent_;

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
    const one_more known(cache_, c.signature, variant);
    return timer_.record({&known, c.step, places});
  }
  /// Begins to compile the variants of all choices and what else the plan runs, and makes a store for any one of them.
  result<void> reserve(std::vector<choice>& missing, std::span<const dispatch> all) {
    std::array<std::int64_t, operand_places::areas> bytes{};
    std::vector<dispatch> every;
    for (choice& c : missing) {
      record(c, c.estimated, &c.places);
      for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = std::max(bytes[k], c.places.bytes_of(area(k)));
    }
    for (std::size_t k = 1; k < bytes.size(); ++k) first_[k] = first_[k - 1] + (bytes[k - 1] + 255) / 256 * 256;
    auto m = timer_.allocate(first_.back() + bytes.back());
    if (!m) return m.error();
    store_ = *std::move(m);
    for (choice& c : missing) {
      const std::uint64_t at = store_->address();
      c.places.place(at, at + std::uint64_t(first_[1]), at + std::uint64_t(first_[2]));
      for (timed_variant& v : c.variants) {
        c.recorded.push_back(record(c, v.name, &c.places));
        every.insert(every.end(), c.recorded.back().begin(), c.recorded.back().end());
      }
    }
    if (auto r = timer_.compile(every, all); !r) return r;
    if (auto r = timer_.clear(*store_, first_[1], first_[2] - first_[1]); !r) return r;
    return fill(first_[1]);
  }
  /// Numbers of magnitude 0.5 to 2 in every format: zeros would draw less power and time too fast.
  static const std::vector<std::uint32_t>& noise() {
    static const std::vector<std::uint32_t> block = made_noise();
    return block;
  }
  /// No lambda, which would be constexpr: g++ would compute the numbers while it compiles, in 20 s and 2 GB.
  static std::vector<std::uint32_t> made_noise() {
    std::vector<std::uint32_t> all(1 << 20);
    std::uint32_t x = 12345;
    for (auto& w : all) {
      x = x * 1664525u + 1013904223u;
      w = ((x >> 8) & 0x00ff00ffu) | (x & 0x80000000u) | ((x << 7) & 0x8000u) | 0x3f003f00u;
    }
    return all;
  }
  result<void> fill(std::int64_t bytes) {
    const auto block = std::as_bytes(std::span(noise()));
    for (std::int64_t done = 0; done < bytes;) {
      const auto n = std::min<std::int64_t>(bytes - done, std::int64_t(block.size()));
      if (auto r = timer_.upload(*store_, done, block.first(std::size_t(n))); !r) return r;
      done += n;
    }
    return {};
  }

  /// Parts of a result that variants are compared by, spread over it.
  static constexpr std::int64_t most_parts = 64, part_bytes = 4096;
  struct part {
    std::int64_t at = 0, bytes = 0;  // in the store
    dtype type = dtype::f32;
  };
  std::vector<part> parts_of(const operand_places& places) const {
    std::vector<part> parts;
    for (const auto& [r, type] : places.results()) {
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
  result<first_run> run_first(typename T::run& once, const operand_places& places, const std::vector<part>& parts) {
    if (auto r = timer_.clear(*store_, first_[2], places.bytes_of(area::written) / 4 * 4); !r) return r.error();
    std::int64_t bytes = 0;
    for (const part& p : parts) bytes += p.bytes;
    auto t = timer_.seconds(once);
    if (!t) return t.error();
    first_run got{std::vector<std::byte>(std::size_t(bytes), std::byte{}), *t};
    std::vector<memory_piece> pieces;
    std::size_t at = 0;
    for (const part& p : parts) {
      pieces.push_back({p.at, std::span(got.results).subspan(at, std::size_t(p.bytes))});
      at += std::size_t(p.bytes);
    }
    if (auto r = timer_.download(*store_, pieces); !r) return r.error();
    return got;
  }
  static bool agree(const std::vector<part>& parts, std::span<const std::byte> a, std::span<const std::byte> b) {
    std::size_t at = 0;
    for (const part& p : parts) {
      const auto n = std::size_t(p.bytes);
      if (!results_agree(p.type, a.subspan(at, n), b.subspan(at, n))) return false;
      at += n;
    }
    return true;
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
    const std::vector<part> parts = parts_of(c.places);
    const auto first =
        std::size_t(std::find_if(c.variants.begin(), c.variants.end(), [&](const timed_variant& v) { return v.name == c.estimated; }) -
                    c.variants.begin());
    std::vector<std::byte> want;  // what the variant of the least predicted time writes
    std::vector<typename T::run> several(c.variants.size());
    double least = 0;
    for (std::size_t n = 0; n < c.variants.size(); ++n) {
      const std::size_t k = n == 0 ? first : n - (n <= first ? 1 : 0);
      timed_variant& v = c.variants[k];
      auto once = timer_.prepare(c.recorded[k], 1);
      if (!once) return once.error();
      auto got = run_first(*once, c.places, parts);
      if (!got) return got.error();
      if (n == 0) want = got->results;
      v.agrees = agree(parts, want, got->results);
      if (!v.agrees) cache_.say("'" + v.name + "' is not used: its results are not those of '" + c.estimated + "' for " + c.signature);
      constexpr double much = 1.5, is_short = shared ? 3e-3 : 1e-3;
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
      several[k] = *std::move(r);
    }
    took(spent_.comparing);
    const auto tie = time(c, several);
    if (!tie) return tie.error();
    took(spent_.timing);
    ++spent_.choices, spent_.variants += int(c.variants.size());
    const int best = fastest_of(c.variants, *tie);
    return best < 0 ? std::string() : c.variants[std::size_t(best)].name;
  }
  /// Sets the times of variants: the medians of rounds in each of which all run one after the other, so that a clock that changes changes it for all. Those that
  /// take longer than the fastest leave early: a fifth in the first rounds, a tenth once there are three times of each, a twentieth once
  /// there are five. The last one needs no more rounds. Short kernels that are left after three run alone, if the device can do that: behind itself, a kernel starts
  /// sooner than in a plan. Four variants of a product took 19.5 to 21.2 us behind themselves, and alone 21.9 to 26.9, in another order, which is that of plans.
  /// Returns what makes a tie.
  result<double> time(choice& c, std::vector<typename T::run>& several) {
    std::vector<timed_variant>& all = c.variants;
    if constexpr (shared) {
      auto t = time_beside_others(timer_, all, several, rounds);
      return t ? result<double>(tie_behind) : t.error();
    }
    std::vector<std::vector<double>> times(all.size());
    for (int round = 1; round <= rounds; ++round) {
      double least = 0;
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k].seconds < 0) continue;
        auto t = timer_.seconds(several[k]);
        if (!t) return t.error();
        times[k].push_back(*t);
        std::sort(times[k].begin(), times[k].end());
        all[k].seconds = times[k][times[k].size() / 2];
        if (least == 0 || all[k].seconds < least) least = all[k].seconds;
      }
      const double much = round < 3 ? 1.2 : round < 5 ? 1.1 : 1.05;
      int left = 0;
      for (auto& v : all) {
        if (v.seconds > much * least) v.seconds = -1;
        left += v.seconds > 0 ? 1 : 0;
      }
      if (left == 1) break;
      if constexpr (runs_alone)
        if (round == rounds_behind && least < most_alone) return time_alone(all, c, several);
    }
    return tie_behind;
  }
  static constexpr bool runs_alone = requires(T& t, const std::vector<dispatch>& all) {
    { t.prepare_alone(all) } -> std::same_as<result<typename T::run>>;
  };
  /// Sets the times of the variants that are left: medians of rounds in which each runs alone. The first round does not count.
  result<double> time_alone(std::vector<timed_variant>& all, const choice& c, std::vector<typename T::run>& several) {
    std::vector<std::vector<double>> times(all.size());
    for (int round = 0; round <= rounds_alone; ++round)
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k].seconds < 0) continue;
        if (round == 0) {
          auto r = timer_.prepare_alone(c.recorded[k]);
          if (!r) return r.error();
          several[k] = *std::move(r);
        }
        auto t = timer_.seconds(several[k]);
        if (!t) return t.error();
        if (round > 0) times[k].push_back(*t);
        std::sort(times[k].begin(), times[k].end());
        if (round == rounds_alone) all[k].seconds = times[k][times[k].size() / 2];
      }
    return tie_alone;
  }
};

}  // namespace isotope
