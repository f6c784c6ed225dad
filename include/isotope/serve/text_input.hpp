#pragma once
/// Texts of a request, as strings or as token ids: `prompt` of completions and `input` of embeddings.
#include <isotope/serve/request_fields.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace isotope::serve {

using token_ids = std::vector<std::int32_t>;
/// A text, or its ids.
using text_input = std::variant<std::string, token_ids>;

/// Reads a string, a list of strings, a list of ids, or a list of lists of ids.
///
/// @param most   texts
/// @param vocab  ids are below this
inline std::vector<text_input> read_texts(request_fields& fields, std::string_view key, std::size_t most, std::int32_t vocab) {
  using kind = io::json::kind;
  std::vector<text_input> out;
  const io::json* v = fields.find(key);
  if (v == nullptr) return fields.refuse(key, "is missing", "give a string, a list of strings, token ids or lists of ids"), out;
  const auto wrong = [&](const io::json& x) {
    fields.refuse(key, "has " + io::json_fields::text_of(x), "give a string, a list of strings, token ids or lists of ids");
  };
  const auto ids_of = [&](const io::json& list) {
    token_ids ids;
    ids.reserve(list.items.size());
    for (const io::json& x : list.items) {
      std::int32_t id = -1;
      if (x.is != kind::number) return wrong(x), ids;
      if (!request_fields::parse(x.text, id) || id < 0 || id >= vocab)
        return fields.refuse(key, "has the id " + x.text.substr(0, 40) + ", and the model has " + std::to_string(vocab) + " tokens",
                             "give ids that /tokenize returns"),
               ids;
      ids.push_back(id);
    }
    if (ids.empty()) fields.refuse(key, "has an empty list", "give at least one token");
    return ids;
  };
  if (v->is == kind::string) return out.emplace_back(v->text), out;
  if (v->is != kind::array) return wrong(*v), out;
  if (v->items.empty()) return fields.refuse(key, "is an empty list", "give at least one text"), out;
  if (v->items[0].is == kind::number) return out.emplace_back(ids_of(*v)), out;
  if (v->items.size() > most)
    return fields.refuse(key, "has " + std::to_string(v->items.size()) + " texts, more than " + std::to_string(most),
                         "send them in several requests"),
           out;
  for (const io::json& x : v->items) {
    if (x.is != v->items[0].is) return wrong(x), out;
    if (x.is == kind::string) out.emplace_back(x.text);
    else if (x.is == kind::array) out.emplace_back(ids_of(x));
    else return wrong(x), out;
    if (!fields.good()) return out;
  }
  return out;
}

/// The field `model`, which may be left out. @param served  the id of the model that is there
inline void read_model(request_fields& fields, std::string_view served) {
  const std::string asked = fields.text("model", std::string(served));
  if (asked != served)
    fields.refuse("model", "is " + io::json_string(asked.substr(0, 100)) + ", which is not served",
                  "name " + io::json_string(served) + ", or leave it out", "model_not_found");
}

}  // namespace isotope::serve
