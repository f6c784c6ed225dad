#pragma once
/// A plan bound to memory: the list of kernel launches that one run executes in order.
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../../plan/late.hpp"
#include "collective_run.hpp"
#include "table.hpp"
#include "thread_pool.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

/// Makes the choice of a kernel among its variants, for this launch, and returns what it considered.
/// @param said  what is asked for
inline std::vector<considered_variant> choose_variant(launch& l, void (*consider)(const launch&), kernel_choices& said) {
  l.choices = &said;
  l.variant = -1;
  consider(l);
  l.choices = nullptr;
  for (std::size_t k = 0; k < said.all.size(); ++k)
    if (said.all[k].chosen) l.variant = int(k);
  return std::move(said.all);
}

/// The address at which each region starts.
using region_bases = std::array<std::byte*, value_kinds>;

class program {
 public:
  program() = default;
  program(const plan_view& p, const region_bases& base, std::span<const kernel_info> table, std::span<const entry> code, thread_pool* pool,
          const step_scalars* scalars, const rank_groups& groups, std::string_view variant = {})
      : plan_(p), late_(p), base_(base), scalars_(scalars), denormals_(pool == nullptr ? subnormals::keep : pool->denormals()) {
    if (!variant.empty()) wanted_ = std::make_unique<kernel_choices>(kernel_choices{.wanted = std::string(variant)});
    if (!p.totals.mesh.single()) ranks_ = std::make_unique<collective_run>(groups);
    views_.reserve(p.operands.size());
    for (const auto& o : p.operands) views_.push_back(view_of(o));
    body_.reserve(p.micro_ops.size());
    for (const auto& m : p.micro_ops) body_.push_back(resolve(m, table, code, p.totals.program));
    launches_.reserve(p.steps.size());
    for (const auto& s : p.steps) {
      launch l;
      const auto* first = views_.data() + s.operands;
      l.in = {first, s.inputs};
      l.out = {first + s.inputs, s.results()};
      l.summed = s.summed;
      l.column_sums = s.summed < 0 ? nullptr : first + s.inputs + s.results();
      l.attr = &s.attr;
      l.body = {body_.data() + s.body, s.body_size};
      l.scratch = s.scratch < 0 ? nullptr : base[std::size_t(value_kind::temp)] + s.scratch;
      l.pool = pool;
      l.scalars = scalars;
      l.ordinal = s.ordinal;
      l.ranks = ranks_.get();
      if (late(launches_.size())) l.choices = wanted_.get();
      const entry& e = code[std::size_t(s.kernel)];
      if (e.consider != nullptr && !late(launches_.size())) {
        kernel_choices said;
        if (wanted_ != nullptr) said.wanted = wanted_->wanted;
        choose_variant(l, e.consider, said);
      }
      launches_.push_back({l, e.run, e.consider});
    }
  }
  /// Takes remembered variants, by step; empty: none is known.
  void remember(std::vector<std::string> variants) {
    remembered_ = std::move(variants);
    for (std::size_t k = 0; k < launches_.size(); ++k) {
      if (remembered_[k].empty() || late(k)) continue;
      kernel_choices said{.wanted = {}, .remembered = remembered_[k]};
      choose_variant(launches_[k].args, launches_[k].consider, said);
    }
  }

  /// Runs the steps of the active phases; allocates nothing. Returns how many kernels it started. The empty callback makes an instantiation of its own, so
  /// an optimised build pays nothing for the possibility to observe steps.
  std::int64_t run(std::uint8_t active) {
    return run(active, [](std::size_t) {});
  }
  /// Runs the steps of the active phases and calls after(step) after each.
  template <class After> std::int64_t run(std::uint8_t active, const After& after) {
    if (dynamic()) resolve_sizes();
    const float_environment mode(denormals_);  // kernels run small jobs on the calling thread, which may be in another mode
    std::int64_t started = 0;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const step& s = plan_.steps[i];
      if ((s.phases & active) == 0) continue;
      auto& [l, code, consider] = launches_[i];
      l.accumulate = s.added(active);
      if (wanted_ != nullptr) wanted_->all.clear();
      code(l);
      ++started;
      if (ranks_ != nullptr && !ranks_->ok()) break;
      after(i);
    }
    return started;
  }
  /// The failure of a collective, which ended the run, and ends later ones; null: there is none.
  const failure* failed() const { return ranks_ == nullptr || ranks_->ok() ? nullptr : &ranks_->first(); }
  const plan_view& plan() const { return plan_; }
  /// The variants among which a step's kernel chooses for operands of their present sizes; empty: it has none.
  std::vector<considered_variant> considered(std::size_t step) const {
    const bound& b = launches_[step];
    if (b.consider == nullptr) return {};
    kernel_choices said;
    if (wanted_ != nullptr) said.wanted = wanted_->wanted;
    if (!remembered_.empty() && !late(step)) said.remembered = remembered_[step];
    launch l = b.args;
    auto all = choose_variant(l, b.consider, said);
    if (wanted_ == nullptr && !late(step))  // the choice was made when the plan was bound, by the rates of that time
      for (std::size_t k = 0; k < all.size(); ++k) all[k].chosen = int(k) == b.args.variant;
    return all;
  }
  const view& operand(std::size_t k) const { return views_[k]; }
  bool dynamic() const { return late_.any(); }
  /// Does nothing: kernels are chosen once, when a plan is bound.
  void forget() {}
  /// Bytes of the tables, which lie outside the arena.
  std::int64_t bytes() const {
    return std::int64_t(views_.capacity() * sizeof(view) + body_.capacity() * sizeof(instruction) + launches_.capacity() * sizeof(bound));
  }

 private:
  struct bound {
    launch args;
    void (*code)(const launch&);
    void (*consider)(const launch&);
  };
  plan_view plan_;
  late_resolver late_;
  region_bases base_{};
  const step_scalars* scalars_ = nullptr;
  subnormals denormals_ = subnormals::keep;
  std::unique_ptr<collective_run> ranks_;
  std::unique_ptr<kernel_choices> wanted_;  // null: no variant is asked for
  std::vector<std::string> remembered_;     // variants, by step; empty: none
  std::vector<view> views_;
  std::vector<instruction> body_;
  std::vector<bound> launches_;

  /// Whether sizes of a step are known only in a run.
  bool late(std::size_t k) const {
    const step& s = plan_.steps[k];
    for (int o = 0; o < s.inputs + s.outputs; ++o)
      if (const auto& x = plan_.operands[std::size_t(s.operands + o)]; x.late >= 0 || x.dims.has_scalar()) return true;
    return false;
  }
  view view_of(const isotope::operand& o) const { return {base_[std::size_t(o.region)] + o.at, o.dims, o.strides, o.type}; }
  /// Late dimensions take the sizes of this step.
  void resolve_sizes() {
    if (!late_.set(scalars_->sizes)) return;
    for (std::size_t k = 0; k < views_.size(); ++k)
      if (const auto& o = plan_.operands[k]; o.late >= 0 || o.dims.has_scalar()) views_[k] = view_of(late_.at(o));
  }
};

}  // namespace arch
}  // namespace isotope::cpu
