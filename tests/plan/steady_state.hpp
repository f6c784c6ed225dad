#pragma once
/// Tests that a program that trains and evaluates takes no more memory from the system after its first steps. It replaces operator new, so include it in one
/// file only.
#include "../allocation_counter.hpp"
#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/train/batch.hpp>

#include <array>
#include <cmath>
#include <fstream>
#include <string>

namespace plan_test {

/// The memory of the process without pages of files, from smaps, which walks the page tables; the counters of /proc/self/status are off by hundreds of KiB.
inline std::int64_t anonymous_kib() {
  std::ifstream map("/proc/self/smaps_rollup");
  for (std::string line; std::getline(map, line);)
    if (line.starts_with("Anonymous:")) return std::stoll(line.substr(10));
  ADD_FAILURE() << "/proc/self/smaps_rollup has no line for anonymous memory";
  return 0;
}

struct steady_state {
  std::int64_t allocations = 0;         // calls of operator new
  std::int64_t device_bytes = 0;        // growth of the session's device memory
  std::int64_t device_allocations = 0;  // allocations and objects made on the device
  std::int64_t held_kib = 0;            // growth of the memory of the process
  double loss = 0;                      // sum of all losses
};

/// Trains and evaluates a small GPT-2 with two micro-batches per step. Measures from the fourth step on, because in the first three steps threads start and
/// pages are touched for the first time.
template <isotope::Target T> steady_state steps_of_steady_state(int steps) {
  constexpr isotope::model::gpt size{2, 2, 32, 65, 16, 0.1};
  auto device = opened_bare<T>(2);
  EXPECT_TRUE(device.ok());
  auto evaluation = isotope::plan_inference<T>(isotope::model::gpt_loss_of{size, 2, 16});
  EXPECT_TRUE(evaluation.ok());
  auto s = device->load(planned<T>(isotope::model::gpt_loss_of{size, 2, 16}, {.accumulate = true}), std::move(*evaluation));
  EXPECT_TRUE(s.ok());
  s->initialize(3);
  const auto tokens = input_values<std::int32_t>("tokens", 32), targets = input_values<std::int32_t>("targets", 32);
  const std::array<isotope::batch, 2> batches{{{tokens, targets}, {targets, tokens}}};
  auto x = scalars();
  x.clip_norm = 1;
  for (int i = 0; i < 3; ++i) {
    s->step(batches, x);
    s->evaluate(batches[0]);
  }
  const auto bytes = s->measured_bytes(), held = anonymous_kib();
  const auto objects = [&]() -> std::int64_t { return s->queue().objects(); };
  const auto before = allocations.load(), objects_before = objects();
  steady_state r;
  for (int i = 0; i < steps; ++i) r.loss += s->step(batches, x).loss + s->evaluate(batches[0]);
  r.allocations = allocations.load() - before;
  r.device_allocations = objects() - objects_before;
  r.device_bytes = s->measured_bytes() - bytes;
  r.held_kib = anonymous_kib() - held;
  return r;
}

/// The memory of the process is not checked on GPU backends, where drivers may keep memory in it.
template <isotope::Target T> void expect_steady_state(int steps) {
  const auto r = steps_of_steady_state<T>(steps);
  EXPECT_EQ(r.allocations, 0);
  EXPECT_EQ(r.device_allocations, 0);
  EXPECT_EQ(r.device_bytes, 0);
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::cpu>) {
    EXPECT_LE(r.held_kib, 64);  // a page table, a stack page
  }
  EXPECT_TRUE(std::isfinite(r.loss));
}

}  // namespace plan_test
