#pragma once
/// Reads named fields of a JSON object into C++ values and keeps the first failure, so that a reader of a configuration checks once, at
/// its end.
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope::io {

/// The object must outlive the reader. A field that holds null counts as absent.
class json_fields {
 public:
  /// @param path  of the file, for failures
  json_fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  const json* find(std::string_view key) const {
    const json* v = object_.find(key);
    return v == nullptr || v->is == json::kind::null ? nullptr : v;
  }

  /// A whole number from `least` to `most`. Returns `least` after a failure.
  std::int32_t whole(std::string_view key, std::int32_t least, std::int32_t most) {
    const json* v = required(key);
    std::int32_t n = least;
    if (v != nullptr && (v->is != json::kind::number || !parse(v->text, n) || n < least || n > most)) {
      refuse(key, "is " + text_of(*v), "give a whole number from " + std::to_string(least) + " to " + std::to_string(most));
      return least;
    }
    return n;
  }
  /// A number, or `absent` where there is none.
  double number(std::string_view key, double absent) {
    const json* v = find(key);
    double x = absent;
    if (v != nullptr && (v->is != json::kind::number || !parse(v->text, x))) refuse(key, "is " + text_of(*v), "give a number");
    return x;
  }
  bool boolean(std::string_view key, bool absent) {
    const json* v = find(key);
    if (v == nullptr) return absent;
    if (v->is != json::kind::boolean) refuse(key, "is " + text_of(*v), "give true or false");
    return v->boolean;
  }
  std::string text(std::string_view key, std::string absent) {
    const json* v = find(key);
    if (v == nullptr) return absent;
    if (v->is != json::kind::string) refuse(key, "is " + text_of(*v), "give a text");
    return v->text;
  }

  /// Records a failure of a field, unless there was one before.
  void refuse(std::string_view key, std::string what, std::string fix, errc code = errc::bad_format) {
    if (!failed_.what.empty()) return;
    const json* v = object_.find(key);
    failed_ = fail(code, std::move(what), path_ + ":" + std::to_string(v == nullptr ? object_.line : v->line) + ": " + std::string(key),
                   std::move(fix));
  }
  /// The first failure. @error bad_format: absent, another type or range, with the line; what `refuse` was given
  result<void> status() const {
    if (failed_.what.empty()) return {};
    return failed_;
  }

  /// A value in a message: `"gelu"`, `12`, `an array`.
  static std::string text_of(const json& v) {
    if (v.is == json::kind::number) return v.text;
    if (v.is == json::kind::string) return json_string(v.text.size() > 60 ? v.text.substr(0, 60) + "..." : v.text);
    if (v.is == json::kind::boolean) return v.boolean ? "true" : "false";
    return std::string(name_of(v.is));
  }

 private:
  const json& object_;
  std::string path_;
  failure failed_;

  const json* required(std::string_view key) {
    const json* v = find(key);
    if (v == nullptr) refuse(key, "is missing", "write it into the file");
    return v;
  }
  template <class T> static bool parse(const std::string& text, T& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }
};

}  // namespace isotope::io
