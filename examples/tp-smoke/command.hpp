#pragma once
/// The words of isotope-tp-smoke.
#include "../support/command_words.hpp"

#include <array>
#include <string_view>

namespace tp_smoke_program {

inline constexpr std::string_view program = "isotope-tp-smoke";
inline constexpr std::array<support::flag_meaning, 8> flag_meanings = {{
    {"--devices", "N", "devices that share each layer; default: 2. On the processor they are threads"},
    {"--ranks", "ADDRESSES", "host:port,host:port,...: where processes listen, one for each device; default: one process"},
    {"--rank", "R", "which of them this process is, counted from 0"},
    {"--threads", "N", "of all devices of this process together; default: as many as the machine has"},
    {"--device", "NAME", "of a process of its own: part of a device's name, or its index"},
    {"--step-timeout", "SECONDS", "that the step may take; default: 60"},
    {"--version", "", "what the program was built from"},
    {"--help", "", "this text"},
}};

}  // namespace tp_smoke_program
