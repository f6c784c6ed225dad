#pragma once
/// Canonical JSON: sorted keys, no blanks, shortest numbers. Equal contents give equal bytes.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../io/json.hpp"
#include "../io/json_text.hpp"

namespace isotope::conform {

/// Members by key; their values are canonical text already.
class json_object {
 public:
  json_object& set(const std::string& key, std::string canonical) {
    members_[key] = std::move(canonical);
    return *this;
  }
  json_object& text(const std::string& key, std::string_view s) { return set(key, io::json_string(s)); }
  json_object& number(const std::string& key, double x) { return set(key, io::json_number(x)); }
  json_object& whole(const std::string& key, std::int64_t x) { return set(key, std::to_string(x)); }
  std::string str() const {
    std::string s = "{";
    for (const auto& [key, value] : members_) s += (s.size() > 1 ? "," : "") + io::json_string(key) + ":" + value;
    return s + "}";
  }

 private:
  std::map<std::string, std::string> members_;
};
template <class List, class F> std::string json_array(const List& list, F&& of) {
  std::string s = "[";
  for (const auto& x : list) s += (s.size() > 1 ? "," : "") + of(x);
  return s + "]";
}
/// Returns a parsed value in canonical form; numbers keep their digits.
inline std::string canonical(const io::json& j) {
  using kind = io::json::kind;
  switch (j.is) {
    case kind::null: return "null";
    case kind::boolean: return j.boolean ? "true" : "false";
    case kind::number: return j.text;
    case kind::string: return io::json_string(j.text);
    case kind::array: return json_array(j.items, [](const io::json& x) { return canonical(x); });
    case kind::object: {
      json_object o;
      for (const auto& m : j.members) o.set(m.key, canonical(m.value));
      return o.str();
    }
  }
  return "null";
}
/// A number, or "inf", "-inf", "nan".
inline bool read_number(const io::json* j, double& x) {
  if (j == nullptr || (j->is != io::json::kind::number && j->is != io::json::kind::string)) return false;
  if (j->is == io::json::kind::string && j->text != "inf" && j->text != "-inf" && j->text != "nan") return false;
  const char *first = j->text.data(), *last = first + j->text.size();
  const auto [end, error] = std::from_chars(first, last, x);
  return error == std::errc() && end == last;
}
inline bool read_whole(const io::json* j, std::int64_t& x) {
  if (j == nullptr || j->is != io::json::kind::number) return false;
  const char *first = j->text.data(), *last = first + j->text.size();
  const auto [end, error] = std::from_chars(first, last, x);
  return error == std::errc() && end == last;
}

}  // namespace isotope::conform
