#pragma once
/// Variables beside those that keys spell.
#include <isotope/config/arguments.hpp>

namespace support {

/// In isotope-train the first would also be short for training.schedule: as a variable it names the launches, as a flag the learning rate.
inline const isotope::config::variable_aliases& variable_aliases() {
  static const isotope::config::variable_aliases aliases = {
      {"ISOTOPE_SCHEDULE", "diagnose.step_list"},
      {"ISOTOPE_TP_STEP_TIMEOUT_S", "mesh.step_timeout"},
      {"ISOTOPE_TP_ABORT_DEADLINE_S", "mesh.abort_deadline"},
  };
  return aliases;
}

}  // namespace support
