#pragma once
/// The GPT that a program trains or loads, as its checkpoints keep it. The vocabulary is the data's.
#include <isotope/config/reflect.hpp>

#include <cstdint>

namespace support {

struct model_settings {
  std::int32_t layers = 4, heads = 4, width = 128, context = 64;
  double dropout = 0;
  friend bool operator==(const model_settings&, const model_settings&) = default;
};

}  // namespace support

BOOST_HANA_ADAPT_STRUCT(support::model_settings, layers, heads, width, context, dropout);
