#pragma once
/// The runs that bench_variants compares: a plan with each variant of a kernel, in the same memory where a device has a clock.
#include <isotope/backend/queue/host_clock.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "measure.hpp"
#include "variant_problems.hpp"

namespace bench {
using target = iso::selected;
using device = iso::device<target>;
using session = typename device::session;
using variants = std::vector<iso::considered_variant>;
inline constexpr bool on_host = device::on_host;

/// The name of a variant without the parts of K, which depend on the sizes.
inline std::string tile_of(const std::string& name) { return name.substr(0, name.find(", K in")); }

/// What is measured: `model` with the sizes, and, of a gradient, the row of the forward step alone.
struct problem {
  std::variant<product, attention_step, cached_step> model;
  int before = -1;
  std::string text() const {
    return std::visit([](const auto& m) { return m.text(); }, model);
  }
};

/// A problem that a device has loaded.
struct loaded_problem {
  session s;
  double loading = 0;                  // seconds
  bool gradient = false;               // whether the forward step is not part of what is measured
  std::vector<variants> choices = {};  // of each step that has one
};
/// Loads a problem and runs it twice: a single run may read its inputs from the host's memory, and leave none on the device.
inline iso::result<std::shared_ptr<loaded_problem>> load(const device& d, const problem& p) {
  auto plan = std::visit([](const auto& m) { return iso::plan_inference<target>(m); }, p.model);
  if (!plan) return std::move(plan).error();
  const double start = seconds();
  auto loaded = d.load(*std::move(plan));
  if (!loaded) return std::move(loaded).error();
  auto made = std::make_shared<loaded_problem>(loaded_problem{*std::move(loaded), seconds() - start});
  if (const auto* attention = std::get_if<attention_step>(&p.model)) made->gradient = attention->gradient;
  session& s = made->s;
  s.initialize(1);
  if (const auto* cached = std::get_if<cached_step>(&p.model)) {
    for (const char* label : {"sequence", "position"}) {
      auto in = s.template input<std::int32_t>(label);
      if (!in) return in.error();
      for (std::size_t k = 0; k < in->size(); ++k) (*in)[k] = std::int32_t(label[0] == 's' ? std::int64_t(k) : cached->filled - 1);
    }
  }
  for (const std::string& text : s.queue().messages()) std::printf("%s\n", text.c_str());
  for (const auto& l : s.launches(iso::phase_always))
    if (!l.considered.empty()) made->choices.push_back(l.considered);
  if (auto r = s.run_plan_times(0, 2); !r) return r.error();
  return made;
}

/// Runs of a loaded problem by the host's clocks, as the library times variants there (host_clock.hpp).
template <class Device, class Loaded> class host_runs {
 public:
  static iso::result<host_runs> create(const Device& d, std::shared_ptr<Loaded> p, const std::string& variant) {
    host_runs r;
    r.threads_ = d.threads();
    for (std::size_t k = 0; k < p->s.plan().steps.size(); ++k) {
      r.names_.emplace_back();
      for (const auto& v : p->s.bound_plan().considered(k))
        if (v.unfit.empty() && tile_of(v.name) == variant) r.names_.back() = v.name;
    }
    r.problem_ = std::move(p);
    return r;
  }
  iso::result<double> seconds() {
    problem_->s.bound_plan().remember(names_);
    const auto first = timed(1);  // another variant has left its caches
    if (!first) return first;
    if (times_ == 0) times_ = std::clamp(int(0.0005 / std::max(*first, 1e-7)), 1, 64);
    return timed(times_);
  }

 private:
  std::shared_ptr<Loaded> problem_;
  std::vector<std::string> names_;  // of variants, by step
  int times_ = 0,
      threads_ =
          1;  // runs of one measurement, which takes 0.5 ms: other programs come at any time, so many short ones say more than few long ones
  iso::result<double> timed(int times) {
    iso::result<void> ran;
    const double seconds = iso::seconds_alone(threads_, [&] { ran = problem_->s.run_plan_times(0, times); });
    if (!ran) return ran.error();
    return seconds / times;
  }
};

/// Runs of a loaded problem by the device's clock, each submitted by itself, behind others of the same kind: as the library times short variants. Copies from and to the host are left out,
/// and the forward step before a gradient. Of short ones several recordings take turns, since each has a time of its own.
template <class Device, class Loaded> class device_runs {
  using timer = decltype(std::declval<Loaded&>().s.queue().timer());

 public:
  /// Records the problem with a variant whose name begins so; empty: as the library chooses.
  static iso::result<device_runs> create(const Device& d, std::shared_ptr<Loaded> p, const std::string& variant) {
    device_runs r;
    d.shared()->ask_for(variant);
    auto all = p->s.dispatches();
    d.shared()->ask_for({});
    std::erase_if(
        all, [&](const auto& x) { return x.step < 0 || (p->gradient && p->s.plan().steps[std::size_t(x.step)].op->name == "attention"); });
    r.timer_ = std::unique_ptr<timer>(new timer(p->s.queue().timer()));
    if (auto made = r.timer_->compile({}, {}); !made) return made.error();
    if (auto made = r.timer_->ready(all); !made) return made.error();
    auto once = r.timer_->prepare_alone(all, 1);
    if (!once) return once.error();
    if (auto first = r.timer_->seconds(*once); !first) return first.error();  // code is loaded
    const auto first = r.timer_->seconds(*once);
    if (!first) return first.error();
    const int before = std::clamp(int(2e-4 / std::max(*first, 1e-7)), 1, 50), recordings = *first < 1e-4 ? 16 : 2;
    for (int k = 0; k < recordings; ++k) {
      auto run = r.timer_->prepare_alone(all, before);
      if (!run) return run.error();
      r.runs_.push_back(*std::move(run));
    }
    r.problem_ = std::move(p);
    return r;
  }
  iso::result<double> seconds() { return timer_->seconds(runs_[next_++ % runs_.size()]); }

 private:
  std::shared_ptr<Loaded> problem_;
  std::unique_ptr<timer> timer_;
  std::vector<typename timer::run> runs_;  // by recording
  std::size_t next_ = 0;
};

template <class Device> struct runs_of {
  using type = host_runs<Device, loaded_problem>;
};
template <class Device> requires(!Device::on_host) struct runs_of<Device> {
  using type = device_runs<Device, loaded_problem>;
};
using runs = typename runs_of<device>::type;

/// What is compared: runs, and the time of each in every round.
struct contender {
  std::string name;  // of the variant
  runs of;
  std::vector<double> rounds = {};
  bool left = false;  // it was too slow to be the fastest
  /// The least on a processor, since other programs only make a run longer; on a device with a clock of its own the median, of rounds in which recordings take turns.
  double seconds() const {
    std::vector<double> sorted = rounds;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[on_host ? 0 : (sorted.size() - 1) / 2];
  }
};

/// Runs contenders for spans of 0.1 s until one does not make them faster: a device that was idle runs some of them up to four times as long at first.
inline iso::result<void> warm_up(const std::vector<contender*>& all) {
  double before = 0;
  for (int span = 0; !on_host && span < 10; ++span) {
    std::vector<double> fastest(all.size(), 0);
    for (const double end = seconds() + 0.1; seconds() < end;)
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto t = all[k]->of.seconds();
        if (!t) return t.error();
        if (fastest[k] == 0 || *t < fastest[k]) fastest[k] = *t;
      }
    const double sum = std::accumulate(fastest.begin(), fastest.end(), 0.0);
    if (span > 0 && sum > 0.98 * before) break;
    before = sum;
  }
  return {};
}

/// Times contenders by turns, each round beginning with the next one: at least `least` rounds, and more until `span` seconds for each of them are over. Those whose times are so much longer than the
/// least that they cannot be the fastest leave after three rounds (1.5 times), after six (1.2) and after twelve (1.1).
/// `more`: after the rounds that were.
inline iso::result<void> by_turns(const std::vector<contender*>& all, int least, double span, bool more = false) {
  if (auto warm = warm_up(all); !warm) return warm;
  for (contender* c : all) {
    if (!more) c->rounds.clear();
    c->left = false;
  }
  const double end = seconds() + span * double(all.size());
  int count = least;
  for (int round = 0; round < count || seconds() < end; ++round) {
    double fastest = 0, whole = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      contender& c = *all[(k + std::size_t(round)) % all.size()];
      if (c.left) continue;
      const double began = seconds();
      const auto t = c.of.seconds();
      if (!t) return t.error();
      c.rounds.push_back(*t);
      whole = std::max(whole, seconds() - began);
    }
    if (round == 0) count = whole > 0.5 ? 2 : whole > 0.1 ? std::min(least, 4) : least;  // large products of a processor
    for (contender* c : all)
      if (!c->left && (fastest == 0 || c->seconds() < fastest)) fastest = c->seconds();
    const double much = round + 1 < 3 ? 0 : round + 1 < 6 ? 1.5 : round + 1 < 12 ? 1.2 : 1.1;
    for (contender* c : all) c->left = c->left || (much > 0 && c->name != "forward" && c->seconds() > much * fastest);
  }
  return {};
}

}  // namespace bench
