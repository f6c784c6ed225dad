#pragma once
/// The processor as a queue. `submit` runs the plan before it returns, so nothing is ever in flight, and kernels use host memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../op/matmul.hpp"
#include "../queue/queue.hpp"
#include "arena.hpp"
#include "plan_choices.hpp"
#include "program.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

template <Target T> class queue {
 public:
  using target = T;
  using memory = arena;
  using plan = program;
  using owner = std::shared_ptr<thread_pool>;
  static constexpr bool host_memory = true;
  static constexpr std::size_t frames = 1;
  static constexpr std::int64_t scalar_bytes = sizeof(step_scalars);

  /// @param choices  null: variants of kernels are chosen by estimate
  queue(owner threads, const diagnostics& diagnose, const rank_groups& groups, std::shared_ptr<plan_choices> choices = nullptr)
      : pool_(std::move(threads)), diagnose_(diagnose), groups_(groups), choices_(std::move(choices)) {}
  const rank_groups& groups() const { return groups_; }

  static result<memory> allocate_mapped(const owner&, std::int64_t bytes, memory_use, const std::string&) { return arena::allocate(bytes); }
  result<memory> allocate(std::int64_t bytes, memory_use, const std::string&) {
    here();
    return arena::allocate(bytes);
  }
  result<void> upload(memory& to, std::int64_t at, std::span<const std::byte> from) {
    here();
    std::copy(from.begin(), from.end(), to.mapped() + at);
    return {};
  }
  result<void> download(const memory& from, std::span<const memory_piece> all) const {
    here();
    for (const memory_piece& p : all) std::copy_n(from.mapped() + p.at, p.to.size(), p.to.begin());
    return {};
  }
  result<void> clear(memory& what, std::int64_t at, std::int64_t bytes) {
    constexpr std::int64_t piece = 1 << 20;
    parallel((bytes + piece - 1) / piece,
             [&](std::int64_t t) { std::memset(what.mapped() + at + t * piece, 0, std::size_t(std::min(piece, bytes - t * piece))); });
    return {};
  }

  plan bind(const plan_view& p, const region_addresses& base, std::uint64_t) {
    here();
    region_bases at{};
    for (std::size_t k = 0; k < at.size(); ++k) at[k] = pointer(base.at[k]);
    program made(p, at, kernel_table<T>, code_of<T>(), pool_.get(), reinterpret_cast<const step_scalars*>(pointer(base.scalars)), groups_,
                 diagnose_.variant);
    if (choices_ != nullptr && diagnose_.variant.empty()) made.remember(choices_->of({&p, at, kernel_table<T>, code_of<T>()}, pool_.get()));
    return made;
  }
  result<void> prepare(plan&, std::uint8_t, const std::array<std::int32_t, 16>&) { return {}; }
  result<void> loaded() { return {}; }
  result<submission> submit(plan& p, std::uint8_t active, const std::array<std::int32_t, 16>&, int times = 1) {
    here();
    std::int64_t launches = 0;
    for (int k = 0; k < times; ++k) launches += p.run(active);
    if (const failure* f = p.failed()) return *f;
    return submission{++submitted_, launches, 0};
  }
  result<void> wait(std::uint64_t) const { return {}; }
  template <class After> result<submission> observe(plan& p, std::uint8_t active, const After& after) {
    here();
    const std::int64_t launches = p.run(active, after);
    if (const failure* f = p.failed()) return *f;
    return submission{++submitted_, launches, 0};
  }

  void put_scalars(std::byte* to, step_scalars x, std::int64_t optimizer_step) const {
    x.optimizer_step = optimizer_step;
    std::memcpy(to, &x, sizeof x);
  }
  /// Repacks the pre-packed copy of a parameter that has changed.
  bool stored(const slot& s, const region_addresses& base, std::span<const float>) {
    if (s.packed < 0) return false;
    const auto kernel = find_kernel(kernel_table<T>, &info<op::matmul>, T::precision::type);
    const view weight{pointer(base[value_kind::param]) + s.at * size_of(s.type), s.dims, dense_strides(s.dims), s.type};
    const float_environment mode(pool_->denormals());
    const entry& code = code_of<T>()[std::size_t(kernel)];
    std::byte* const to = pointer(base[value_kind::packed]) + s.packed;
    if (s.packed_transposed > 0) code.pack_transposed(weight, to, pool_.get(), s.packed_transposed);
    else code.pack(weight, to, pool_.get());
    return false;
  }
  template <class Task> void parallel(std::int64_t n, const Task& task) const {
    here();
    pool_->parallel(n, [&](std::int64_t i, int) { task(i); });
  }
  std::vector<launch_row> rows(const plan& p, std::uint8_t active) const {
    auto all = planned_rows(p.plan(), kernel_table<T>, active);
    for (launch_row& r : all) r.considered = p.considered(std::size_t(r.step));
    return all;
  }
  const diagnostics& diagnose() const { return diagnose_; }
  const owner& device() const { return pool_; }
  std::int64_t planned_bytes() const { return 0; }
  std::int64_t bytes() const { return 0; }
  std::int64_t objects() const { return 0; }
  std::string totals() const { return {}; }
  std::vector<std::string> messages() const { return choices_ == nullptr ? std::vector<std::string>() : choices_->messages(); }

 private:
  owner pool_;
  diagnostics diagnose_;
  rank_groups groups_;
  std::shared_ptr<plan_choices> choices_;
  std::uint64_t submitted_ = 0;

  /// Every call that reads or writes memory of a session passes here.
  void here() const { pool_->owner().check(); }
  static std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(std::uintptr_t(address)); }
};

}  // namespace arch
}  // namespace isotope::cpu
