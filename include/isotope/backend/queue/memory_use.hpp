#pragma once
/// What memory of a device is for, which decides where a backend takes it from.
#include <cstdint>
#include <span>

namespace isotope {

enum class memory_use : std::uint8_t {
  device,    // read and written by kernels alone
  upload,    // written by the host, read by kernels
  readback,  // written by kernels, read by the host
};

/// Bytes of a memory, and where on the host they go.
struct memory_piece {
  std::int64_t at = 0;
  std::span<std::byte> to;
};

}  // namespace isotope
