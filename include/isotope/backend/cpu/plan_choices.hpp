#pragma once
/// Remembered variants of the kernels of plans. The class that times them (tuned_choices.hpp) is compiled with the kernels: it needs many headers, and few
/// programs use it.
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../../core/device.hpp"
#include "table.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

/// The kernels and the memory of a plan that is loaded.
struct kernels_of_plan {
  const plan_view* plan = nullptr;
  std::array<std::byte*, value_kinds> base{};  // the address at which each region starts
  std::span<const kernel_info> table;
  std::span<const entry> code;
};

/// What a device knows of the variants of its kernels, for all plans that it loads.
class plan_choices {
 public:
  virtual ~plan_choices() = default;
  /// For each step the name of its variant; empty: nothing is known. Times variants where that is asked for.
  virtual std::vector<std::string> of(const kernels_of_plan& p, thread_pool* pool) = 0;
  /// Of the file: why it is ignored or cannot be written.
  virtual std::vector<std::string> messages() const = 0;
};

/// A template so that a library may have the one copy of it (compiled.hpp).
/// @param level  `cached` or `measure`
/// @param path   the file; empty: choices are kept in memory
template <class Level> ISOTOPE_NOINLINE std::shared_ptr<plan_choices> open_choices(Level level, const std::string& path);

}  // namespace arch
}  // namespace isotope::cpu
