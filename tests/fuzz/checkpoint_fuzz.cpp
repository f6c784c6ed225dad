// Reads arbitrary bytes as a checkpoint: as they are, and with a correct hash, so that the checks after the hash are reached.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <isotope/io/checkpoint.hpp>
#include <memory>
#include <string>
#include <vector>

namespace {

isotope::io::file_bytes bytes_of(const std::string& image) {
  auto bytes = std::make_unique<std::byte[]>(image.size());
  std::transform(image.begin(), image.end(), bytes.get(), [](char c) { return static_cast<std::byte>(c); });
  return {std::move(bytes), image.size()};
}

void check(const std::string& image) {
  const auto got = isotope::io::parse_checkpoint(bytes_of(image), "input");
  if (!got.ok()) {
    if (got.error().line().empty()) __builtin_trap();
    return;
  }
  for (const auto& tensor : got->contents.tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.elems()));
    static_cast<void>(got->read(tensor.name, values));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace detail = isotope::io::detail;
  std::string image(data, data + size);
  check(image);
  if (size < detail::hash_at + detail::blank_hash.size()) return 0;

  // Random bytes hardly ever contain a valid header length and opening, so these are inserted. The last brace is the header's end.
  image.replace(8, detail::checkpoint_opening.size(), detail::checkpoint_opening);
  const std::uint64_t length = std::max<std::size_t>(image.rfind('}'), detail::hash_at) - 7;
  for (std::size_t i = 0; i < 8; ++i) image[i] = static_cast<char>((length >> (8 * i)) & 0xff);
  image.replace(detail::hash_at, detail::blank_hash.size(), detail::hash_of_image(bytes_of(image).view()));
  check(image);
  return 0;
}
