// A folder with config.json and tensors is opened whole, or refused in one line that names the file and what is wrong in it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <isotope/io/model_folder.hpp>
#include <span>
#include <string>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace model_folder_test {

const std::vector<float> numbers = {1, -2, 3, 0.5f};
constexpr const char* config = R"({"model_type": "gpt2"})";

/// Writes a file with tensors (4) of these names.
void put_tensors(const scratch_folder& f, std::string_view file, const std::vector<std::string>& names) {
  std::vector<io::stored_tensor> tensors;
  for (const auto& n : names) tensors.push_back({n, io::f32_elements, {4}, std::as_bytes(std::span(numbers))});
  ASSERT_TRUE(io::write_safetensors(f.at(file), tensors, {}).ok());
}
constexpr const char* first = "model-00001-of-00002.safetensors";
constexpr const char* second = "model-00002-of-00002.safetensors";
std::string index_of(std::string_view map) { return "{\"metadata\": {},\n \"weight_map\": {" + std::string(map) + "}}"; }
std::string entry(std::string_view tensor, std::string_view file) {
  return "\"" + std::string(tensor) + "\": \"" + std::string(file) + "\"";
}
/// A whole folder in two shards: a, b | c.
void put_shards(const scratch_folder& f) {
  f.put("config.json", config);
  put_tensors(f, first, {"a", "b"});
  put_tensors(f, second, {"c"});
  f.put("model.safetensors.index.json", index_of(entry("c", second) + ", " + entry("a", first) + ",\n" + entry("b", first)));
}
failure refused(const scratch_folder& f) {
  const auto r = io::open_model(f.at(""));
  EXPECT_FALSE(r.ok());
  if (r) return {};
  EXPECT_FALSE(r.error().fix.empty());
  EXPECT_EQ(r.error().line().find('\n'), std::string::npos) << r.error().line();
  return r.error();
}
void expect(const failure& f, errc code, std::string_view where, std::string_view what) {
  EXPECT_EQ(f.code, code) << f.line();
  EXPECT_NE(f.where.find(where), std::string::npos) << f.line();
  EXPECT_NE(f.what.find(what), std::string::npos) << f.line();
}

TEST(model_folder, finds_tensors_by_name_in_one_file_and_in_shards) {
  for (const bool sharded : {false, true}) {
    const scratch_folder f;
    if (sharded) put_shards(f);
    else put_tensors(f, "model.safetensors", {"c", "a", "b"});
    f.put("config.json", config);
    const auto m = io::open_model(f.at("") + "/");
    ASSERT_TRUE(m.ok()) << m.error().line();
    EXPECT_EQ(m->family.name, "GPT-2");
    EXPECT_FALSE(m->path.ends_with('/'));
    ASSERT_EQ(m->size(), 3u);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(m->tensor(k).name, std::string(1, char('a' + k)));
    EXPECT_EQ(m->find("b"), 1u);
    EXPECT_EQ(m->find("bb"), m->size());
    EXPECT_EQ(m->find(""), m->size());
    std::vector<float> two(2);
    ASSERT_TRUE(m->file_of(2).read_f32(m->tensor(2), 1, two).ok());
    EXPECT_EQ(two, (std::vector<float>{-2, 3}));
    EXPECT_EQ(m->file_of(2).read_f32(m->tensor(2), 3, two).error().code, errc::invalid_argument);
    EXPECT_EQ(m->file_of(2).read_f32(m->tensor(2), -1, two).error().code, errc::invalid_argument);
  }
}

TEST(model_folder, prefers_the_whole_file_to_an_index_as_transformers_does) {
  const scratch_folder f;
  put_shards(f);
  put_tensors(f, "model.safetensors", {"other"});
  const auto m = io::open_model(f.at(""));
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->tensor(0).name, "other");
}

TEST(model_folder, says_which_file_is_missing) {
  expect(io::open_model("no/such/folder").error(), errc::not_found, "no/such/folder", "no such folder");
  const scratch_folder f;
  expect(refused(f), errc::not_found, "config.json", "no such file");
  expect(io::open_model(f.put("a_file", "")).error(), errc::unreadable, "a_file", "is not a folder");
  f.put("config.json", config);
  expect(refused(f), errc::not_found, "isotope-", "has neither model.safetensors nor model.safetensors.index.json");
  f.put("pytorch_model.bin", "PK");
  EXPECT_NE(refused(f).fix.find("safe_serialization"), std::string::npos);
  std::filesystem::remove(f.at("pytorch_model.bin"));
  put_shards(f);
  std::filesystem::remove(f.at(second));
  expect(refused(f), errc::not_found, "model.safetensors.index.json", second);
}

TEST(model_folder, refuses_a_configuration_that_it_cannot_read) {
  const scratch_folder f;
  put_tensors(f, "model.safetensors", {"a"});
  const auto with = [&](std::string_view text) { return f.put("config.json", text), refused(f); };
  expect(with(""), errc::bad_format, "config.json:1", "not JSON");
  expect(with("[]"), errc::bad_format, "config.json", "an array, not an object");
  expect(with("{\"model_type\": \"gpt2\",\n\"model_type\": \"gpt2\"}"), errc::bad_format, "config.json:2", "stands twice");
  expect(with("{\"model_type\": \"gpt2\"} {"), errc::bad_format, "config.json:1", "not JSON");
  expect(with("{\n\"n_layer\": 2}"), errc::invalid_model, "config.json:1: model_type", "is missing");
  expect(with("{\n\"model_type\": 7}"), errc::bad_format, "config.json:2: model_type", "is 7");
  const failure unknown = with("{\n\"model_type\": \"t5\\n\"}");
  expect(unknown, errc::invalid_model, "config.json:2: model_type", "\"t5\\n\", a model that isotope does not know");
  EXPECT_NE(unknown.fix.find("gpt2, bert, llama, qwen2, qwen3"), std::string::npos);
  expect(with("{\"a\": " + std::string(5000, '[')), errc::bad_format, "config.json:1", "deep");
  expect(with("{\"model_type\": \"gpt2\"" + std::string(1 << 20, ' ') + "}"), errc::bad_format, "config.json", "more than 1048576");
  std::filesystem::remove(f.at("config.json"));
  ASSERT_EQ(::mkfifo(f.at("config.json").c_str(), 0600), 0);
  expect(refused(f), errc::unreadable, "config.json", "is not a regular file");
}

TEST(model_folder, refuses_shards_that_disagree_with_their_index) {
  const auto with = [](std::string_view map) {
    const scratch_folder f;
    put_shards(f);
    f.put("model.safetensors.index.json", index_of(map));
    return refused(f);
  };
  const std::string a = entry("a", first) + ",", b = entry("b", first) + ",", c = entry("c", second);
  expect(with(a + b + c + "," + entry("d", second)), errc::bad_format, second, "lacks the tensor 'd'");
  expect(with(a + b + entry("a", second)), errc::bad_format, "index.json:2", "'a' stands twice");
  expect(with(a + c), errc::bad_format, first, "the tensor 'b', which the index does not name");
  expect(with(a + entry("b", second) + "," + c), errc::bad_format, first, "expects in '" + std::string(second) + "'");
  expect(with(a + b + entry("c", "../c.safetensors")), errc::bad_format, "index.json:2", "is not the name of a safetensors file");
  expect(with(a + b + entry("c", "/c.safetensors")), errc::bad_format, "index.json:2", "is not the name");
  expect(with(a + b + entry("c", "c.bin")), errc::bad_format, "index.json:2", "is not the name");
  expect(with(a + b + "\"c\": 7"), errc::bad_format, "index.json:2", "7 of 'c' is not the name");
  std::string many = a + b + c;
  for (int i = 0; i < 1000; ++i) many += "," + entry("t" + std::to_string(i), std::to_string(i) + ".safetensors");
  expect(with(many), errc::bad_format, "index.json:2", "more than 1000 files");

  const scratch_folder f;
  put_shards(f);
  f.put("model.safetensors.index.json", "{\"weight_map\": [1]}");
  expect(refused(f), errc::bad_format, "index.json", "has no object 'weight_map'");
  put_shards(f);
  put_tensors(f, second, {"b", "c"});  // a tensor in two shards
  expect(refused(f), errc::bad_format, second, "the tensor 'b', which the index expects in '" + std::string(first) + "'");
}

TEST(model_folder, refuses_damaged_files_of_tensors_and_names_them) {
  const scratch_folder f;
  put_shards(f);
  const std::string whole = f.read(second);
  f.put(second, whole.substr(0, whole.size() - 4));
  expect(refused(f), errc::truncated, second, "");
  f.put(second, whole.substr(0, 5));
  expect(refused(f), errc::truncated, second, "");
  f.put(second, "\xff\xff\xff\xff\xff\xff\xff\x7f{}");
  expect(refused(f), errc::bad_format, second, "100 MB");
  std::filesystem::remove(f.at(second));
  ASSERT_EQ(::mkfifo(f.at(second).c_str(), 0600), 0);
  expect(refused(f), errc::unreadable, second, "is not a regular file");
}

}  // namespace model_folder_test
}  // namespace isotope
