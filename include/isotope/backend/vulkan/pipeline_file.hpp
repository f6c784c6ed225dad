#pragma once
/// The driver's pipeline cache on disk. A file is used only if it is intact and was written for the same device and driver.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "instance.hpp"

namespace isotope::vulkan {

/// The header before the driver's blob. The hash detects truncated and changed files.
struct pipeline_file_header {
  std::uint64_t magic = 0x32657069706f7369;  // "isopipe2"
  std::uint32_t vendor = 0, device = 0, driver = 0, api = 0;
  std::uint8_t uuid[VK_UUID_SIZE] = {};
  std::uint64_t bytes = 0, hash = 0;
};

namespace pipeline_file {
/// FNV-1a (Fowler, Noll & Vo 1991) over words of 8 bytes, the last padded with zeros. Blobs have many MiB, and hashing them byte by byte would take most of
/// the time of a warm start outside the driver. The shift after each word brings high bits down, since the multiplication only carries bits upwards.
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

/// Reads the blob of a file. Empty if there is no file, it is for another device or driver, or it was truncated or changed.
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

/// Writes a temporary file and renames it, so that readers never see a partial file, and a process that is killed leaves the old file or the complete one.
/// Returns false if the folder cannot be written, which is harmless.
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
