#pragma once
/// Runs only steps: no loss is read back, nothing is validated or saved.
#include "../support/clock.hpp"
#include "../support/interrupt.hpp"
#include "data_source.hpp"

#include <isotope/core/error.hpp>
#include <isotope/train/batch.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/session.hpp>
#include <isotope/train/trainer.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace train_program {

/// Runs `o.steps` steps on one set of batches, the first separately, and reports their time and the bytes moved. The session must have been opened
/// without readback. @error as the session reports
template <class Session>
isotope::result<std::string> bench_dispatches(Session& session, const data_source& data, const isotope::train::trainer_options& o) {
  const std::size_t elems = std::size_t(o.batch * o.length), micro = std::size_t(o.accumulate);
  std::vector<std::int32_t> tokens(elems * micro), targets(tokens.size());
  std::vector<isotope::batch> batches;
  for (std::size_t i = 0; i < micro; ++i) {
    const auto t = std::span(tokens).subspan(i * elems, elems), u = std::span(targets).subspan(i * elems, elems);
    data.training_batch(o.scalars.seed, std::int64_t(i), o.length, t, u);
    batches.push_back({t, u});
  }
  isotope::step_scalars x = o.scalars;
  const auto steps = [&](std::int64_t n) -> isotope::result<std::int64_t> {
    std::int64_t made = 0;
    for (; made < n && !support::interrupt_requested; ++made) {
      session.step(batches, x);
      if (auto r = isotope::train::status_of(session); !r) return r.error();
      ++x.optimizer_step;
    }
    return made;
  };
  if (auto first = steps(1); !first) return first.error();
  const auto before = session.counters();
  const double begin = support::seconds_now();
  auto made = steps(std::max<std::int64_t>(1, o.steps - 1));
  if (!made) return made.error();
  const double seconds = support::seconds_now() - begin;
  const auto& after = session.counters();
  const double n = double(std::max<std::int64_t>(1, *made));
  return std::to_string(*made) + " steps after the first: " + isotope::train::fixed(1000 * seconds / n, 3) + " ms, " +
         isotope::train::fixed(double(after.launches - before.launches) / n, 0) + " launches and " +
         isotope::train::fixed(double(after.bytes_in - before.bytes_in) / n, 0) + " bytes in each, " +
         std::to_string(after.bytes_out - before.bytes_out) + " bytes read back";
}

}  // namespace train_program
