#pragma once
/// Tests random combinations of training options, which must not change any bit, on random models.
#include "outcome.hpp"
#include "property.hpp"
#include "random_model.hpp"

#include <ostream>

namespace plan_test {

/// Options that may differ between two programs with equal results.
struct random_variant {
  bool fuse = true, accumulate = false, within_backward = false;
  int recompute = 0, pack = 0;
  isotope::training_options options(isotope::clipping clip) const {
    using namespace isotope;
    constexpr recompute_policy policies[] = {recompute::none,     recompute::all,      recompute::keep_matmuls,
                                             recompute::every(1), recompute::every(2), recompute::cheap};
    constexpr packing packs[] = {packing::amortized, packing::always, packing::never};
    training_options o;
    o.fuse = fuse;
    o.join_sums = false;
    o.clip = clip;
    o.recompute = policies[recompute];
    o.pack = packs[pack];
    if (within_backward && clip != clipping::global_norm) o.update = update_policy::within_backward;
    else o.accumulate = accumulate;
    return o;
  }
  friend std::ostream& operator<<(std::ostream& out, const random_variant& v) {
    return out << "fuse " << v.fuse << " accumulate " << v.accumulate << " within_backward " << v.within_backward << " recompute "
               << v.recompute << " pack " << v.pack;
  }
};
inline rc::Gen<random_variant> random_variants() {
  using v = random_variant;
  const auto number = [](int limit) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, limit)); };
  return rc::gen::build<v>(rc::gen::set(&v::fuse, rc::gen::arbitrary<bool>()), rc::gen::set(&v::accumulate, rc::gen::arbitrary<bool>()),
                           rc::gen::set(&v::within_backward, rc::gen::arbitrary<bool>()), rc::gen::set(&v::recompute, number(6)),
                           rc::gen::set(&v::pack, number(3)));
}

/// Runs two steps of a program, so that the second one reads what the first one updated.
template <isotope::Target T> outcome two_steps(const random_model& model, const isotope::training_options& o) {
  auto s = loaded<T>(planned<T>(model, o));
  auto x = scalars();
  x.optimizer_step = 1;
  static_cast<void>(step(s, x));
  x.optimizer_step = 2;
  auto r = step(s, x);
  if (o.update == isotope::update_policy::within_backward) r.gradients.clear();
  return r;
}
/// Like `difference`, but compares gradients and their norm only if both programs keep them.
inline std::string difference_kept(outcome a, outcome b) {
  if (a.gradients.empty() || b.gradients.empty()) {
    a.gradients = b.gradients = {};
    a.norm = b.norm = 0;
  }
  return difference(a, b);
}

/// Compares a program with separate steps and all activations kept with two programs of random options.
template <isotope::Target T> void check_random_options(std::uint64_t seed, int models) {
  check_property(seed, models, 24, [] {
    using isotope::clipping;
    const auto model = *random_models();
    const auto clip = *rc::gen::element(clipping::global_norm, clipping::tensor_norm, clipping::value, clipping::none);
    random_variant plain;
    plain.fuse = false;
    plain.pack = 2;
    const auto want = two_steps<T>(model, plain.options(clip));
    for (int k = 0; k < 2; ++k) {
      const auto variant = *random_variants();
      RC_ASSERT(difference_kept(two_steps<T>(model, variant.options(clip)), want) == "");
    }
  });
}

}  // namespace plan_test
