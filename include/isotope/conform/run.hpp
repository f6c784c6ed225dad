#pragma once
/// A run: the cases of a selection and a shard through an executor, counted; saved on the way, gone on from where it was saved.
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch_runner.hpp"
#include "case_stream.hpp"
#include "checkpoint.hpp"
#include "enumerate.hpp"
#include "progress.hpp"

namespace isotope::conform {

inline constexpr std::int64_t usual_batch = 1024, largest_batch = 1048576;

struct run_options {
  selection cases;
  shard_of shard;
  std::int64_t batch = usual_batch;        // cases that are dispatched together at most
  std::int64_t batch_elems = 1 << 20;      // operand elements of a batch, after which it is full
  std::uint64_t skip = 0;                  // cases with smaller numbers do not run
  std::string checkpoint_file;             // empty: none
  bool resume = false;                     // go on from checkpoint_file, if it is there
  std::uint64_t progress_interval = 1000;  // cases
  std::vector<test_case> first;            // known regressions: they run before everything else
  bool one_op = false;                     // batches hold cases of one op
  /// Ops that are known not to end, with the reason: their cases fail without running.
  std::map<std::string, std::string, std::less<>> endless;
};

/// Everything that decides the outcome: checkpoints of other runs are refused.
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
  conformance_run(executor& on, run_options o, progress_sink& heard)
      : on_(on), facts_(on.facts()), o_(std::move(o)), runner_(on), heard_(heard) {}

  /// @error invalid_argument (a batch out of range, a broken stream of cases), device_lost, timeout, write_failed, and those of the checkpoint
  result<tally> run() {
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
        auto o = outcomes({&c, 1});
        if (!o) return o.error();
        counted_.regressions[sha256::of(record_of(c))] = name_of((*o)[0].is);
      }
    }
    for_each_case(o_.cases, *this);
    if (failure_.what.empty())
      if (auto r = counted_stream_.check_same(stream_); !r) return r.error();
    if (failure_.what.empty())
      if (auto r = flush(); !r) return r.error();
    if (!failure_.what.empty()) return failure_;
    heard_.at({done_, total_, counted_.total().failed, counted_.total().unsupported});
    return counted_;
  }
  const runner_counters& counters() const { return runner_.counters(); }

 private:
  executor& on_;
  target_facts facts_;
  run_options o_;
  batch_runner runner_;
  progress_sink& heard_;
  tally counted_;
  std::vector<test_case> pending_;
  std::int64_t pending_elems_ = 0;
  std::uint64_t next_ = 0, done_ = 0, total_ = 0, told_ = 0;
  bool resumed_ = false;
  std::string run_;
  failure failure_;
  case_stream counted_stream_, stream_;

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
    if (c.id < next_ || !o_.shard.takes(c.id)) return true;
    const bool other = !pending_.empty() && (!(pending_[0].scalars == c.scalars) || (apart() && pending_[0].of != c.of));
    const bool full = std::int64_t(pending_.size()) == o_.batch || pending_elems_ >= o_.batch_elems || other;
    if (full)
      if (auto r = flush(c.id); !r) failure_ = r.error();
    pending_elems_ += elems_of(c);
    pending_.push_back(std::move(c));
    return failure_.what.empty();
  }
  bool apart() const { return o_.one_op || !o_.endless.empty(); }
  result<std::vector<outcome>> outcomes(std::span<const test_case> cases) {
    heard_.begins(cases[0].of->name);
    if (const auto known = o_.endless.find(cases[0].of->name); known != o_.endless.end())
      return std::vector<outcome>(cases.size(),
                                  failed_because(known->second, "run it with --ops " + known->first + " --budget 0 under a debugger"));
    return runner_.run(cases);
  }
  /// Runs what has been collected; `next` is the first case after it.
  result<void> flush(std::uint64_t next = std::numeric_limits<std::uint64_t>::max()) {
    if (!pending_.empty()) {
      auto all = outcomes(pending_);
      if (!all) return all.error();
      for (std::size_t k = 0; k < pending_.size(); ++k) {
        const outcome& o = (*all)[k];
        counted_.count(pending_[k], o);
        if (o.is == verdict::failed)
          counted_.keep_failure(pending_[k].id, failure_record(pending_[k], o, facts_.backend, name_of(facts_.program), facts_.set));
      }
      done_ += pending_.size();
      pending_.clear();
      pending_elems_ = 0;
      for (const auto& name : runner_.reached()) counted_.reached.insert(std::string(name));
      counted_.tiers.insert(runner_.tiers().begin(), runner_.tiers().end());
      for (const auto& [kernel, sizes] : runner_.launches()) counted_.launches[kernel].add(sizes);
    }
    if (!o_.checkpoint_file.empty())
      if (auto r = save({run_, next, counted_}, o_.checkpoint_file); !r) return r;
    while (o_.progress_interval > 0 && done_ >= told_ + o_.progress_interval) {
      told_ += o_.progress_interval;
      heard_.at({told_, total_, counted_.total().failed, counted_.total().unsupported});
    }
    return {};
  }
};

}  // namespace isotope::conform
