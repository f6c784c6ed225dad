#pragma once
/// Permission to use the matrix unit (AMX). Its tile registers add 8 KB to the state of each thread, so Linux enables them only for processes that ask.
#include <string_view>

#include "../../core/compiler.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace isotope::cpu {

/// What CPUID reports, regardless of the compiler's flags.
struct tile_features {
  bool tile = false, bf16 = false, bytes = false;
};
inline tile_features tile_features_here() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) return {(d >> 24 & 1) != 0, (d >> 22 & 1) != 0, (d >> 25 & 1) != 0};
#endif
  return {};
}

/// Why matmuls must not use AMX tiles; empty if they may. Asks the system once, preferably before other threads start: if one of them has an alternate
/// signal stack that is too small for the tiles, the system refuses them to the whole process.
inline std::string_view tiles_refused() {
  static const std::string_view reason = []() -> std::string_view {
    if (!tile_features_here().tile || !tile_features_here().bf16) return "this processor has no matrix unit for bf16 (amx-tile, amx-bf16)";
#if defined(__x86_64__) && defined(__linux__)
    constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    if (syscall(SYS_arch_prctl, request_permission, tile_data) == 0) return {};
    switch (errno) {
      case ENOSPC: return "the system refuses tiles (AMX): an alternate signal stack is too small for them";
      case EINVAL: return "the system knows no tiles (AMX): it wants Linux 5.16";
      case EOPNOTSUPP: return "the system has tiles (AMX) switched off";
      default: return "the system refuses tiles (AMX)";
    }
#else
    return "this system gives no leave to use tiles (AMX)";
#endif
  }();
  return reason;
}
/// Whether products of bytes may use AMX tiles, too.
inline bool byte_tiles_permitted() {
  static const bool permitted = tiles_refused().empty() && tile_features_here().bytes;
  return permitted;
}

}  // namespace isotope::cpu
