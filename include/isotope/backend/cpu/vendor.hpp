#pragma once
/// Who made the processor.
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace isotope::cpu {

/// The vendor by CPUID, as in "GenuineIntel"; empty on processors without that instruction.
inline std::string_view vendor() {
#if defined(__x86_64__)
  struct name {
    unsigned ebx = 0, edx = 0, ecx = 0;  // in the order of their letters
  };
  static const name answer = [] {
    unsigned eax = 0;
    name n;
    return __get_cpuid(0, &eax, &n.ebx, &n.ecx, &n.edx) != 0 ? n : name{};
  }();
  return answer.ebx != 0 ? std::string_view(reinterpret_cast<const char*>(&answer), sizeof answer) : std::string_view();
#else
  return {};
#endif
}

/// Whether Intel did.
inline bool made_by_intel() { return vendor() == "GenuineIntel"; }

}  // namespace isotope::cpu
