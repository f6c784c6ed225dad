#pragma once
/// The driver's compiled pipelines on disk: taken back only where file, device, driver and modules are those that wrote it.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "instance.hpp"

namespace isotope::vulkan {

/// What stands before the driver's blob. The hash finds files that were cut or changed.
struct pipeline_file_header {
  std::uint64_t magic = 0x32657069706f7369;  // "isopipe2"
  std::uint32_t vendor = 0, device = 0, driver = 0, api = 0;
  std::uint8_t uuid[VK_UUID_SIZE] = {};
  std::uint64_t bytes = 0, hash = 0;
};

namespace pipeline_file {
/// FNV-1a (Fowler, Noll & Vo 1991) over words of 8 bytes, the last filled up with zeros: blobs have many MiB, and byte by byte it is most of what a
/// warm start takes beside the driver. Upper bits are brought down after each word, since products carry differences only up.
inline std::uint64_t hash_of(const char* data, std::size_t n) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < n; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + i, n - i < 8 ? n - i : 8);
    h = (h ^ word) * 0x100000001b3u;
    h ^= h >> 32;
  }
  return h;
}
inline pipeline_file_header header_for(const physical_device& p, const std::vector<char>& blob) {
  pipeline_file_header h;
  h.vendor = p.properties.vendorID;
  h.device = p.properties.deviceID;
  h.driver = p.properties.driverVersion;
  h.api = p.properties.apiVersion;
  std::memcpy(h.uuid, p.cache_uuid, VK_UUID_SIZE);
  h.bytes = blob.size();
  h.hash = hash_of(blob.data(), blob.size());
  return h;
}

/// The blob of a file that fits this device; empty for anything else: no file, another device or driver, a file that was cut or changed.
inline std::vector<char> read(const std::string& path, const physical_device& p) {
  std::ifstream in(path, std::ios::binary);
  pipeline_file_header h;
  if (!in.read(reinterpret_cast<char*>(&h), sizeof h) || h.bytes > (std::uint64_t(1) << 32)) return {};
  std::error_code none;
  if (std::filesystem::file_size(path, none) != sizeof h + h.bytes || none) return {};
  std::vector<char> blob(h.bytes);
  if (!in.read(blob.data(), std::streamsize(h.bytes))) return {};
  const auto expected = header_for(p, blob);
  return std::memcmp(&h, &expected, sizeof h) == 0 ? blob : std::vector<char>{};
}

/// Writes beside the file and renames: whoever reads meanwhile, and whoever is killed meanwhile, leaves an old file, a new one, or none.
/// False where the folder cannot be written; nothing else depends on it.
inline bool write(const std::string& path, const physical_device& p, const std::vector<char>& blob) {
  const auto h = header_for(p, blob);
  const std::string beside = path + "." + std::to_string(getpid()) + ".tmp";
  std::error_code none;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) std::filesystem::create_directories(folder, none);
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(&h), sizeof h);
    out.write(blob.data(), std::streamsize(blob.size()));
    out.flush();
    if (!out) {
      out.close();
      std::filesystem::remove(beside, none);
      return false;
    }
  }
  std::filesystem::rename(beside, path, none);
  if (!none) return true;
  std::filesystem::remove(beside, none);
  return false;
}
}  // namespace pipeline_file

}  // namespace isotope::vulkan
