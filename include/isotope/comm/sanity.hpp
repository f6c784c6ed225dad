#pragma once
/// What a program asks of a group before it relies on it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "communicator.hpp"

namespace isotope {

/// What a group was found to be.
struct group_report {
  int rank = 0, ranks = 0;
  double sum = 0;  // of a 1 from every rank
};

/// Checks a group in a few messages: the sum of a 1 from every rank is the number of ranks, a sum of numbers of their own is that of all ranks, rank 0 reaches
/// every rank, and all ranks pass a barrier. All ranks call it at the same time.
///
/// @error corrupt: a number is wrong, with this rank and the numbers; else as the operations
inline result<group_report> check_group(communicator& c) {
  const auto wrong = [&](const std::string& what, double got, double expected) {
    auto why = fail(errc::corrupt,
                    "rank " + std::to_string(c.rank()) + " of " + std::to_string(c.ranks()) + ": " + what + " is " + std::to_string(got) +
                        ", not " + std::to_string(expected),
                    "communication", "check that every rank has a number of its own, and the link between the devices");
    c.abort(why);
    return why;
  };
  const double n = c.ranks(), r = c.rank();
  std::array<float, 1> one{1};
  if (auto e = c.all_reduce(std::as_writable_bytes(std::span(one)), dtype::f32, reduction::sum); !e) return std::move(e).error();
  if (!(one[0] == float(n))) return wrong("the sum of 1 over all ranks", double(one[0]), n);

  std::array<double, 2> own{r, -r};  // 0 + 1 + ... + (n - 1), and that negated
  if (auto e = c.all_reduce(std::as_writable_bytes(std::span(own)), dtype::f64, reduction::sum); !e) return std::move(e).error();
  if (!(own[0] == n * (n - 1) / 2)) return wrong("the sum of the ranks' numbers", own[0], n * (n - 1) / 2);
  if (!(own[1] == -n * (n - 1) / 2)) return wrong("the sum of the ranks' negated numbers", own[1], -n * (n - 1) / 2);

  constexpr std::int64_t word = 0x6973'6f74'6f70'65;
  std::array<std::int64_t, 1> said{c.rank() == 0 ? word : 0};
  if (auto e = c.broadcast(std::as_writable_bytes(std::span(said)), 0); !e) return std::move(e).error();
  if (said[0] != word) return wrong("the word of rank 0", double(said[0]), double(word));
  if (auto e = c.barrier(); !e) return std::move(e).error();
  return group_report{c.rank(), c.ranks(), double(one[0])};
}

}  // namespace isotope
