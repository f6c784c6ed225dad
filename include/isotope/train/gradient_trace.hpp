#pragma once
/// Summarises the gradient of every trained tensor at each step: it shows which layers learn, which gradients vanish and which explode.
#include <isotope/core/error.hpp>
#include <isotope/core/step.hpp>
#include <isotope/train/batch.hpp>
#include <isotope/train/decimal.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace isotope::train {

/// Summarises one gradient g: sqrt(sum g^2) and max |g| over its finite numbers, how many are 0 and how many are not finite.
struct gradient_figures {
  double norm = 0, max_abs = 0;
  std::int64_t zeros = 0, not_finite = 0;
};

inline gradient_figures gradient_figures_of(std::span<const float> gradient, double scale = 1) {
  gradient_figures f;
  double squares = 0;
  for (const float g : gradient) {
    if (!std::isfinite(g)) {
      ++f.not_finite;
      continue;
    }
    const double x = scale * double(g);
    squares += x * x;
    f.max_abs = std::max(f.max_abs, std::abs(x));
    f.zeros += g == 0;
  }
  f.norm = std::sqrt(squares);
  return f;
}

/// The column names of gradient_lines.
inline constexpr const char* gradient_columns = "# step\ttensor\telements\tnorm\tmax_abs\tzeros\tnot_finite";

/// Returns one line for every tensor that the last step trained, about its mean gradient over the micro-batches before clipping by the norm: the
/// values of gradient_columns, separated by tabs.
/// @error not_found: the program keeps no gradients, as with update_policy::within_backward; as read
template <class Session> result<std::vector<std::string>> gradient_lines(Session& session, std::int64_t step, std::size_t micro_batches) {
  std::vector<std::string> lines;
  std::vector<float> values;
  const auto& parameters = session.parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (!parameters[k].trained) continue;
    values.resize(std::size_t(parameters[k].dims.count()));
    if (auto r = session.read(tensor_kind::gradient, k, values); !r) return std::move(r).error();
    const gradient_figures f = gradient_figures_of(values, 1 / double(micro_batches));
    lines.push_back(std::to_string(step) + '\t' + std::string(parameters[k].path.view()) + '\t' + std::to_string(values.size()) + '\t' +
                    shortest(f.norm) + '\t' + shortest(f.max_abs) + '\t' + std::to_string(f.zeros) + '\t' + std::to_string(f.not_finite));
  }
  return lines;
}

}  // namespace isotope::train
