#pragma once
/// The fields of a configuration struct. A struct is plain, with default initialisers, and lists its fields once, at global scope:
///   BOOST_HANA_ADAPT_STRUCT(model_config, layers, heads, width);
/// A field is a bool, an integer, a float or double, a std::string or another such struct; a nested field's key is `model.width`.
#include <boost/hana/accessors.hpp>
#include <boost/hana/adapt_struct.hpp>
#include <boost/hana/core/to.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <isotope/io/json_text.hpp>

namespace isotope::config {

template <class T>
concept Group = boost::hana::Struct<T>::value;
template <class T>
concept Field = std::integral<T> || std::floating_point<T> || std::same_as<T, std::string>;

/// Calls f(key, member) for every leaf, in the order of declaration. C may be const.
template <class C, class F> void for_each_field(C& values, F&& f, const std::string& prefix = {}) {
  static_assert(Group<std::remove_const_t<C>>, "a configuration struct lists its fields with BOOST_HANA_ADAPT_STRUCT");
  boost::hana::for_each(boost::hana::accessors<std::remove_const_t<C>>(), [&](auto accessor) {
    const std::string key = prefix + boost::hana::to<const char*>(boost::hana::first(accessor));
    auto& member = boost::hana::second(accessor)(values);
    using T = std::remove_cvref_t<decltype(member)>;
    if constexpr (Group<T>) {
      for_each_field(member, f, key + ".");
    } else {
      static_assert(Field<T>, "a field is a bool, an integer, a float, a std::string or a struct: a loaded value is never optional");
      f(key, member);
    }
  });
}

enum class field_kind : std::uint8_t { boolean, integer, number, text };

template <Field T> constexpr field_kind kind_of() {
  if constexpr (std::same_as<T, bool>) return field_kind::boolean;
  else if constexpr (std::integral<T>) return field_kind::integer;
  else if constexpr (std::floating_point<T>) return field_kind::number;
  else return field_kind::text;
}

/// Returns the name of the kind of a value in messages.
constexpr std::string_view name_of(field_kind k) {
  switch (k) {
    case field_kind::boolean: return "true or false";
    case field_kind::integer: return "a whole number";
    case field_kind::number: return "a number";
    case field_kind::text: return "text";
  }
  return "nothing";
}

/// Returns a value as canonical JSON.
template <Field T> std::string json_of(const T& value) {
  if constexpr (std::same_as<T, bool>) return value ? "true" : "false";
  else if constexpr (std::integral<T>) return io::number_text(value);
  else if constexpr (std::floating_point<T>) return io::json_number(value);
  else return io::json_string(value);
}

/// A field without its struct: key, kind and value as JSON.
struct field {
  std::string key;
  field_kind kind = field_kind::text;
  std::string value;
};

template <class C> std::vector<field> fields_of(const C& values) {
  std::vector<field> out;
  for_each_field(values, [&]<class T>(const std::string& key, const T& member) { out.push_back({key, kind_of<T>(), json_of(member)}); });
  return out;
}

}  // namespace isotope::config
