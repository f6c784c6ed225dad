#pragma once
/// How a program opens its device and plans for it.
#include "diagnose_settings.hpp"
#include "machine.hpp"
#include "machine_settings.hpp"

#include <isotope/core/device.hpp>

#include <cstdint>
#include <string_view>

namespace support {

/// What a program was told of the machine and of looking into it.
struct run_options {
  std::string_view program;
  const machine_settings& machine;
  const diagnose_settings& diagnose;
  bool no_readback = false;

  std::int64_t budget() const { return machine.memory_mib > 0 ? machine.memory_mib << 20 : memory_bytes(); }
  template <isotope::Backend B> typename B::options device() const {
    auto o = isotope::options_for<B>(options_of(machine, diagnose));
    o.diagnose.no_readback = no_readback;
    return o;
  }
};

}  // namespace support
