#pragma once
/// How a text is continued.
#include <isotope/generate/sampling.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace isotope {

/// How texts are continued. Equal requests give equal texts, whatever else is generated at the same time.
struct text_request {
  std::int64_t tokens = 64;
  float temperature = 1;  // these are as in sampling_options
  std::int32_t top_k = 0;
  float top_p = 1, min_p = 0, repetition_penalty = 1;
  std::uint64_t seed = 0;
  std::vector<std::string> stop = {};   // a text ends before the first of these that it would contain
  bool truncate = false;                // a prompt longer than the context is cut to its last tokens; otherwise it is refused
  bool ignore_end = false;              // go on after an end-of-text token
  std::vector<std::int32_t> ends = {};  // further ids that end the text

  sampling_options draw() const { return {temperature, top_k, top_p, min_p, repetition_penalty, seed}; }
};

}  // namespace isotope
