/// isotope-tokenize: texts to token ids and back, tokenizers of texts, and token shards to train on. See --help.
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/version_without_device.hpp"
#include "command.hpp"
#include "shards.hpp"

#include <isotope/io/byte_pair_train.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/tokenizer_file.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenize_program {

namespace io = isotope::io;
using isotope::errc, isotope::fail, isotope::result;

/// The text that a command is about: of its second file, or of standard input.
result<std::string> input_of(const command& c) {
  auto bytes = io::read_file(c.files.size() > 1 ? c.files[1] : "/dev/stdin");
  if (!bytes) return std::move(bytes).error();
  return std::string(bytes->text());
}

std::string list_of(const auto& values, std::string_view between, auto&& text) {
  std::string s;
  for (const auto& v : values) s += (s.empty() ? "" : std::string(between)) + text(v);
  return s;
}

result<std::string> encoded(const io::tokenizer& t, std::string_view text, const io::encode_options& o, const command& c) {
  const auto made = t.encode(text, o);
  if (!made) return made.error();
  if (c.has("--count")) return std::to_string(made->ids.size()) + "\n";
  const auto number = [](auto n) { return std::to_string(n); };
  if (!c.has("--json")) return list_of(made->ids, " ", number) + "\n";
  std::string line = "{\"ids\":[" + list_of(made->ids, ",", number) + "],\"types\":[" + list_of(made->types, ",", number) + "]";
  if (o.spans)
    line += ",\"spans\":[" +
            list_of(made->spans, ",", [](io::token_span s) { return "[" + std::to_string(s.first) + "," + std::to_string(s.last) + "]"; }) +
            "]";
  return line + ",\"cut\":" + std::to_string(made->cut) + "}\n";
}

result<std::string> encode(const command& c, const io::tokenizer& t) {
  const auto limit = c.whole("--limit", std::numeric_limits<std::int64_t>::max(), 0, std::numeric_limits<std::int64_t>::max());
  if (!limit) return limit.error();
  const io::encode_options options{.special = c.has("--plain") ? io::specials::plain : io::specials::parse,
                                   .framed = !c.has("--no-frame"),
                                   .limit = static_cast<std::size_t>(*limit),
                                   .over = c.has("--refuse") ? io::over_limit::refuse : io::over_limit::cut,
                                   .spans = c.has("--spans")};
  const auto given = c.has("--text") ? result<std::string>(c.get("--text")) : input_of(c);
  if (!given) return given.error();
  if (!c.has("--lines") && !c.has("--json")) return encoded(t, *given, options, c);
  std::string all;
  int number = 0;
  for (const std::string_view line : io::detail::lines_of(*given)) {
    const std::string where = "line " + std::to_string(++number);
    io::json value;
    if (c.has("--json")) {
      auto read = io::parse_json(line, where);
      if (!read) return std::move(read).error();
      value = *std::move(read);
      if (value.is != io::json::kind::string) return fail(errc::bad_format, "is not a JSON string", where, "write one text a line");
    }
    auto made = encoded(t, c.has("--json") ? std::string_view(value.text) : line, options, c);
    if (!made) return made;
    all += *made;
  }
  return all;
}

/// The ids in a text: whole numbers, with anything that is neither digit nor sign between them.
result<std::vector<std::int32_t>> ids_in(std::string_view text, const std::string& where) {
  std::vector<std::int32_t> ids;
  for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
    const std::string_view blanks = " \t\r\n,[]";
    if (blanks.find(*at) != blanks.npos) {
      ++at;
      continue;
    }
    std::int32_t id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error != std::errc{})
      return fail(errc::bad_format, "no id at byte " + std::to_string(at - text.data()), where,
                  "give whole numbers with blanks between them");
    ids.push_back(id);
    at = stop;
  }
  return ids;
}

result<std::string> decode(const command& c, const io::tokenizer& t) {
  const auto given = input_of(c);
  if (!given) return given.error();
  const bool by_line = c.has("--lines") || c.has("--json");
  std::string all;
  int number = 0;
  for (const std::string_view part : by_line ? io::detail::lines_of(*given) : std::vector<std::string_view>{*given}) {
    const auto ids = ids_in(part, "line " + std::to_string(++number));
    if (!ids) return ids.error();
    auto text = t.decode(*ids, !c.has("--skip-specials"));
    if (!text) return text;
    all += (c.has("--json") ? io::json_string(*text) : *text) + (by_line ? "\n" : "");
  }
  return all;
}

result<std::string> train(const command& c) {
  const auto size = c.whole("--size", 8192, 256, 1 << 24), least = c.whole("--least", 2, 1, std::numeric_limits<std::int64_t>::max());
  if (!size) return size.error();
  if (!least) return least.error();
  if (!c.has("--out")) return fail(errc::missing_value, "train needs a file to write", "--out", "--out tokenizer.json");
  io::byte_pair_training options{static_cast<std::int32_t>(*size), *least, io::split_rule::gpt2};
  const std::string pattern = c.get("--pattern", "gpt2");
  if (pattern == "llama3") options.rule = io::split_rule::llama3;
  else if (pattern == "qwen2") options.rule = io::split_rule::qwen2;
  else if (pattern != "gpt2") return fail(errc::invalid_argument, "no pattern '" + pattern + "'", "--pattern", "gpt2, llama3 or qwen2");
  std::string text;
  for (const std::string& file : c.files) {
    const auto bytes = io::read_file(file);
    if (!bytes) return bytes.error();
    text += bytes->text();
  }
  if (options.rule == io::split_rule::qwen2) text = io::nfc(text, false).text;
  const auto made = io::train_byte_pair(text, options);
  if (!made) return made.error();
  std::vector<std::string> specials;
  for (auto [at, end] = c.values.equal_range(std::string_view("--special")); at != end; ++at) specials.push_back(at->second);
  if (specials.empty()) specials.push_back("<|endoftext|>");
  const std::string json = io::tokenizer_json(*made, specials);
  if (const auto opens = io::tokenizer_from_json(json, "the new tokenizer"); !opens) return opens.error();
  if (auto r = io::write_file(c.get("--out"), json); !r) return std::move(r).error();
  return std::to_string(made->tokens.size()) + " tokens and " + std::to_string(specials.size()) + " special ones in " + c.get("--out") +
         "\n";
}

result<std::string> run(const command& c) {
  const bool encodes = c.name == "encode", decodes = c.name == "decode";
  if (c.name == "train") {
    if (c.files.empty()) return fail(errc::missing_value, "train needs a text", "command line", "name at least one file");
    return train(c);
  }
  if (c.name == "shards") return make_shards(c);
  if (c.name == "check") return check_shards(c);
  if (!encodes && !decodes)
    return fail(errc::unknown_key, c.name.empty() ? "no command" : "no command '" + c.name + "'", "command line",
                "encode, decode, train, shards or check; --help explains");
  if (c.files.empty() || c.files.size() > 2)
    return fail(errc::missing_value, c.name + " takes a tokenizer and at most one file", "command line",
                "isotope-tokenize " + c.name + " TOKENIZER [FILE]");
  const auto t = io::open_tokenizer(c.files[0]);
  if (!t) return t.error();
  return encodes ? encode(c, *t) : decode(c, *t);
}

int guarded_main(int argc, char** argv) {
  const auto c = read_command({argv + 1, argv + argc});
  int code = support::success;
  if (support::failed(program, c, code)) return code;
  if (c->has("--help")) return support::print(help_text()), support::success;
  if (c->has("--version")) return support::print(support::version_without_device(program)), support::success;
  const auto out = run(*c);
  if (support::failed(program, out, code)) return code;
  return support::print(*out), support::success;
}

}  // namespace tokenize_program

int main(int argc, char** argv) {
  return support::guarded(tokenize_program::program, [&] { return tokenize_program::guarded_main(argc, argv); });
}
