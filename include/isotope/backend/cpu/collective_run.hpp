#pragma once
/// What the collectives of a run need.
#include <utility>

#include "../session/rank_groups.hpp"

namespace isotope::cpu {

/// The groups of a program, and the first failure of a collective, after which the program stops.
class collective_run {
 public:
  explicit collective_run(const rank_groups& groups) : groups_(groups) {}
  communicator* of(rank_group g) const { return groups_.of(g); }
  void failed(failure why) {
    if (ok()) first_ = std::move(why);
  }
  bool ok() const { return first_.what.empty(); }
  const failure& first() const { return first_; }

 private:
  rank_groups groups_;
  failure first_;
};

}  // namespace isotope::cpu
