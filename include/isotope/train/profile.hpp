#pragma once
/// Measures the phases of a training loop by the loop's own clock: it adds no wait for a device.
#include <isotope/train/decimal.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isotope::train {

/// The phases are data: filling micro-batches; step: session::step, or submitting a step ahead of the device; wait: for steps that were submitted; evaluate: the
/// validation split; save: checkpoints.
enum class loop_phase : std::uint8_t { data, step, wait, evaluate, save };
inline constexpr std::size_t loop_phases = 5;

constexpr std::string_view name_of(loop_phase p) {
  constexpr std::string_view names[loop_phases] = {"data", "step", "wait", "evaluate", "save"};
  return names[std::size_t(p)];
}

/// Measures nothing. A trainer with it is a separate type in which a phase is the bare call (`if constexpr`): it reads the clock only for its own
/// events and stores nothing.
struct unprofiled {
  static constexpr bool on = false;
};
inline constexpr unprofiled nothing_measured{};

struct loop_profile {
  static constexpr bool on = true;

  struct figures {
    double seconds = 0, longest = 0;
    std::int64_t times = 0;
  };
  std::array<figures, loop_phases> phases{};

  void add(loop_phase p, double seconds) {
    figures& f = phases[std::size_t(p)];
    f.seconds += seconds;
    f.longest = f.longest < seconds ? seconds : f.longest;
    ++f.times;
  }
};

/// Returns a line per phase that occurred: name, count, mean and longest milliseconds, share of the total.
inline std::string text_of(const loop_profile& p) {
  double all = 0;
  for (const auto& f : p.phases) all += f.seconds;
  std::string r = "# phase\ttimes\tmean ms\tlongest ms\tshare\n";
  for (std::size_t i = 0; i < loop_phases; ++i) {
    const auto& f = p.phases[i];
    if (f.times == 0) continue;
    r += std::string(name_of(loop_phase(i))) + '\t' + std::to_string(f.times) + '\t' + fixed(f.seconds / double(f.times) * 1e3, 3) + '\t' +
         fixed(f.longest * 1e3, 3) + '\t' + fixed(all > 0 ? 100 * f.seconds / all : 0, 1) + " %\n";
  }
  return r;
}

}  // namespace isotope::train
