#pragma once
#include <cstdint>
#include <isotope/config/reflect.hpp>
#include <string>

namespace isotope::test {

struct model_config {
  int layers = 12, heads = 12, width = 768;
  double dropout = 0;
};
struct data_config {
  std::string text = {};
  std::uint8_t channels = 3;
};
struct run_config {
  model_config model = {};
  data_config data = {};
  std::int64_t steps = 1000;
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  bool resume = false, tied = true;
};

}  // namespace isotope::test

BOOST_HANA_ADAPT_STRUCT(isotope::test::model_config, layers, heads, width, dropout);
BOOST_HANA_ADAPT_STRUCT(isotope::test::data_config, text, channels);
BOOST_HANA_ADAPT_STRUCT(isotope::test::run_config, model, data, steps, seed, learning_rate, resume, tied);
