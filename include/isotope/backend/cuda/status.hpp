#pragma once
/// Converts a result of the driver to a failure.
#include <string>
#include <utility>

#include "driver.hpp"

namespace isotope::cuda {

inline std::string name_of(const driver& d, status s) {
  const char* text = nullptr;
  if (d->error_name(s, &text) == status::success && text != nullptr) return text;
  return "an unnamed result";
}

/// Whether the context can no longer be used after this result: kernels and memory of it are in an unknown state.
constexpr bool breaks_context(status s) {
  switch (s) {
    case status::illegal_address:
    case status::launch_timeout:
    case status::context_destroyed:
    case status::assertion:
    case status::illegal_instruction:
    case status::misaligned_address:
    case status::launch_failed:
    case status::unknown:
    case status::deinitialized: return true;
    // Errors of memory and links that cannot be corrected, errors of the hardware, and the end of the server that processes share the device by.
    default: return int(s) == 214 || int(s) == 220 || int(s) == 226 || (int(s) > 713 && int(s) < 720) || int(s) == 810;
  }
}
/// Whether the result says that there is no device to use, or no driver that works.
constexpr bool says_no_device(status s) {
  switch (s) {
    case status::not_initialized:
    case status::stub_library:
    case status::device_unavailable:
    case status::no_device:
    case status::invalid_device:
    case status::not_permitted: return true;
    default: return int(s) >= int(status::system_not_ready) && int(s) < 810;  // the driver does not match, or its server refuses
  }
}

/// `asked` says what was tried, in the user's words.
inline failure failed(const driver& d, status s, std::string asked, std::string where = "cuda") {
  const std::string what = asked + ": " + name_of(d, s) + " (" + std::to_string(int(s)) + ")";
  switch (s) {
    case status::out_of_memory:
      return fail(errc::out_of_memory, what, std::move(where), "use a smaller batch or model, recompute blocks, or another device");
    case status::illegal_address:
    case status::misaligned_address:
    case status::illegal_instruction:
      return fail(errc::device_lost, what, std::move(where),
                  "a kernel failed: start the program again from its last checkpoint, and report this with the dispatch report");
    case status::no_binary_for_device:
    case status::invalid_ptx:
    case status::unsupported_ptx_version:
    case status::invalid_image:
      return fail(errc::missing_feature, what, std::move(where), "configure with -DCUDA_ARCHS of this device, or update the driver");
    default:
      if (breaks_context(s))
        return fail(errc::device_lost, what, std::move(where), "open the device again, or another one, and load the last checkpoint");
      if (says_no_device(s))
        return fail(errc::no_device, what, std::move(where), "check the driver with nvidia-smi, or use another device");
      return fail(errc::missing_feature, what, std::move(where),
                  "the driver refuses it: update the driver, use another device, and report this with the dispatch report");
  }
}

}  // namespace isotope::cuda
