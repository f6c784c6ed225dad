#pragma once
/// Reads the fields of a request's JSON object and keeps the first error.
#include <isotope/io/json.hpp>
#include <isotope/io/json_fields.hpp>
#include <isotope/serve/api_error.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace isotope::serve {

/// The most values that the JSON of a request may hold; each takes some 120 bytes of memory.
inline constexpr std::size_t most_request_values = 1 << 18;

/// Parses the body of a request. @return the error, if it is not one JSON object
inline std::optional<api_error> parse_body(std::string_view body, io::json& out) {
  if (body.empty()) return bad_request("", "has no body", "send a JSON object");
  auto root = io::parse_json(body, "line", most_request_values);
  if (!root) return bad_request("", root.error().what + " (" + root.error().where + ")", "send one JSON object in UTF-8");
  if (root->is != io::json::kind::object)
    return bad_request("", "is " + std::string(name_of(root->is)) + ", not an object", "send a JSON object");
  out = *std::move(root);
  return std::nullopt;
}

/// The object must outlive the reader. A field that holds null counts as absent.
class request_fields {
 public:
  explicit request_fields(const io::json& object) : object_(object) {}

  const io::json* find(std::string_view key) const {
    const io::json* v = object_.find(key);
    return v == nullptr || v->is == io::json::kind::null ? nullptr : v;
  }
  bool boolean(std::string_view key, bool absent) {
    const io::json* v = find(key);
    if (v == nullptr) return absent;
    if (v->is != io::json::kind::boolean) refuse(key, is(*v), "give true or false");
    return v->boolean;
  }
  std::string text(std::string_view key, std::string absent) {
    const io::json* v = find(key);
    if (v == nullptr) return absent;
    if (v->is != io::json::kind::string) refuse(key, is(*v), "give a string");
    return v->text;
  }
  /// A number in [least, most].
  double number(std::string_view key, double absent, double least, double most) {
    const io::json* v = find(key);
    if (v == nullptr) return absent;
    double x = absent;
    if (v->is != io::json::kind::number || !parse(v->text, x) || !(x >= least && x <= most))
      refuse(key, is(*v), "give a number from " + io::number_text(least) + " to " + io::number_text(most));
    return x;
  }
  /// A whole number in [least, most].
  std::int64_t whole(std::string_view key, std::int64_t absent, std::int64_t least, std::int64_t most) {
    const io::json* v = find(key);
    if (v == nullptr) return absent;
    std::int64_t n = absent;
    if (v->is != io::json::kind::number || !parse(v->text, n) || n < least || n > most)
      refuse(key, is(*v), "give a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return n;
  }
  /// Refuses a field that asks for something else than `harmless` values do.
  template <class Harmless> void only(std::string_view key, Harmless&& harmless, std::string_view why) {
    const io::json* v = find(key);
    if (v != nullptr && !harmless(*v)) refuse(key, is(*v) + ": " + std::string(why), "leave it out");
  }

  /// Records an error of a field, unless there was one before.
  void refuse(std::string_view key, const std::string& what, const std::string& fix, std::string code = {}) {
    if (!wrong_) wrong_ = bad_request(std::string(key), what, fix, std::move(code));
  }
  bool good() const { return !wrong_; }
  const std::optional<api_error>& error() const { return wrong_; }

  static std::string is(const io::json& v) { return "is " + io::json_fields::text_of(v); }
  static bool is_number(const io::json& v, double x) {
    double y = 0;
    return v.is == io::json::kind::number && parse(v.text, y) && y == x;
  }
  template <class T> static bool parse(const std::string& text, T& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }

 private:
  const io::json& object_;
  std::optional<api_error> wrong_;
};

}  // namespace isotope::serve
