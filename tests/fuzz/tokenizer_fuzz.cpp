// Reads arbitrary bytes, up to a line of three minus signs, as the file of a tokenizer: tokenizer.json, vocab.txt, or merges for a vocabulary of bytes, by the
// first byte. The result is a failure or a tokenizer, which then encodes the rest, in ways that must agree, and decodes it.
#include <cstddef>
#include <cstdint>
#include <isotope/io/tokenizer_file.hpp>
#include <string>
#include <string_view>

namespace {

using namespace isotope::io;

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

isotope::result<tokenizer> opened(std::uint8_t kind, std::string_view file) {
  if (kind % 3 == 0) return tokenizer_from_json(file, "f.json");
  if (kind % 3 == 1) return tokenizer_of_words(file, "vocab.txt");
  std::string vocab = "{";
  for (std::uint32_t b = 0; b < 256; ++b)
    vocab += json_string(byte_characters.text_of(std::string(1, static_cast<char>(b)))) + ":" + std::to_string(b) + ",";
  return tokenizer_of_merges(vocab + R"("ab":256,"bc":257,"abc":258,"aa":259})", "vocab.json", file, "merges.txt");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(all.find("\n---\n"), all.size());
  const std::string_view text = all.substr(std::min(end + 5, all.size()));
  const auto t = opened(data[0], all.substr(0, end));
  if (!t) {
    expect(!t.error().line().empty());
    return 0;
  }
  for (const specials special : {specials::parse, specials::plain}) {
    const auto made = t->encode(text, {.special = special, .spans = true});
    expect(made.ok() && made->spans.size() == made->ids.size() && made->types.size() == made->ids.size());
    for (const token_span s : made->spans) expect(s.first <= s.last && s.last <= text.size());
    const auto whole = t->decode(made->ids);
    expect(whole.ok());
    stream_decoder stream(*t);
    std::string pieces;
    for (const std::int32_t id : made->ids) pieces += *stream.add(id);
    expect(pieces + stream.finish() == *whole);
    const auto cut = t->encode(text, {.special = special, .limit = 3});
    expect(!cut.ok() || cut->ids.size() <= 3);
    if (data[0] % 3 == 2) {  // without normalization, ids give the bytes back
      std::string bytes(text), valid;
      take_characters(bytes, valid, true);
      expect(valid == *whole);
    }
  }
  return 0;
}
