#pragma once
/// The schedule that the settings name.
#include "settings.hpp"

#include <isotope/optim/schedule.hpp>

#include <algorithm>
#include <cstdint>
#include <variant>

namespace train_program {

class rate_of {
 public:
  explicit rate_of(const training_settings& t) {
    namespace optim = isotope::optim;
    const double high = t.learning_rate, low = t.min_learning_rate;
    // At least one step, so that a warm-up longer than the run still rises towards the full rate.
    const std::int64_t rest = std::max<std::int64_t>(1, t.steps - t.warmup);
    if (t.schedule == "linear") chosen_ = optim::warmup{optim::linear{high, low, rest}, t.warmup};
    else if (t.schedule == "constant") chosen_ = optim::warmup{optim::constant{high}, t.warmup};
    else if (t.schedule == "wsd") chosen_ = optim::wsd{high, low, t.warmup, rest - rest / 5, rest / 5};
    else chosen_ = optim::warmup{optim::cosine{high, low, rest}, t.warmup};
  }
  double operator()(std::int64_t step) const {
    return std::visit([&](const auto& s) { return rate(s, step); }, chosen_);
  }

 private:
  std::variant<isotope::optim::warmup<isotope::optim::cosine>, isotope::optim::warmup<isotope::optim::linear>,
               isotope::optim::warmup<isotope::optim::constant>, isotope::optim::wsd>
      chosen_;
};

}  // namespace train_program
