// Reads arbitrary bytes as a file of a folder, by the first byte: config.json, the index of shards, a file of sentence-transformers, or
// the manifest of token shards. Beside it are the files of a tiny BERT and two token shards. The result is a failure that names the folder,
// or a configuration within its bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/interop/bert_folder.hpp>
#include <isotope/interop/gpt2_folder.hpp>
#include <isotope/io/shard_dataset.hpp>

namespace {

namespace interop = isotope::interop;

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr std::string_view config =
    R"({"model_type":"bert","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":16,"vocab_size":9,)"
    R"("max_position_embeddings":12,"type_vocab_size":2})";
constexpr std::string_view modules = R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},)"
                                     R"({"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}])";

/// A folder of this process. Files that are not given are those of a BERT.
struct folder {
  std::filesystem::path path;
  folder() {
    std::string made = (std::filesystem::temp_directory_path() / "isotope-folder-fuzz-XXXXXX").string();
    expect(::mkdtemp(made.data()) != nullptr);
    path = made;
    std::filesystem::create_directory(path / "1_Pooling");
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void put(std::string_view file, std::string_view text) const { std::ofstream(path / file, std::ios::binary) << text; }
};

const folder& shared() {
  static const folder f;
  return f;
}

/// Reads token shards: ids within the vocabulary, or a failure that names the folder.
void read_shards(const std::string& path) {
  const auto data = isotope::io::shard_dataset::open(path, 4);
  if (!data) return expect(data.error().line().find(path) != std::string::npos);
  std::vector<std::int32_t> tokens(2 * 3), targets(2 * 3);
  if (data->check(3, 2)) data->training_batch(1, 5, 3, tokens, targets);
  data->validation_batch(0, 3, tokens, targets);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    expect(tokens[i] >= 0 && tokens[i] < data->vocab().size() && targets[i] < data->vocab().size());
  const auto verified = data->verify();
  expect(verified.ok() || verified.error().line().find(path) != std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr std::string_view files[] = {
      "config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "model.safetensors.index.json", "manifest.json"};
  const std::string_view changed = files[data[0] % std::size(files)];
  const folder& f = shared();
  f.put("config.json", config);
  f.put("modules.json", modules);
  f.put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens":true})");
  f.put("sentence_bert_config.json", R"({"max_seq_length":10})");
  f.put("a.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  f.put("model.safetensors.index.json", R"({"weight_map":{}})");
  f.put("shard-00000.bin", std::string(24, '\0'));
  f.put("shard-00001.bin", std::string(24, '\1'));
  f.put(changed, text);
  if (changed == "manifest.json") return read_shards(f.path.string()), 0;
  const auto opened = isotope::io::open_model(f.path.string());
  if (!opened) {
    expect(opened.error().line().find(f.path.string()) != std::string::npos);
    return 0;
  }
  const auto bert = interop::read_bert_config(*opened);
  if (bert) {
    const auto& b = bert->size;
    expect(validate(b).empty() && b.width % b.heads == 0);
    expect(bert->sentence.most_tokens >= 1 && bert->sentence.most_tokens <= b.context);
  } else {
    expect(bert.error().line().find(f.path.string()) != std::string::npos);
  }
  const auto gpt2 = interop::read_gpt2_config(*opened);
  expect(gpt2.ok() ? validate(gpt2->size).empty() : !gpt2.error().line().empty());
  return 0;
}
