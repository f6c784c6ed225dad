#pragma once
/// Times the variants of kernels on the threads of a device, and keeps the fastest in a file.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "../queue/tuner.hpp"
#include "arena.hpp"
#include "plan_choices.hpp"
#include "program.hpp"
#include "tile_permission.hpp"

namespace isotope::cpu {

/// The processor's own name for itself; "processor" where it has none.
inline std::string name_of_processor() {
  std::string name;
#if defined(__x86_64__)
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    std::array<unsigned, 4> words{};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) break;
    name.append(reinterpret_cast<const char*>(words.data()), sizeof words);
  }
  name.resize(std::min(name.find('\0'), name.size()));
  for (char& c : name) c = c < ' ' || c > '~' ? ' ' : c;
#endif
  return name.empty() ? "processor" : name;
}

ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

/// A step whose kernel has variants: a dispatch of a VariantTimer. It writes where the plan does or, while it is timed, elsewhere.
struct timed_step {
  std::int32_t step = -1;
  std::string choice;  // its signature
  std::vector<considered_variant> considered;
  std::vector<byte_range> reads, writes;  // of no use: nothing runs beside a step
  std::shared_ptr<std::vector<view>> views;
  std::shared_ptr<std::vector<instruction>> body;
  launch given;
  void (*run)(const launch&) = nullptr;
};

/// A VariantTimer by the host's clocks. A template, so that the code exists only in programs that open a device.
template <class Level> class variant_timer {
 public:
  static constexpr bool shared = true;
  static constexpr std::size_t page = arena::huge_page;
  using dispatch = timed_step;
  using memory = arena;
  struct run {
    std::vector<timed_step> all;
    int times = 1;
  };

  variant_timer(const kernels_of_plan& p, thread_pool* pool) : p_(p), pool_(pool) {}

  std::vector<timed_step> record(const step_recording& how) const {
    std::vector<timed_step> all;
    for (std::size_t k = 0; k < p_.plan->steps.size(); ++k)
      if ((how.only < 0 || how.only == std::int32_t(k)) && p_.code[std::size_t(p_.plan->steps[k].kernel)].consider != nullptr)
        if (auto s = bound(std::int32_t(k), how); !s.considered.empty()) all.push_back(std::move(s));
    return all;
  }
  result<void> compile(const std::vector<timed_step>&, std::span<const timed_step>) const { return {}; }
  result<void> ready(const std::vector<timed_step>&) const { return {}; }
  result<arena> allocate(std::int64_t bytes) const { return arena::allocate(bytes); }
  result<void> clear(arena& m, std::int64_t at, std::int64_t bytes) const {
    std::memset(m.mapped() + at, 0, std::size_t(bytes));
    return {};
  }
  result<void> upload(arena& m, std::int64_t at, std::span<const std::byte> from) const {
    std::copy(from.begin(), from.end(), m.mapped() + at);
    return {};
  }
  result<void> download(const arena& m, std::span<const memory_piece> all) const {
    for (const memory_piece& x : all) std::copy_n(m.mapped() + x.at, x.to.size(), x.to.begin());
    return {};
  }
  result<run> prepare(const std::vector<timed_step>& all, int times) const { return run{all, times}; }
  result<double> seconds(const run& r) const {
    const float_environment mode(pool_ == nullptr ? subnormals::keep : pool_->denormals());
    return seconds_alone(pool_ == nullptr ? 1 : pool_->size(),
                         [&] {
                           for (int k = 0; k < r.times; ++k)
                             for (const timed_step& s : r.all) s.run(s.given);
                         }) /
           r.times;
  }

 private:
  const kernels_of_plan& p_;
  thread_pool* pool_;

  /// A tensor as signatures and places of operands know it.
  struct tensor_place {
    std::uint64_t at = 0;
    std::int64_t bytes = 0;
    shape dims;
    extents strides{};
    dtype type = dtype::f32;
  };
  struct described {
    std::span<const tensor_place> in, out;
    const attributes* attr;
    std::span<const micro_op> body;
    std::uint8_t accumulate;
    int summed;
    std::int64_t scratch_bytes;
  };

  std::uint64_t address(value_kind region, std::int64_t at) const {
    return std::uint64_t(reinterpret_cast<std::uintptr_t>(p_.base[std::size_t(region)])) + std::uint64_t(at);
  }
  static void* pointer(std::uint64_t at) { return reinterpret_cast<void*>(std::uintptr_t(at)); }

  timed_step bound(std::int32_t k, const step_recording& how) const {
    const step& s = p_.plan->steps[std::size_t(k)];
    std::vector<tensor_place> places;
    for (int o = 0; o < s.inputs + s.outputs; ++o) {
      const operand& x = p_.plan->operands[std::size_t(s.operands + o)];
      places.push_back({address(x.region, x.at), x.bytes, x.dims, x.strides, x.type});
    }
    timed_step t;
    t.step = k;
    const std::span<const tensor_place> all(places);
    const std::size_t inputs = s.inputs, results = s.results();
    const auto body = p_.plan->micro_ops.subspan(std::size_t(s.body), std::size_t(s.body_size));
    t.choice = signature_of(*s.op, p_.table[std::size_t(s.kernel)].set,
                            described{all.first(inputs), all.subspan(inputs, results), &s.attr, body, 0, s.summed, s.scratch_bytes});
    if (t.choice.empty()) return t;
    t.choice += " by " + std::to_string(pool_ == nullptr ? 1 : pool_->size());
    std::uint64_t scratch = s.scratch < 0 ? 0 : address(value_kind::temp, s.scratch);
    how.move(std::span<tensor_place>(places), inputs, scratch, s.scratch < 0 ? 0 : s.scratch_bytes);
    t.views = std::make_shared<std::vector<view>>();
    for (const tensor_place& x : places) t.views->push_back({pointer(x.at), x.dims, x.strides, x.type});
    launch& l = t.given;
    l.in = {t.views->data(), inputs};
    l.out = {t.views->data() + inputs, results};
    l.summed = s.summed;
    l.column_sums = s.summed < 0 ? nullptr : t.views->data() + inputs + results;
    l.attr = &s.attr;
    bodies_of(t, body);
    l.scratch = scratch == 0 ? nullptr : pointer(scratch);
    l.pool = pool_;
    l.ordinal = s.ordinal;
    const entry& e = p_.code[std::size_t(s.kernel)];
    t.run = e.run;
    kernel_choices said;
    if (how.known != nullptr) said.remembered = how.known->find(t.choice);
    t.considered = choose_variant(l, e.consider, said);
    return t;
  }
  void bodies_of(timed_step& t, std::span<const micro_op> body) const {
    t.body = std::make_shared<std::vector<instruction>>();
    for (const micro_op& m : body) t.body->push_back(resolve(m, p_.table, p_.code, p_.plan->totals.program));
    t.given.body = *t.body;
  }
};

/// Choices that a file holds or that this process made.
template <class Level> class tuned_choices final : public plan_choices {
 public:
  tuned_choices(Level level, const std::string& path)
      : cache_(level, path, name_of_processor() + ", " + ISOTOPE_CPU_ARCH + (tiles_refused().empty() ? ", tiles" : "")) {}

  std::vector<std::string> of(const kernels_of_plan& p, thread_pool* pool) override {
    variant_timer<Level> timer(p, pool);
    // Estimates are not written: unlike those of GPUs they choose among variants of equal bits alone, so there is nothing to keep.
    if (cache_.level() == tuning::measure) {
      tuner(*p.plan, cache_, timer).settle(timer.record({&cache_}));
      cache_.save();
    }
    std::vector<std::string> names(p.plan->steps.size());
    for (const timed_step& s : timer.record({})) names[std::size_t(s.step)] = cache_.find(s.choice);
    return names;
  }
  std::vector<std::string> messages() const override { return cache_.messages(); }

 private:
  variant_cache cache_;
};

template <class Level> std::shared_ptr<plan_choices> open_choices(Level level, const std::string& path) {
  return std::make_shared<tuned_choices<Level>>(level, path);
}

}  // namespace arch
}  // namespace isotope::cpu
