#pragma once
/// One setting as a layer wrote it, and its conversion to a field.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/config/reflect.hpp>
#include <isotope/core/error.hpp>

namespace isotope::config {

/// `raw` is the form of variables and flags: text that the field's type interprets.
enum class written_as : std::uint8_t { raw, boolean, number, string, other };

struct entry {
  std::string key;    // model.width
  std::string value;  // 128
  written_as form = written_as::raw;
  std::string where;  // run.toml:3, variable ISOTOPE_MODEL_WIDTH, flag --model-width
};
using layer = std::vector<entry>;

/// Sets a field from an entry.
///
/// @error bad_format: not of the field's type; invalid_argument: outside its range. Both name layer, key and value
template <Field T> result<void> assign(T& member, const entry& e) {
  const std::string in = e.where + ": " + e.key;
  const auto refuse = [&] {
    const std::string shown = e.form == written_as::string ? io::json_string(e.value) : "'" + e.value + "'";
    return fail(errc::bad_format, shown + " is not " + std::string(name_of(kind_of<T>())), in,
                "give " + std::string(name_of(kind_of<T>())));
  };
  if constexpr (std::same_as<T, std::string>) {
    if (e.form != written_as::raw && e.form != written_as::string) return refuse();
    member = e.value;
  } else if constexpr (std::same_as<T, bool>) {
    const bool raw = e.form == written_as::raw;  // raw booleans are commonly written as ISOTOPE_VERBOSE=1
    if (!raw && e.form != written_as::boolean) return refuse();
    const bool yes = e.value == "true" || (raw && e.value == "1");
    if (!yes && e.value != "false" && !(raw && e.value == "0")) return refuse();
    member = yes;
  } else {
    if (e.form != written_as::raw && e.form != written_as::number) return refuse();
    const char *first = e.value.data(), *last = first + e.value.size();
    T parsed{};
    const auto [end, error] = std::from_chars(first, last, parsed);
    if (error == std::errc::result_out_of_range && end == last) {
      std::string range = "outside the range";
      if constexpr (std::integral<T>)
        range += " " + io::number_text(std::numeric_limits<T>::min()) + " to " + io::number_text(std::numeric_limits<T>::max());
      return fail(errc::invalid_argument, e.value + " is " + range, in, "give a number that fits");
    }
    if (error != std::errc() || end != last) return refuse();
    if constexpr (std::floating_point<T>)
      if (!std::isfinite(parsed)) return refuse();
    member = parsed;
  }
  return {};
}

}  // namespace isotope::config
