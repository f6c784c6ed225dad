#pragma once
/// A plan bound to addresses. Its dispatches are recorded once for each set of phases, and again when the sizes of scalar dimensions change.
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "arena_layout.hpp"
#include "hazards.hpp"

namespace isotope {

/// A plan, the addresses of its regions, and the sizes of its scalar dimensions.
struct bound_plan {
  plan_view plan;
  region_addresses base;
  std::uint64_t readback = 0;  // address that the outputs are copied to at the end of a run; 0: they are not copied
  std::array<std::int32_t, 16> sizes{};
};

/// Turns plans into commands of a device. `list` returns the dispatches of a run with these phases; `record` writes them, with a barrier before each marked
/// one, to a command buffer from `new_commands`. Tables that the host computes for kernels live in a constant pool. Plans share that of `pool`; a plan with
/// scalar dimensions has its own from `new_pool`, cleared whenever its sizes change. `dropped_barrier` is the index of a barrier to leave out, for tests that
/// a missing one is noticed; -1: none.
template <class R>
concept Recorder = requires(R& r, const bound_plan& p, typename R::commands c, const std::vector<typename R::dispatch>& all) {
  requires Dispatch<typename R::dispatch>;
  { r.list(p, std::uint8_t{}, r.pool()) } -> std::same_as<std::vector<typename R::dispatch>>;
  { r.new_commands() } -> std::same_as<result<typename R::commands>>;
  { r.record(c, all, std::vector<std::uint8_t>{}) } -> std::same_as<result<void>>;
  { r.new_pool() } -> std::same_as<std::unique_ptr<typename R::constant_pool>>;
  { r.dropped_barrier() } -> std::convertible_to<std::int32_t>;
};

/// One plan of a session, bound to the memory of one frame.
template <class R> class loaded_plan {
 public:
  using dispatch = typename R::dispatch;
  struct variant {
    std::uint8_t active = 0;  // 0: must be recorded again
    typename R::commands commands{};
    std::vector<dispatch> dispatches;
    std::int64_t barriers = 0;
  };

  loaded_plan() = default;
  loaded_plan(const bound_plan& p, R& recorder) : bound_(p), recorder_(&recorder) {
    for (const auto& o : p.plan.operands) dynamic_ = dynamic_ || o.dims.has_scalar();
    if (dynamic_) own_pool_ = recorder.new_pool();
  }

  const plan_view& plan() const { return bound_.plan; }
  const region_addresses& addresses() const { return bound_.base; }
  bool dynamic() const { return dynamic_; }

  /// The commands of a set of phases. They are recorded at the first call, and again when the sizes of scalar dimensions change; after that, commands from
  /// earlier calls must not run. @error out_of_memory, missing_feature
  result<const variant*> prepare(std::uint8_t active, const std::array<std::int32_t, 16>& sizes) {
    variant* v = find(active);
    if (v != nullptr && (!dynamic_ || sizes == bound_.sizes)) return v;
    if (dynamic_ && sizes != bound_.sizes) {
      forget();
      own_pool_->clear();
    }
    bound_.sizes = sizes;
    if (v == nullptr) v = find(0);
    if (v == nullptr) {
      auto c = recorder_->new_commands();
      if (!c) return c.error();
      variants_.push_back({0, *c, {}, 0});
      v = &variants_.back();
    }
    v->dispatches = dispatches(active);
    if (auto r = tables(); !r) return r.error();
    auto before = plan_barriers(v->dispatches);
    drop(before);
    v->barriers = 0;
    for (auto b : before) v->barriers += b;
    if (auto r = recorder_->record(v->commands, v->dispatches, before); !r) return r.error();
    v->active = active;
    return v;
  }
  void forget() {
    for (auto& x : variants_) x.active = 0;
  }
  /// The dispatches that `prepare` records, for checkers and reports.
  std::vector<dispatch> dispatches(std::uint8_t active) const { return recorder_->list(bound_, active, pool()); }
  /// Whether the tables that these dispatches read are in the constant pool: if not, they must not run. @error out_of_memory, device_lost
  result<void> tables() const {
    if (!pool().error().what.empty()) return pool().error();
    return {};
  }
  /// Bytes of the plan's own constant pool.
  std::int64_t bytes() const { return own_pool_ == nullptr ? 0 : own_pool_->bytes(); }

 private:
  bound_plan bound_;
  R* recorder_ = nullptr;
  std::unique_ptr<typename R::constant_pool> own_pool_;  // of a plan with scalar dimensions: tables of earlier sizes are discarded
  std::deque<variant> variants_;
  bool dynamic_ = false;

  variant* find(std::uint8_t active) {
    for (auto& x : variants_)
      if (x.active == active) return &x;
    return nullptr;
  }
  typename R::constant_pool& pool() const { return own_pool_ != nullptr ? *own_pool_ : recorder_->pool(); }
  void drop(std::vector<std::uint8_t>& before) const {
    auto k = recorder_->dropped_barrier();
    if (k < 0) return;
    for (auto& b : before)
      if (b != 0 && k-- == 0) b = 0;
  }
};

}  // namespace isotope
