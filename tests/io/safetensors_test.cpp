#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <isotope/io/safetensors.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace safetensors_test {

io::file_bytes bytes_of(const std::string& text) {
  auto bytes = std::make_unique<std::byte[]>(text.size());
  std::transform(text.begin(), text.end(), bytes.get(), [](char c) { return static_cast<std::byte>(c); });
  return {std::move(bytes), text.size()};
}

std::string image(const std::string& header, std::size_t data) {
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return out + header + std::string(data, 'd');
}

failure failure_of(const std::string& file) {
  auto got = io::parse_safetensors(bytes_of(file), "t");
  EXPECT_FALSE(got.ok()) << file.substr(8);
  return got.ok() ? failure{} : got.error();
}

TEST(safetensors, a_file_by_hand_is_read) {
  const std::string header =
      R"({"b":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},"__metadata__":{"k":"v"},"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}  )";
  const auto got = io::parse_safetensors(bytes_of(image(header, 10)), "t");
  ASSERT_TRUE(got.ok()) << got.error().line();
  ASSERT_EQ(got->tensors.size(), 2u);
  EXPECT_EQ(got->tensors[0].name, "a");
  EXPECT_EQ(got->tensors[0].elems(), 1);
  EXPECT_EQ(got->find("b")->dims, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(got->find("b")->bytes.size(), 8u);
  EXPECT_EQ(*got->note("k"), "v");
  EXPECT_EQ(got->find("c"), nullptr);
}

TEST(safetensors, a_file_without_tensors_is_valid) { EXPECT_TRUE(io::parse_safetensors(bytes_of(image("{}", 0)), "t").ok()); }

TEST(safetensors, every_type_is_written_and_read_back_aligned) {
  const scratch_folder folder;
  std::vector<std::byte> data(24);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  std::vector<io::stored_tensor> tensors;
  for (const auto& type : io::element_types)
    tensors.push_back({"t." + std::string(type.name), type, {3, 1}, std::span(data).first(static_cast<std::size_t>(3 * type.bytes))});
  tensors.push_back({"empty", io::f32_elements, {0, 5}, {}});
  ASSERT_TRUE(io::write_safetensors(folder.at("f"), tensors, {{"key", "va\"lue"}}).ok());
  const auto back = io::read_safetensors(folder.at("f"));
  ASSERT_TRUE(back.ok()) << back.error().line();
  ASSERT_EQ(back->tensors.size(), tensors.size());
  EXPECT_EQ(*back->note("key"), "va\"lue");
  for (const auto& t : tensors) {
    const auto* b = back->find(t.name);
    ASSERT_NE(b, nullptr) << t.name;
    EXPECT_EQ(b->type, t.type);
    EXPECT_EQ(b->dims, t.dims);
    EXPECT_TRUE(std::equal(b->bytes.begin(), b->bytes.end(), t.bytes.begin(), t.bytes.end())) << t.name;
    EXPECT_EQ((b->bytes.data() - back->file.view().data()) % t.type.bytes, 0) << t.name;
  }
}

TEST(safetensors, a_file_cut_at_any_byte_is_refused) {
  const std::string whole = image(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) EXPECT_EQ(failure_of(whole.substr(0, cut)).code, errc::truncated) << cut;
}

TEST(safetensors, a_huge_header_length_is_refused_before_anything_is_read) {
  std::string file = image("{}", 0);
  for (std::size_t i = 0; i < 8; ++i) file[i] = '\xff';
  EXPECT_EQ(failure_of(file).code, errc::bad_format);
}

// A header of many tensors is parsed one tensor at a time, so it needs little memory.
TEST(safetensors, a_long_header_takes_little_more_memory_than_its_tensors) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer keeps freed memory";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the address sanitizer keeps freed memory";
#endif
#endif
  std::string header = "{";
  for (int i = 0; header.size() < 20'000'000; ++i)
    header += std::string(i == 0 ? "" : ",") + "\"t" + std::to_string(i) + R"(":{"dtype":"F32","shape":[0,1,2],"data_offsets":[0,0]})";
  auto file = bytes_of(image(header + "}", 0));
  const auto kilobytes = [](const std::string& what) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(what)) return std::stol(line.substr(what.size()));
    return -1L;
  };
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the peak of resident memory
  const long before = kilobytes("VmHWM:");
  if (before < 0) GTEST_SKIP() << "the system does not say how much memory a process used";
  const auto read = io::parse_safetensors(std::move(file), "t");
  ASSERT_TRUE(read.ok()) << read.error().line();
  EXPECT_GT(read->tensors.size(), 200'000u);
  EXPECT_LT(kilobytes("VmHWM:") - before, 10 * 20'000) << "kilobytes for a header of 20,000";
}
TEST(safetensors, an_entry_of_more_values_than_any_tensor_has_is_refused) {
  std::string dims;
  for (int i = 0; i < 5000; ++i) dims += i == 0 ? "1" : ",1";
  const auto f = failure_of(image(R"({"a":{"dtype":"U8","shape":[)" + dims + R"(],"data_offsets":[0,1]}})", 1));
  EXPECT_EQ(f.code, errc::bad_format);
  EXPECT_NE(f.line().find("the member 'a' holds more than 4096 values"), std::string::npos) << f.line();
}

TEST(safetensors, holes_overlaps_and_bytes_after_the_last_tensor_are_refused) {
  const auto two = [](const char* a, const char* b) {
    return std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + a + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b +
           "}}";
  };
  EXPECT_TRUE(io::parse_safetensors(bytes_of(image(two("[4,8]", "[0,4]"), 8)), "t").ok());
  EXPECT_NE(failure_of(image(two("[0,4]", "[5,9]"), 9)).what.find("a hole"), std::string::npos);
  EXPECT_NE(failure_of(image(two("[1,5]", "[5,9]"), 9)).what.find("a hole"), std::string::npos);
  EXPECT_NE(failure_of(image(two("[0,4]", "[3,7]"), 7)).what.find("an overlap"), std::string::npos);
  EXPECT_NE(failure_of(image(two("[0,4]", "[0,4]"), 4)).what.find("an overlap"), std::string::npos);
  EXPECT_NE(failure_of(image(two("[0,4]", "[4,8]"), 9)).what.find("1 bytes after the last tensor"), std::string::npos);
}

TEST(safetensors, malformed_headers_are_refused) {
  for (const char* header :
       {"",
        " {}",
        "[]",
        "{",
        "{}x",
        R"({"a":1})",
        R"({"a":{}})",
        R"({"a":{"dtype":"F32","shape":[1]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
        R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
        R"({"__metadata__":{"k":1}})",
        R"({"__metadata__":"x"})",
        R"({"__metadata__":{"k":"1","k":"2"}})"})
    EXPECT_EQ(failure_of(image(header, 4)).code, errc::bad_format) << header;
}

TEST(safetensors, sizes_that_overflow_are_refused) {
  for (const char* shape : {"[9223372036854775807,2]", "[4294967296,4294967296]", "[4294967296,4294967296,0]", "[18446744073709551615]",
                            "[99999999999999999999]", "[4611686018427387904]"})
    EXPECT_EQ(failure_of(image(std::string(R"({"a":{"dtype":"F32","shape":)") + shape + R"(,"data_offsets":[0,4]}})", 4)).code,
              errc::bad_format)
        << shape;
  EXPECT_EQ(failure_of(image(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551612,18446744073709551616]}})", 4)).code,
            errc::bad_format);
}

TEST(safetensors, the_writer_refuses_equal_names_and_wrong_sizes) {
  const std::vector<float> x(4);
  const auto bytes = std::as_bytes(std::span(x));
  const auto refused = [](std::vector<io::stored_tensor> tensors) {
    const auto header = io::safetensors_header(tensors, {});
    return !header.ok() && header.error().code == errc::invalid_argument;
  };
  EXPECT_FALSE(refused({{"a", io::f32_elements, {2, 2}, bytes}}));
  EXPECT_TRUE(refused({{"a", io::f32_elements, {2, 2}, bytes}, {"a", io::f32_elements, {4}, bytes}}));
  EXPECT_TRUE(refused({{"__metadata__", io::f32_elements, {4}, bytes}}));
  EXPECT_TRUE(refused({{"a", io::f32_elements, {3}, bytes}}));
  EXPECT_TRUE(refused({{"a", io::f32_elements, {-4}, bytes}}));
}

TEST(safetensors, floating_types_convert_to_f32_at_any_alignment) {
  // At odd offsets in the image: 1.5 as BF16 (0x3fc0), F16 (0x3e00) and F64.
  const double d = 1.5;
  std::string data = "\x01\xc0\x3f";
  data += std::string("\x00\x3e", 2) + std::string(reinterpret_cast<const char*>(&d), 8);
  const std::string header =
      R"({"p":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[1,3]},"h":{"dtype":"F16","shape":[1],"data_offsets":[3,5]},"d":{"dtype":"F64","shape":[1],"data_offsets":[5,13]}})";
  const auto got = io::parse_safetensors(bytes_of(image(header, 0) + data), "t");
  ASSERT_TRUE(got.ok()) << got.error().line();
  for (const char* name : {"b", "h", "d"}) {
    float x = 0;
    ASSERT_TRUE(io::copy_f32(*got->find(name), std::span(&x, 1)).ok()) << name;
    EXPECT_EQ(x, 1.5f) << name;
  }
  float two[2];
  EXPECT_FALSE(io::copy_f32(*got->find("b"), two).ok());
  EXPECT_FALSE(io::copy_f32(*got->find("p"), std::span(two, 1)).ok());
}

}  // namespace safetensors_test
}  // namespace isotope
