#include <gtest/gtest.h>
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <isotope/io/safetensors_file.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace safetensors_file_test {

/// More numbers than the reader takes in one piece, and not a multiple of that.
constexpr std::size_t many = 2 * io::detail::piece_bytes / sizeof(double) + 3;

template <class T> std::vector<T> numbers() {
  std::vector<T> out(many);
  for (std::size_t i = 0; i < many; ++i) out[i] = T(float(i % 2001) / 8 - 100);
  return out;
}

struct sample {
  std::vector<float> f32 = numbers<float>();
  std::vector<double> f64 = numbers<double>();
  std::vector<float16> f16 = numbers<float16>();
  std::vector<bfloat16> bf16 = numbers<bfloat16>();
  std::vector<std::uint8_t> u8{1, 2, 3};

  std::string write(const scratch_folder& folder) const {
    const auto n = std::int64_t(many);
    const std::vector<io::stored_tensor> tensors = {{"f16", {"F16", 2}, {n}, std::as_bytes(std::span(f16))},
                                                    {"f32", {"F32", 4}, {n}, std::as_bytes(std::span(f32))},
                                                    {"empty", {"F32", 4}, {0, 7}, {}},
                                                    {"u8", {"U8", 1}, {3}, std::as_bytes(std::span(u8))},
                                                    {"bf16", {"BF16", 2}, {n}, std::as_bytes(std::span(bf16))},
                                                    {"f64", {"F64", 8}, {n}, std::as_bytes(std::span(f64))}};
    EXPECT_TRUE(io::write_safetensors(folder.at("f"), tensors, {{"key", "text"}}).ok());
    return folder.at("f");
  }
};

TEST(safetensors_file, reads_what_the_file_held_whole_reads) {
  const scratch_folder folder;
  const std::string path = sample().write(folder);
  const auto whole = io::read_safetensors(path);
  const auto file = io::open_safetensors(path);
  ASSERT_TRUE(whole.ok() && file.ok());
  EXPECT_EQ(file->metadata, whole->metadata);
  ASSERT_NE(file->note("key"), nullptr);
  ASSERT_EQ(file->tensors.size(), whole->tensors.size());
  for (std::size_t k = 0; k < whole->tensors.size(); ++k) {
    const auto& held = whole->tensors[k];
    const auto& entry = file->tensors[k];
    EXPECT_EQ(entry.name, held.name);
    EXPECT_EQ(entry.dims, held.dims);
    EXPECT_EQ(entry.elems(), held.elems());
    std::vector<std::byte> bytes(entry.bytes), seen;
    ASSERT_TRUE(file->read(entry, bytes).ok());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), held.bytes.begin(), held.bytes.end())) << held.name;
    std::vector<float> a(std::size_t(held.elems())), b(a.size());
    const auto expected = io::copy_f32(held, a);
    const auto got =
        file->read_f32(entry, b, [&](std::span<const std::byte> piece) { seen.insert(seen.end(), piece.begin(), piece.end()); });
    ASSERT_EQ(got.ok(), expected.ok()) << held.name;
    if (got) {
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i])) << held.name << i;
      EXPECT_TRUE(seen == bytes) << held.name;
    } else {
      EXPECT_EQ(got.error().line(), expected.error().line());
    }
    b.resize(b.size() + 1);
    EXPECT_EQ(file->read_f32(entry, b).error().code, errc::invalid_argument);
    bytes.push_back({});
    EXPECT_EQ(file->read(entry, bytes).error().code, errc::invalid_argument);
  }
}

TEST(safetensors_file, a_damaged_header_is_refused_in_the_same_words) {
  const scratch_folder folder;
  const std::string path = sample().write(folder), good = folder.read("f");
  for (std::string bad : {std::string(), std::string("short"), good.substr(0, 7), good.substr(0, 8), good.substr(0, 100),
                          good.substr(0, good.size() - 1), good + "x", std::string(8, '\xff') + good.substr(8)}) {
    folder.put("f", bad);
    const auto whole = io::read_safetensors(path);
    const auto file = io::open_safetensors(path);
    ASSERT_FALSE(whole.ok() || file.ok()) << bad.size();
    EXPECT_EQ(file.error().line(), whole.error().line());
  }
  EXPECT_EQ(io::open_safetensors(folder.at("absent")).error().code, errc::not_found);
  EXPECT_EQ(io::open_safetensors(folder.at(".")).error().code, errc::unreadable);
}

TEST(safetensors_file, a_file_that_is_shortened_is_a_failure_with_the_tensors_name) {
  const scratch_folder folder;
  const std::string path = sample().write(folder);
  const auto file = io::open_safetensors(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, file->data_at + 8);
  std::vector<float> out(many);
  const auto r = file->read_f32(*file->find("f32"), out);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, errc::unreadable);
  EXPECT_NE(r.error().line().find("tensor 'f32'"), std::string::npos) << r.error().line();
}

TEST(safetensors_file, a_pipe_is_read_to_its_end) {
  const scratch_folder folder;
  sample().write(folder);
  const std::string image = folder.read("f");
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  std::thread writer([&] { folder.put("pipe", image); });
  const auto file = io::open_safetensors(folder.at("pipe"));
  writer.join();
  ASSERT_TRUE(file.ok()) << file.error().line();
  std::vector<float> out(many);
  ASSERT_TRUE(file->read_f32(*file->find("f32"), out).ok());
  EXPECT_EQ(out, sample().f32);
}

}  // namespace safetensors_file_test
}  // namespace isotope
