#pragma once
/// Strict JSON (RFC 8259), for headers, checkpoints and configuration. Boost.JSON parses; this class keeps what Boost's value drops: the digits of
/// numbers, line numbers, and that no key is repeated. A program that includes this header links isotope::io, or has `#include <boost/json/src.hpp>`
/// in one source file.
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>

namespace isotope::io {

struct json_member;

/// One JSON value. Numbers keep their digits: the reader decides which C++ number they must fit.
struct json {
  enum class kind : std::uint8_t { null, boolean, number, string, array, object };
  kind is = kind::null;
  bool boolean = false;
  int line = 1;      // where it starts, from 1
  std::string text;  // the digits of a number, the decoded characters of a string
  std::vector<json> items;
  std::vector<json_member> members;  // in the order of the text; no key twice

  const json* find(std::string_view key) const;
};

struct json_member {
  std::string key;
  json value;
};

inline const json* json::find(std::string_view key) const {
  for (const json_member& m : members)
    if (m.key == key) return &m.value;
  return nullptr;
}

constexpr std::string_view name_of(json::kind k) {
  switch (k) {
    case json::kind::null: return "null";
    case json::kind::boolean: return "a boolean";
    case json::kind::number: return "a number";
    case json::kind::string: return "a string";
    case json::kind::array: return "an array";
    case json::kind::object: return "an object";
  }
  return "nothing";
}

namespace detail {

/// The callbacks of boost::json::basic_parser, in the order of the text. A callback that returns false has set `ec`, which ends the parse.
class json_builder {
 public:
  /// The most values that one member may hold in a document that is read member by member.
  static constexpr std::size_t most_values = 4096;
  static constexpr std::size_t max_object_size = SIZE_MAX, max_array_size = SIZE_MAX, max_key_size = SIZE_MAX, max_string_size = SIZE_MAX;
  using error_code = boost::system::error_code;
  using part = boost::json::string_view;

  json root;
  int line = 1;         // of the text being parsed
  std::string problem;  // why a callback refused; empty if none did
  /// If set, it receives each complete member of the outermost object, and the root keeps none.
  std::function<result<void>(json_member)> take;
  std::optional<failure> refused;      // by `take`
  std::size_t values_left = SIZE_MAX;  // of a document that is kept whole

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return open(json::kind::object); }
  bool on_object_end(std::size_t, error_code& ec) {
    const json_member* twice = repeated(levels_.back().value.members);
    if (twice == nullptr) return close(ec);
    line = twice->value.line;
    return refuse("the key '" + twice->key + "' stands twice", ec);
  }
  bool on_array_begin(error_code&) { return open(json::kind::array); }
  bool on_array_end(std::size_t, error_code& ec) { return close(ec); }
  bool on_key_part(part s, std::size_t, error_code&) { return keep(s); }
  bool on_key(part s, std::size_t, error_code& ec) {
    keep(s);
    level& in = levels_.back();
    if (take && levels_.size() == 1 && !taken_.insert(text_).second) return refuse("the key '" + text_ + "' stands twice", ec);
    in.key = std::exchange(text_, {});
    return true;
  }
  bool on_string_part(part s, std::size_t, error_code&) { return keep(s); }
  bool on_string(part s, std::size_t, error_code& ec) { return keep(s) && scalar(json::kind::string, ec); }
  bool on_number_part(part s, error_code&) { return keep(s); }
  bool on_int64(std::int64_t, part s, error_code& ec) { return keep(s) && scalar(json::kind::number, ec); }
  bool on_uint64(std::uint64_t, part s, error_code& ec) { return keep(s) && scalar(json::kind::number, ec); }
  bool on_double(double, part s, error_code& ec) { return keep(s) && scalar(json::kind::number, ec); }
  bool on_bool(bool b, error_code& ec) { return scalar(json::kind::boolean, ec, b); }
  bool on_null(error_code& ec) { return scalar(json::kind::null, ec); }
  bool on_comment_part(part, error_code&) { return true; }
  bool on_comment(part, error_code&) { return true; }

 private:
  /// An object or array that is not yet closed.
  struct level {
    json value;
    std::string key;  // of the member that is being read
  };

  bool keep(part s) {
    text_.append(s.data(), s.size());
    return true;
  }
  bool open(json::kind kind) {
    level& in = levels_.emplace_back();
    in.value.is = kind;
    in.value.line = line;
    return true;
  }
  /// The first member whose key an earlier one has, or null. Sorts by the first bytes, so that an object of any size takes time n log n.
  static const json_member* repeated(const std::vector<json_member>& members) {
    struct entry {
      std::uint64_t head;
      const json_member* member;
    };
    std::vector<entry> order;
    order.reserve(members.size());
    for (const json_member& m : members) {
      std::uint64_t head = 0;
      for (std::size_t i = 0; i < 8; ++i) head = head << 8 | (i < m.key.size() ? static_cast<unsigned char>(m.key[i]) : 0u);
      order.push_back({head, &m});
    }
    std::sort(order.begin(), order.end(), [](const entry& a, const entry& b) {
      if (a.head != b.head) return a.head < b.head;
      const int before = a.member->key.compare(b.member->key);
      return before != 0 ? before < 0 : a.member < b.member;
    });
    const json_member* first = nullptr;
    for (std::size_t i = 1; i < order.size(); ++i)
      if (order[i].head == order[i - 1].head && order[i].member->key == order[i - 1].member->key &&
          (first == nullptr || order[i].member < first))
        first = order[i].member;
    return first;
  }
  bool close(error_code& ec) {
    json done = std::move(levels_.back().value);
    levels_.pop_back();
    return put(std::move(done), ec);
  }
  bool scalar(json::kind kind, error_code& ec, bool boolean = false) {
    return put({kind, boolean, line, std::exchange(text_, {}), {}, {}}, ec);
  }
  bool put(json value, error_code& ec) {
    if (levels_.empty()) {
      root = std::move(value);
      return true;
    }
    level& in = levels_.back();
    if (values_left-- == 0) return refuse("the document holds too many values", ec);
    if (take && levels_.size() > 1 && ++values_ > most_values)
      return refuse("the member '" + levels_.front().key + "' holds more than " + std::to_string(most_values) + " values", ec);
    if (in.value.is == json::kind::array) in.value.items.push_back(std::move(value));
    else if (take && levels_.size() == 1) return hand_on({std::move(in.key), std::move(value)}, ec);
    else in.value.members.push_back({std::move(in.key), std::move(value)});
    return true;
  }
  bool hand_on(json_member m, error_code& ec) {
    values_ = 0;
    auto r = take(std::move(m));
    if (r) return true;
    refused = std::move(r).error();
    return refuse("refused", ec);
  }
  bool refuse(std::string why, error_code& ec) {
    problem = std::move(why);
    ec = boost::json::error::syntax;
    return false;
  }

  std::vector<level> levels_;
  std::set<std::string> taken_;  // the keys handed to `take`
  std::string text_;             // of the key, string or number being read
  std::size_t values_ = 0;       // of the member of the outermost object being read
};

/// Parses one document as parse_json says or, if `take` is set, parse_json_members.
inline result<json> parse_json(std::string_view text, std::string_view where, std::function<result<void>(json_member)> take,
                               std::size_t most_values = SIZE_MAX) {
  boost::json::parse_options options;
  options.max_depth = 32;
  boost::json::basic_parser<json_builder> parser(options);
  json_builder& built = parser.handler();
  built.take = std::move(take);
  built.values_left = most_values;
  boost::system::error_code ec;
  // Parses line by line: no token spans a line end, so the builder always knows its line.
  for (std::size_t at = 0;;) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1, size = end - at;
    const bool more = end < text.size();
    if (parser.write_some(more, text.data() + at, size, ec) < size && !ec) ec = boost::json::error::extra_data;
    if (ec || !more) break;
    at = end;
    ++built.line;
  }
  if (!ec) return std::move(built.root);
  if (built.refused) return *std::move(built.refused);
  return fail(errc::bad_format, "not JSON: " + (built.problem.empty() ? ec.message() : built.problem),
              std::string(where) + ":" + std::to_string(built.line), "correct the file there");
}

}  // namespace detail

/// Parses one JSON document. `where` names it in failures.
///
/// @param most_values  in objects and arrays: bounds the memory that a document can take, about 120 bytes for each and its text
/// @error bad_format with the line: a syntax error, a repeated key, invalid UTF-8, more than 32 levels or `most_values`
inline result<json> parse_json(std::string_view text, std::string_view where, std::size_t most_values = SIZE_MAX) {
  return detail::parse_json(text, where, {}, most_values);
}

/// Parses a JSON object and passes its members on one by one, in the order of the text, so that memory never holds a long document as values.
///
/// @error bad_format as parse_json, and if a member holds more than 4,096 values; what `take` returns, which ends the parse
inline result<void> parse_json_members(std::string_view text, std::string_view where, std::function<result<void>(json_member)> take) {
  auto root = detail::parse_json(text, where, std::move(take));
  if (!root) return std::move(root).error();
  if (root->is != json::kind::object)
    return fail(errc::bad_format, "is " + std::string(name_of(root->is)) + ", not an object", std::string(where), "begin the file with {");
  return {};
}

}  // namespace isotope::io
