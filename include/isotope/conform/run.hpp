#pragma once
/// A run: it passes the cases of a selection and a shard through an executor and counts the results. It saves its progress and continues from there.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batch_runner.hpp"
#include "case_stream.hpp"
#include "checkpoint.hpp"
#include "enumerate.hpp"
#include "ordered_pool.hpp"
#include "progress.hpp"

namespace isotope::conform {

inline constexpr std::int64_t usual_batch = 1024, largest_batch = 1048576;

struct run_options {
  selection cases;
  shard_of shard;
  std::int64_t batch = usual_batch;        // most cases that are dispatched together
  std::int64_t batch_elems = 1 << 20;      // a batch with so many operand elements is full
  std::uint64_t skip = 0;                  // cases with smaller numbers do not run
  std::string checkpoint_file;             // empty: none
  bool resume = false;                     // continue from checkpoint_file, if it exists
  std::uint64_t progress_interval = 1000;  // cases
  std::vector<test_case> first;            // known regressions, which run before everything else
  bool one_op = false;                     // each batch holds cases of one op
  /// Ops known not to end, with the reason: their cases fail without running.
  std::map<std::string, std::string, std::less<>> endless;
};

/// Everything that determines the results: checkpoints of other runs are refused.
inline std::string run_digest(const run_options& o, const target_facts& on, const device_info& d) {
  std::string s = std::string(on.backend) + "/" + std::string(on.set) + "/" + std::string(name_of(on.program)) + "/" + d.name + "/" +
                  d.driver + "/" + std::string(hex_text(registry_hash()).view()) + "/" + std::to_string(o.cases.seed) + "/" +
                  std::string(name_of(o.cases.how)) + "/" + std::to_string(o.cases.multiple) + "/" + std::to_string(o.shard.index) + "/" +
                  std::to_string(o.shard.count) + "/" + std::to_string(o.skip) + "/" + std::to_string(o.first.size()) + "/" + on.launch;
  for (const spec* p : o.cases.ops) s += "," + std::string(p->name);
  return sha256::of(s);
}

class conformance_run : private case_visitor {
 public:
  /// `more`: executors of the same target, each for its own thread, so that batches run concurrently. The results are the same.
  conformance_run(executor& on, run_options o, progress_sink& heard, std::span<executor* const> more = {})
      : on_(on), facts_(on.facts()), o_(std::move(o)), heard_(heard) {
    runners_.push_back(std::make_unique<batch_runner>(on));
    for (executor* e : more) runners_.push_back(std::make_unique<batch_runner>(*e));
  }

  /// @error invalid_argument (a batch out of range, a broken stream of cases), device_lost, timeout, write_failed, and those of the checkpoint
  result<counts> run() {
    if (o_.batch < 1 || o_.batch > largest_batch)
      return fail(errc::invalid_argument, "a batch of " + std::to_string(o_.batch) + " cases", "--batch",
                  "1 to " + std::to_string(largest_batch));
    const std::string digest = run_digest(o_, facts_, on_.device());
    next_ = o_.skip;
    if (o_.resume && !o_.checkpoint_file.empty()) {
      auto c = load_checkpoint(o_.checkpoint_file, digest);
      if (!c && c.error().code != errc::not_found) return c.error();
      if (c) {
        next_ = c->next;
        counted_ = std::move(c->counted);
        resumed_ = true;
      }
    }
    run_ = digest;
    if (auto r = count_cases(); !r) return r.error();
    if (!resumed_) {
      for (const test_case& c : o_.first) {
        auto o = results_of(*runners_[0], {&c, 1});
        if (!o) return o.error();
        counted_.regressions[sha256::of(record_of(c))] = name_of((*o)[0].is);
      }
    }
    std::vector<worker> workers;
    for (const auto& r : runners_) workers.push_back({this, r.get()});
    pool_.emplace(std::move(workers));
    const auto ran = run_all();
    pool_.reset();
    if (!ran) return ran.error();
    heard_.at({done_, total_, counted_.total().failed, counted_.total().unsupported});
    return counted_;
  }
  runner_counters counters() const {
    runner_counters all;
    for (const auto& r : runners_) all.add(r->counters());
    return all;
  }

 private:
  /// Cases that run together, and their results.
  struct batch_job {
    std::vector<test_case> cases;
    std::uint64_t next = 0;  // the first case after it
    const void* key = nullptr;
    result<std::vector<case_result>> all = std::vector<case_result>{};
    // of its runner, up to this batch
    std::set<std::string_view> reached{};
    std::set<std::string> tiers{};
    std::map<std::string, launch_counts> launches{};
    std::map<std::string, std::string> variants{};
  };
  struct worker {
    conformance_run* run;
    batch_runner* on;
    void operator()(batch_job& b) const {
      b.all = run->results_of(*on, b.cases);
      b.reached = on->reached();
      b.tiers = on->tiers();
      b.launches = on->launches();
      b.variants = on->variants();
    }
  };
  // Memory is bounded: at most so many batches, or cases, wait behind a slow one.
  static constexpr std::size_t most_batches = 64, most_waiting = 4096;

  executor& on_;
  target_facts facts_;
  run_options o_;
  std::vector<std::unique_ptr<batch_runner>> runners_;
  progress_sink& heard_;
  std::mutex begins_;
  counts counted_;
  std::vector<test_case> pending_;
  std::int64_t pending_elems_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t next_ = 0, done_ = 0, total_ = 0, told_ = 0;
  bool resumed_ = false;
  std::string run_;
  failure failure_;
  case_stream counted_stream_, stream_;
  std::optional<ordered_pool<batch_job, worker>> pool_;

  struct counter final : case_visitor {
    shard_of shard;
    std::uint64_t from = 0, n = 0;
    case_stream* stream = nullptr;
    bool visit(test_case&& c) override {
      stream->add(c);
      n += c.id >= from && shard.takes(c.id) ? 1 : 0;
      return true;
    }
  };
  result<void> count_cases() {
    counter c;
    c.shard = o_.shard;
    c.from = next_;
    c.stream = &counted_stream_;
    for_each_case(o_.cases, c);
    total_ = c.n;
    return counted_stream_.check(o_.cases.ops);
  }

  static std::int64_t elems_of(const test_case& c) {
    std::int64_t n = 0;
    for (const operand_recipe& x : c.in) n += x.dims.count();
    return n;
  }

  bool visit(test_case&& c) override {
    stream_.add(c);
    if (!o_.shard.takes(c.id)) return true;
    if (c.id < o_.skip && !resumed_) counted_.count(c, skipped_because("its number is below " + std::to_string(o_.skip)));
    if (c.id < next_) return true;
    const bool other = !pending_.empty() && (!(pending_[0].scalars == c.scalars) || (apart() && pending_[0].of != c.of));
    const bool full = std::int64_t(pending_.size()) == o_.batch || pending_elems_ >= o_.batch_elems || other;
    if (full)
      if (auto r = flush(c.id); !r) failure_ = r.error();
    pending_elems_ += elems_of(c);
    pending_.push_back(std::move(c));
    return failure_.what.empty();
  }
  bool apart() const { return o_.one_op || !o_.endless.empty(); }
  result<std::vector<case_result>> results_of(batch_runner& on, std::span<const test_case> cases) {
    {
      const std::lock_guard lock(begins_);
      heard_.begins(cases[0].of->name);
    }
    if (const auto known = o_.endless.find(cases[0].of->name); known != o_.endless.end())
      return std::vector<case_result>(cases.size(),
                                      failed_because(known->second, "run it with --ops " + known->first + " --budget 0 under a debugger"));
    return on.run(cases);
  }
  result<void> run_all() {
    for_each_case(o_.cases, *this);
    if (!failure_.what.empty()) return failure_;
    if (auto r = counted_stream_.check_same(stream_); !r) return r;
    if (auto r = flush(std::numeric_limits<std::uint64_t>::max()); !r) return r;
    while (pool_->size() > 0)
      if (auto r = count(pool_->oldest()); !r) return r;
    if (!o_.checkpoint_file.empty()) return save({run_, std::numeric_limits<std::uint64_t>::max(), counted_}, o_.checkpoint_file);
    return {};
  }
  /// Submits the collected cases; `next` is the first case after them.
  result<void> flush(std::uint64_t next) {
    waiting_ += pending_.size();
    if (!pending_.empty()) {
      const void* key = facts_.gpu ? pending_[0].of : nullptr;  // opening a device compiles an op's kernels each time
      pool_->submit({.cases = std::exchange(pending_, {}), .next = next, .key = key});
    }
    pending_elems_ = 0;
    while (pool_->ready() || pool_->size() >= most_batches || (waiting_ > most_waiting && pool_->size() > runners_.size()))
      if (auto r = count(pool_->oldest()); !r) return r;
    return {};
  }
  result<void> count(const batch_job& b) {
    if (!b.all) return b.all.error();
    waiting_ -= b.cases.size();
    for (std::size_t k = 0; k < b.cases.size(); ++k) {
      const case_result& o = (*b.all)[k];
      counted_.count(b.cases[k], o);
      if (o.is == verdict::failed)
        counted_.keep_failure(b.cases[k].id, failure_record(b.cases[k], o, facts_.backend, name_of(facts_.program), facts_.set));
    }
    done_ += b.cases.size();
    for (const auto& name : b.reached) counted_.reached.insert(std::string(name));
    counted_.tiers.insert(b.tiers.begin(), b.tiers.end());
    for (const auto& [kernel, sizes] : b.launches) counted_.launches[kernel].add(sizes);
    counted_.variants.insert(b.variants.begin(), b.variants.end());
    if (!o_.checkpoint_file.empty())
      if (auto r = save({run_, b.next, counted_}, o_.checkpoint_file); !r) return r;
    while (o_.progress_interval > 0 && done_ >= told_ + o_.progress_interval) {
      told_ += o_.progress_interval;
      heard_.at({told_, total_, counted_.total().failed, counted_.total().unsupported});
    }
    return {};
  }
};

}  // namespace isotope::conform
