#pragma once
/// Reads tokenizer.json, strictly: an unknown field, component or pattern is an error that names it. The fields `truncation` and `padding` may be there and
/// have no effect, as whoever encodes chooses the limit.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/tokenizer.hpp>

namespace isotope::io {

namespace detail {

inline constexpr std::size_t most_tokenizer_bytes = std::size_t{64} << 20, most_tokenizer_values = std::size_t{4} << 20;

inline failure tokenizer_too_large(const std::string& where) {
  return fail(errc::bad_format, "has more than " + std::to_string(most_tokenizer_bytes >> 20) + " MiB", where,
              "give the file of a tokenizer");
}

/// The id that a number stands for; nothing if it is not a whole number that an id can be.
inline std::optional<std::int32_t> id_in(const json& value) {
  std::int32_t id = 0;
  const char* const end = value.text.data() + value.text.size();
  if (value.is != json::kind::number) return {};
  const auto [stop, error] = std::from_chars(value.text.data(), end, id);
  return error == std::errc{} && stop == end && id >= 0 ? std::optional(id) : std::nullopt;
}

/// A byte-level vocabulary as files write it: tokens in the byte alphabet, and merges of them.
struct vocabulary_reader {
  token_table tokens;

  /// @param added  may be in the vocabulary without being in the byte alphabet
  static result<vocabulary_reader> read(const json& vocab, const std::vector<added_token>& added, const std::string& where) {
    std::vector<named_token> tokens;
    const auto refuse = [&](const json& at, const std::string& what) {
      return fail(errc::bad_format, what, where + ":" + std::to_string(at.line), "give the vocabulary as its trainer wrote it");
    };
    if (vocab.is != json::kind::object) return refuse(vocab, "the vocabulary is " + std::string(name_of(vocab.is)) + ", not an object");
    tokens.reserve(vocab.members.size());
    for (const json_member& m : vocab.members) {
      const auto id = id_in(m.value);
      if (!id) return refuse(m.value, "the id of the token " + json_string(m.key) + " is not a whole number from 0 on");
      if (auto bytes = byte_characters.bytes_of(m.key)) tokens.push_back({*std::move(bytes), *id});
      else if (!std::any_of(added.begin(), added.end(), [&](const added_token& a) { return a.content == m.key; }))
        return refuse(m.value, "the token " + json_string(m.key) + " has a character that stands for no byte");
    }
    auto table = token_table::make(tokens, where);
    if (!table) return std::move(table).error();
    return vocabulary_reader{*std::move(table)};
  }

  /// @param written  two tokens with a blank between them
  result<merge> merge_of(std::string_view written, const std::string& where, int line) const {
    const std::size_t blank = written.find(' ');
    if (blank == written.npos || written.find(' ', blank + 1) != written.npos)
      return fail(errc::bad_format, "the merge " + json_string(written) + " is not two tokens with a blank between them",
                  where + ":" + std::to_string(line), "give the merges as the trainer wrote them");
    return merge_of(written.substr(0, blank), written.substr(blank + 1), where, line);
  }
  result<merge> merge_of(std::string_view left, std::string_view right, const std::string& where, int line) const {
    const auto id_of = [&](std::string_view side) {
      const auto bytes = byte_characters.bytes_of(side);
      return bytes ? tokens.find(*bytes) : -1;
    };
    const merge m{id_of(left), id_of(right)};
    if (m.left >= 0 && m.right >= 0) return m;
    return fail(errc::bad_format, "a merge names the token " + json_string(m.left < 0 ? left : right) + ", which the vocabulary lacks",
                where + ":" + std::to_string(line), "give merges and vocabulary of one tokenizer");
  }
};

/// Reads the parts of a file. The first failure ends the reading of a part.
class tokenizer_reader {
 public:
  explicit tokenizer_reader(std::string where) : where_(std::move(where)) {}

  result<tokenizer> read(const json& root) {
    if (auto r = fields(
            root, "the file",
            {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"});
        !r)
      return std::move(r).error();
    const json* const model = root.find("model");
    if (model == nullptr) return refuse(root, "the file has no 'model'");
    if (const json* version = root.find("version"); version != nullptr && version->text != "1.0")
      return refuse(*version, "the version is " + quoted(*version) + ", not \"1.0\"");
    if (auto r = read_added(root.find("added_tokens")); !r) return std::move(r).error();
    if (auto r = read_frame(root.find("post_processor")); !r) return std::move(r).error();
    const json* const type = model->find("type");
    const bool words = type != nullptr ? type->text == "WordPiece" : model->find("max_input_chars_per_word") != nullptr;
    if (type != nullptr && !words && type->text != "BPE") return unknown(*type, "model", quoted(*type));
    return words ? read_wordpiece(root, *model) : read_byte_pair(root, *model);
  }

 private:
  static std::string quoted(const json& value) {
    return value.is == json::kind::string   ? json_string(value.text)
           : value.is == json::kind::number ? value.text
                                            : std::string(name_of(value.is));
  }
  failure refuse(const json& at, const std::string& what) const {
    return fail(errc::bad_format, what, where_ + ":" + std::to_string(at.line),
                "give the tokenizer.json of a model that isotope knows: docs/TOKENIZERS.md");
  }
  failure unknown(const json& at, const std::string& part, const std::string& name) const {
    return refuse(at, "the " + part + " " + name + " is not known here");
  }

  /// @error bad_format: not an object, a field that is not among `known`
  result<void> fields(const json& of, const std::string& name, std::initializer_list<std::string_view> known) const {
    if (of.is != json::kind::object) return refuse(of, name + " is " + std::string(name_of(of.is)) + ", not an object");
    for (const json_member& m : of.members)
      if (std::find(known.begin(), known.end(), m.key) == known.end())
        return refuse(m.value, "the field '" + m.key + "' of " + name + " is not known here");
    return {};
  }
  /// A boolean; `otherwise` if it is absent or null.
  result<bool> flag(const json& of, std::string_view name, bool otherwise) const {
    const json* const value = of.find(name);
    if (value == nullptr || value->is == json::kind::null) return otherwise;
    if (value->is != json::kind::boolean) return refuse(*value, "'" + std::string(name) + "' is " + quoted(*value) + ", not true or false");
    return value->boolean;
  }
  /// @error bad_format: a field that is neither absent, null, false nor an empty string
  result<void> unset(const json& of, const std::string& name, std::initializer_list<std::string_view> names) const {
    for (const std::string_view field : names) {
      const json* const v = of.find(field);
      if (v == nullptr || v->is == json::kind::null || (v->is == json::kind::boolean && !v->boolean) ||
          (v->is == json::kind::string && v->text.empty()))
        continue;
      return refuse(*v, "'" + std::string(field) + "' of " + name + " is set, which is not known here");
    }
    return {};
  }

  /// The components of a part: none if it is absent or null, several in a Sequence.
  result<std::vector<const json*>> components(const json* part, const std::string& name, std::string_view list) const {
    if (part == nullptr || part->is == json::kind::null) return std::vector<const json*>{};
    if (part->is != json::kind::object) return refuse(*part, "the " + name + " is " + std::string(name_of(part->is)) + ", not an object");
    const json* const type = part->find("type");
    if (type == nullptr || type->is != json::kind::string) return refuse(*part, "the " + name + " has no 'type'");
    if (type->text != "Sequence") return std::vector<const json*>{part};
    if (auto r = fields(*part, "the " + name + " Sequence", {"type", list}); !r) return std::move(r).error();
    const json* const items = part->find(list);
    if (items == nullptr || items->is != json::kind::array)
      return refuse(*part, "the " + name + " Sequence has no list '" + std::string(list) + "'");
    std::vector<const json*> all;
    for (const json& item : items->items) {
      auto inner = components(&item, name, list);
      if (!inner) return inner;
      all.insert(all.end(), inner->begin(), inner->end());
    }
    return all;
  }
  static std::string_view type_of(const json& component) { return component.find("type")->text; }

  result<void> read_added(const json* list) {
    if (list == nullptr) return {};
    if (list->is != json::kind::array) return refuse(*list, "'added_tokens' is " + std::string(name_of(list->is)) + ", not an array");
    for (const json& item : list->items) {
      if (auto r = fields(item, "an added token", {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}); !r)
        return r;
      const json *const id = item.find("id"), *const content = item.find("content");
      const auto number = id != nullptr ? id_in(*id) : std::nullopt;
      if (!number || content == nullptr || content->is != json::kind::string)
        return refuse(item, "an added token has no 'id' or no 'content'");
      if (auto r = unset(item, "the added token " + json_string(content->text), {"single_word", "lstrip", "rstrip"}); !r) return r;
      const auto special = flag(item, "special", false), normalized = flag(item, "normalized", false);
      if (!special) return special.error();
      if (!normalized) return normalized.error();
      added_.push_back({content->text, *number, *special, *normalized});
    }
    return {};
  }

  /// The part of a template that {"SpecialToken": {...}} or {"Sequence": {...}} describes.
  result<frame_part> part_of(const json& item, const json& tokens) const {
    if (item.is != json::kind::object || item.members.size() != 1)
      return refuse(item, "a part of the template is not an object with one field");
    const json_member& m = item.members[0];
    if (auto r = fields(m.value, "a part of the template", {"id", "type_id"}); !r) return std::move(r).error();
    const json *const id = m.value.find("id"), *const type = m.value.find("type_id");
    const auto type_id = type != nullptr ? id_in(*type) : std::optional<std::int32_t>(0);
    if (id == nullptr || id->is != json::kind::string || !type_id || *type_id > 1)
      return refuse(item, "a part of the template has no 'id', or a 'type_id' other than 0 and 1");
    frame_part part{frame_part::kind::first_text, -1, static_cast<std::uint8_t>(*type_id)};
    if (m.key == "Sequence") {
      if (id->text != "A" && id->text != "B") return refuse(item, "the template names the text " + quoted(*id) + ", not A or B");
      if (id->text == "B") part.is = frame_part::kind::second_text;
      return part;
    }
    if (m.key != "SpecialToken") return unknown(item, "part of a template", json_string(m.key));
    const json* const token = tokens.find(id->text);
    const json* const ids = token != nullptr ? token->find("ids") : nullptr;
    if (ids == nullptr || ids->items.size() != 1 || !id_in(ids->items[0]))
      return refuse(item, "the template's token " + quoted(*id) + " has not exactly one id in 'special_tokens'");
    part.is = frame_part::kind::token;
    part.id = *id_in(ids->items[0]);
    if (std::none_of(added_.begin(), added_.end(), [&](const added_token& a) { return a.id == part.id && a.content == id->text; }))
      return refuse(item, "the template's token " + quoted(*id) + " is none of the added tokens");
    return part;
  }

  result<void> read_frame(const json* post) {
    const auto parts = components(post, "post-processor", "processors");
    if (!parts) return parts.error();
    bool framed = false;
    for (const json* c : *parts) {
      if (type_of(*c) == "ByteLevel") {
        if (auto r = fields(*c, "ByteLevel", {"type", "add_prefix_space", "trim_offsets", "use_regex"}); !r) return r;
        continue;
      }
      if (type_of(*c) != "TemplateProcessing" || framed)
        return unknown(*c, framed ? "second post-processor" : "post-processor", quoted(*c->find("type")));
      framed = true;
      if (auto r = fields(*c, "TemplateProcessing", {"type", "single", "pair", "special_tokens"}); !r) return r;
      const json *const single = c->find("single"), *const pair = c->find("pair"), *const tokens = c->find("special_tokens");
      if (single == nullptr || pair == nullptr || tokens == nullptr)
        return refuse(*c, "TemplateProcessing lacks 'single', 'pair' or 'special_tokens'");
      for (const auto& [from, to] : {std::pair(single, &frame_.single), std::pair(pair, &frame_.pair)}) {
        to->clear();
        int texts[2] = {0, 0};
        for (const json& item : from->items) {
          auto part = part_of(item, *tokens);
          if (!part) return std::move(part).error();
          if (part->is != frame_part::kind::token) ++texts[part->is == frame_part::kind::second_text ? 1 : 0];
          to->push_back(*part);
        }
        if (texts[0] != 1 || texts[1] != (from == pair ? 1 : 0)) return refuse(*from, "the template does not name each text once");
      }
    }
    return {};
  }

  result<split_rule> read_split(const json* pre) const {
    const auto parts = components(pre, "pre-tokenizer", "pretokenizers");
    if (!parts) return parts.error();
    std::optional<split_rule> rule;
    bool bytes = false;
    for (const json* c : *parts) {
      if (type_of(*c) == "Split" && !rule && !bytes) {
        if (auto r = fields(*c, "Split", {"type", "pattern", "behavior", "invert"}); !r) return std::move(r).error();
        const json *const pattern = c->find("pattern"), *const behavior = c->find("behavior");
        const json* const regex = pattern != nullptr ? pattern->find("Regex") : nullptr;
        for (const split_rule known : {split_rule::gpt2, split_rule::llama3, split_rule::qwen2})
          if (regex != nullptr && regex->text == pattern_of(known)) rule = known;
        if (!rule) return unknown(*c, "pattern", regex != nullptr ? quoted(*regex) : "of Split");
        if (auto r = unset(*c, "Split", {"invert"}); !r) return std::move(r).error();
        if (behavior == nullptr || behavior->text != "Isolated")
          return unknown(*c, "behavior of Split", behavior != nullptr ? quoted(*behavior) : "null");
      } else if (type_of(*c) == "ByteLevel" && !bytes) {
        bytes = true;
        if (auto r = fields(*c, "ByteLevel", {"type", "add_prefix_space", "trim_offsets", "use_regex"}); !r) return std::move(r).error();
        const auto splits = flag(*c, "use_regex", true), prefix = flag(*c, "add_prefix_space", true);
        if (!splits) return splits.error();
        if (!prefix) return prefix.error();
        if (*prefix) return unknown(*c, "ByteLevel with", "\"add_prefix_space\"");
        if (*splits == rule.has_value())
          return refuse(*c, rule ? "the text is split by two patterns" : "the text is not split before bytes are merged");
        rule = rule.value_or(split_rule::gpt2);
      } else {
        return unknown(*c, "pre-tokenizer", quoted(*c->find("type")));
      }
    }
    if (!bytes)
      return fail(errc::bad_format, "a BPE model without the pre-tokenizer ByteLevel is not known here", where_,
                  "give a byte-level tokenizer");
    return *rule;
  }

  result<tokenizer> read_byte_pair(const json& root, const json& model) {
    if (auto r = fields(model, "BPE",
                        {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
                         "ignore_merges", "vocab", "merges"});
        !r)
      return std::move(r).error();
    if (auto r =
            unset(model, "BPE", {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback"});
        !r)
      return std::move(r).error();
    const auto rule = read_split(root.find("pre_tokenizer"));
    if (!rule) return rule.error();
    const auto normal = components(root.find("normalizer"), "normalizer", "normalizers");
    if (!normal) return normal.error();
    for (const json* c : *normal)
      if (type_of(*c) != "NFC" || normal->size() > 1) return unknown(*c, "normalizer of BPE", quoted(*c->find("type")));
    const auto decoders = components(root.find("decoder"), "decoder", "decoders");
    if (!decoders) return decoders.error();
    if (decoders->size() != 1 || type_of(*decoders->front()) != "ByteLevel") return refuse(root, "the decoder of BPE is not ByteLevel");
    const json *const vocab = model.find("vocab"), *const merges = model.find("merges");
    if (vocab == nullptr || merges == nullptr || merges->is != json::kind::array)
      return refuse(model, "BPE has no 'vocab' or no list 'merges'");
    auto words = vocabulary_reader::read(*vocab, added_, where_);
    if (!words) return std::move(words).error();
    std::vector<merge> pairs;
    pairs.reserve(merges->items.size());
    for (const json& m : merges->items) {
      const bool two = m.items.size() == 2 && m.items[0].is == json::kind::string && m.items[1].is == json::kind::string;
      if (!two && m.is != json::kind::string) return refuse(m, "a merge is neither a string nor two");
      auto pair = two ? words->merge_of(m.items[0].text, m.items[1].text, where_, m.line) : words->merge_of(m.text, where_, m.line);
      if (!pair) return std::move(pair).error();
      pairs.push_back(*pair);
    }
    const auto whole = flag(model, "ignore_merges", false);
    if (!whole) return whole.error();
    auto made = byte_pair::make(std::move(words->tokens), pairs, *rule, *whole, where_);
    if (!made) return std::move(made).error();
    return tokenizer::make(*std::move(made), std::move(added_), std::move(frame_), !normal->empty(), where_);
  }

  result<tokenizer> read_wordpiece(const json& root, const json& model) {
    wordpiece_options options;
    if (auto r = fields(model, "WordPiece", {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}); !r)
      return std::move(r).error();
    for (const auto& [name, to] : {std::pair("unk_token", &options.unknown), std::pair("continuing_subword_prefix", &options.prefix)})
      if (const json* const v = model.find(name); v != nullptr) {
        if (v->is != json::kind::string || v->text.empty()) return refuse(*v, "'" + std::string(name) + "' is no text");
        *to = v->text;
      }
    if (const json* const v = model.find("max_input_chars_per_word"); v != nullptr) {
      const auto most = id_in(*v);
      if (!most || *most > 10'000) return refuse(*v, "'max_input_chars_per_word' is " + quoted(*v) + ", not a number up to 10000");
      options.longest_word = static_cast<std::size_t>(*most);
    }
    const auto normal = components(root.find("normalizer"), "normalizer", "normalizers");
    if (!normal) return normal.error();
    if (normal->size() != 1 || type_of(*normal->front()) != "BertNormalizer")
      return refuse(root, "the normalizer of WordPiece is not BertNormalizer");
    const json& bert = *normal->front();
    if (auto r = fields(bert, "BertNormalizer", {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}); !r)
      return std::move(r).error();
    const auto clean = flag(bert, "clean_text", true), ideographs = flag(bert, "handle_chinese_chars", true),
               lowercase = flag(bert, "lowercase", true);
    for (const auto* f : {&clean, &ideographs, &lowercase})
      if (!*f) return f->error();
    const auto strip = flag(bert, "strip_accents", *lowercase);
    if (!strip) return strip.error();
    options.rules = {*clean, *ideographs, *strip, *lowercase};
    const auto pre = components(root.find("pre_tokenizer"), "pre-tokenizer", "pretokenizers");
    if (!pre) return pre.error();
    if (pre->size() != 1 || type_of(*pre->front()) != "BertPreTokenizer")
      return refuse(root, "the pre-tokenizer of WordPiece is not BertPreTokenizer");
    const auto decoders = components(root.find("decoder"), "decoder", "decoders");
    if (!decoders) return decoders.error();
    if (decoders->size() != 1 || type_of(*decoders->front()) != "WordPiece")
      return refuse(root, "the decoder of WordPiece is not WordPiece");
    const json& decoder = *decoders->front();
    if (auto r = fields(decoder, "the decoder", {"type", "prefix", "cleanup"}); !r) return std::move(r).error();
    if (const json* const prefix = decoder.find("prefix"); prefix != nullptr && prefix->text != options.prefix)
      return refuse(*prefix, "the decoder's prefix is " + quoted(*prefix) + ", and that of the model " + json_string(options.prefix));
    const auto clean_up = flag(decoder, "cleanup", true);
    if (!clean_up) return clean_up.error();
    options.clean_up = *clean_up;
    for (const added_token& a : added_)
      if (a.normalized)
        return refuse(root, "the added token " + json_string(a.content) + " is 'normalized', which WordPiece does not know here");
    const json* const vocab = model.find("vocab");
    if (vocab == nullptr || vocab->is != json::kind::object) return refuse(model, "WordPiece has no 'vocab'");
    std::vector<named_token> tokens;
    for (const json_member& m : vocab->members) {
      const auto id = id_in(m.value);
      if (!id) return refuse(m.value, "the id of the token " + json_string(m.key) + " is not a whole number from 0 on");
      tokens.push_back({m.key, *id});
    }
    auto made = wordpiece::make(tokens, options, where_);
    if (!made) return std::move(made).error();
    return tokenizer::make(*std::move(made), std::move(added_), std::move(frame_), false, where_);
  }

  std::string where_;
  std::vector<added_token> added_;
  frame frame_;
};

}  // namespace detail

/// Makes a tokenizer from the text of a tokenizer.json.
///
/// @error bad_format with the file, the line and what is wrong: not JSON, more than 64 MiB or 4 million values, a component that is not known here, ids or
///        merges that do not fit together
inline result<tokenizer> tokenizer_from_json(std::string_view text, const std::string& where) {
  if (text.size() > detail::most_tokenizer_bytes) return detail::tokenizer_too_large(where);
  const auto root = parse_json(text, where, detail::most_tokenizer_values);
  if (!root) return root.error();
  return detail::tokenizer_reader(where).read(*root);
}

}  // namespace isotope::io
