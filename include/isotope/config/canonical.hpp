#pragma once
/// A configuration as one line of JSON: fields in the order of declaration, shortest numbers. Equal values give equal text.
#include <string>
#include <string_view>
#include <vector>

#include <isotope/config/file.hpp>
#include <isotope/config/load.hpp>
#include <isotope/config/reflect.hpp>
#include <isotope/core/error.hpp>

namespace isotope::config {

/// {"model":{"layers":4,"width":128},"steps":2000}
template <class C> std::string to_json(const C& values) {
  std::string out = "{";
  boost::hana::for_each(boost::hana::accessors<C>(), [&](auto accessor) {
    const auto& member = boost::hana::second(accessor)(values);
    if (out.size() > 1) out += ',';
    out += io::json_string(boost::hana::to<const char*>(boost::hana::first(accessor))) + ":";
    if constexpr (Group<std::remove_cvref_t<decltype(member)>>) out += to_json(member);
    else out += json_of(member);
  });
  return out + "}";
}

/// Reads what to_json wrote: every field and no other. `where` names the text in failures.
///
/// @error bad_format, unknown_key, missing_value
template <class C> result<C> from_json(std::string_view text, const std::string& where) {
  auto entries = parse_json(text, where);
  if (!entries) return std::move(entries).error();
  loaded<C> out;
  for (const field& f : fields_of(out.value)) out.settings.push_back({f.key, f.value, {}});
  for (const entry& e : *entries)
    if (auto set = detail::apply(out, e); !set) return std::move(set).error();
  for (const setting& s : out.settings)
    if (s.origin.empty()) return fail(errc::missing_value, "has no '" + s.key + "'", where, "add the key");
  return std::move(out.value);
}

}  // namespace isotope::config
