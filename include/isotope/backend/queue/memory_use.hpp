#pragma once
/// What device memory is used for. Backends choose the memory type by it.
#include <cstdint>
#include <span>

namespace isotope {

enum class memory_use : std::uint8_t {
  device,    // read and written by kernels only
  upload,    // written by the host, read by kernels
  readback,  // written by kernels, read by the host
};

/// A range of device memory, from byte `at` on, and the host memory that it is copied to.
struct memory_piece {
  std::int64_t at = 0;
  std::span<std::byte> to;
};

}  // namespace isotope
