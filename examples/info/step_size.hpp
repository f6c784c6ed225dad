#pragma once
/// The words SIZE BATCH LENGTH, which the commands of isotope-info take.
#include <isotope/core/error.hpp>
#include <isotope/model/gpt.hpp>

#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace info_program {

/// A training step of a GPT.
struct step_size {
  isotope::model::named_gpt model;
  int batch = 0, length = 0;

  isotope::model::gpt_loss_of loss() const { return loss(batch); }
  isotope::model::gpt_loss_of loss(int other_batch) const { return {model.size, other_batch, length}; }
};

/// A positive whole number; 0 if the text is none.
inline int size_from(std::string_view text) {
  int n = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  return r.ec == std::errc{} && r.ptr == text.data() + text.size() && n > 0 ? n : 0;
}

/// @param words  three: the name of a size, the batch and the length
/// @error        invalid_argument
inline isotope::result<step_size> step_size_from(std::span<const std::string, 3> words) {
  const auto refuse = [](const std::string& what, const std::string& fix) {
    return isotope::fail(isotope::errc::invalid_argument, what, "command line", fix);
  };
  step_size s;
  std::string names;
  for (const auto& size : isotope::model::gpt_sizes) {
    names += (names.empty() ? "" : ", ") + std::string(size.name);
    if (size.name == words[0]) s.model = size;
  }
  if (s.model.name.empty()) return refuse("no size is named '" + words[0] + "'", "give one of " + names);
  s.batch = size_from(words[1]), s.length = size_from(words[2]);
  if (s.batch == 0 || s.length == 0 || s.length > s.model.size.context)
    return refuse("batch '" + words[1] + "' and length '" + words[2] + "' are no positive numbers, or the length exceeds the context",
                  "give a length of at most " + std::to_string(s.model.size.context));
  return s;
}

}  // namespace info_program
