#pragma once
/// Every operation of a group against plain loops, for a transport `G` of ranks.hpp.
#include <isotope/comm/sanity.hpp>

#include <cstring>
#include <span>
#include <string>

#include "expected.hpp"
#include "ranks.hpp"

namespace comm_test {

/// One operation on one rank: its number chooses operation, type, size and data, the same on all ranks.
inline void run_operation(communicator& c, std::uint64_t number, int kind, dtype t, reduction how, std::size_t elems) {
  const std::size_t size = std::size_t(isotope::size_of(t)), n = std::size_t(c.ranks()), r = std::size_t(c.rank());
  const std::string what = "operation " + std::to_string(number) + ", kind " + std::to_string(kind) + ", " +
                           std::string(isotope::name_of(t)) + " x " + std::to_string(elems) + ", rank " + std::to_string(r) + " of " +
                           std::to_string(n);
  switch (kind) {
    case 0: {
      bytes x = given(t, elems, c.rank(), number);
      expect_ok(c.all_reduce(x, t, how), what);
      EXPECT_EQ(x, combined(t, elems, c.ranks(), how, number)) << what;
      return;
    }
    case 1:
    case 2: {  // the part on its own, and at its place in the whole
      bytes part = given(t, elems, c.rank(), number), whole(elems * size * n, std::byte{0xa5}), expected;
      for (int q = 0; q < c.ranks(); ++q) {
        const bytes theirs = given(t, elems, q, number);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      std::span<std::byte> from = part;
      if (kind == 2) {
        from = std::span(whole).subspan(r * part.size(), part.size());
        std::copy(part.begin(), part.end(), from.begin());
      }
      expect_ok(c.all_gather(from, whole), what);
      EXPECT_EQ(whole, expected) << what;
      return;
    }
    case 3:
    case 4: {
      bytes whole = given(t, elems * n, c.rank(), number), part(elems * size);
      const bytes all = combined(t, elems * n, c.ranks(), how, number);
      const auto place = std::ptrdiff_t(r * part.size());
      std::span<std::byte> to = part;
      if (kind == 4) to = std::span(whole).subspan(std::size_t(place), part.size());
      expect_ok(c.reduce_scatter(whole, to, t, how), what);
      EXPECT_EQ(bytes(to.begin(), to.end()), bytes(all.begin() + place, all.begin() + place + std::ptrdiff_t(part.size()))) << what;
      return;
    }
    case 5: {
      const int root = int(number % n);
      bytes x = given(t, elems, c.rank(), number);
      expect_ok(c.broadcast(x, root), what);
      EXPECT_EQ(x, given(t, elems, root, number)) << what;
      return;
    }
    default: return expect_ok(c.barrier(), what);
  }
}
constexpr int kinds = 7;

/// Every kind, type and reduction at sizes of 0, 1, primes, and one less and more than multiples of the ranks and of a slice.
template <class G> void every_operation_at_awkward_sizes(int ranks) {
  G group(ranks);
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        std::uint64_t number = 0;
        for (const int elems : {0, 1, 5, 13, 63, 64 * ranks, 64 * ranks + 1, 1031})
          for (const dtype t : all_types)
            for (int kind = 0; kind < kinds; ++kind)
              for (const reduction how : {reduction::sum, reduction::max}) {
                if (how == reduction::max && kind != 0 && kind != 3) continue;
                run_operation(c, ++number, kind, t, how, std::size_t(elems));
              }
      });
}

template <class G> void two_hundred_operations_in_random_order(int ranks) {
  G group(ranks);
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        numbers choice{7 + std::uint64_t(ranks)};
        for (std::uint64_t number = 1; number <= 200; ++number) {
          const int kind = choice.below(kinds);
          const dtype t = all_types[choice.below(6)];
          const auto how = choice.below(2) == 0 ? reduction::sum : reduction::max;
          const auto elems = std::size_t(choice.below(choice.below(2) == 0 ? 8 : 700));
          if (choice.below(8) == c.rank()) std::this_thread::yield();  // ranks arrive in different orders
          run_operation(c, number, kind, t, how, elems);
        }
      });
}

template <class G> void a_group_is_sane(int ranks) {
  G group(ranks);
  on_ranks(
      ranks, [&](int r) { return group.join(r); }, [](communicator& c) { expect_ok(isotope::check_group(c), "the check of the group"); });
}

/// Each rank sees its own mistake as it is, and the others see whose it was; later calls say the same.
template <class G> void a_call_that_does_not_fit_ends_the_group(int ranks) {
  G group(ranks);
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        std::vector<float> x(6);
        const bool wrong = c.rank() == 1;
        for (int i = 0; i < 3; ++i) {
          auto span = std::as_writable_bytes(std::span(x));
          const auto r = c.all_reduce(wrong && i == 0 ? span.first(7) : span, dtype::f32, reduction::sum);
          if (wrong) expect_failure(r, errc::invalid_argument, "all_reduce: 7 bytes");
          else expect_failure(r, errc::peer_lost, "rank 1 ended the group: all_reduce: 7 bytes");
        }
      });
}
template <class G> void calls_that_differ_end_the_group(int ranks) {
  G group(ranks);
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        std::vector<float> x(c.rank() == 1 ? 5 : 6);
        const auto r = c.all_reduce(std::as_writable_bytes(std::span(x)), dtype::f32, reduction::sum);
        ASSERT_FALSE(r.ok());
        const std::string line = r.error().line();
        EXPECT_EQ(r.error().code, errc::invalid_argument) << line;
        EXPECT_NE(line.find("all_reduce (sum of f32, 24 bytes)"), std::string::npos) << line;
        EXPECT_NE(line.find("rank 1 calls all_reduce (sum of f32, 20 bytes)"), std::string::npos) << line;
      });
}
/// One rank ends the group while the others wait.
template <class G> void an_abort_wakes_every_rank(int ranks) {
  G group(ranks);
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        std::vector<float> x(100000);
        if (c.rank() == 1) {
          std::thread other([&] { c.abort(isotope::fail(errc::non_finite, "the loss is NaN", "step 12", "lower the learning rate")); });
          other.join();
          expect_failure(c.barrier(), errc::non_finite, "the loss is NaN");
          expect_failure(c.state(), errc::non_finite, "the loss is NaN");
          c.abort(isotope::fail(errc::timeout, "a second cause", "step 12", "none"));
          expect_failure(c.barrier(), errc::non_finite, "the loss is NaN");
        } else {
          expect_failure(c.all_reduce(std::as_writable_bytes(std::span(x)), dtype::f32, reduction::sum), errc::peer_lost,
                         "rank 1 ended the group: the loss is NaN");
          expect_failure(c.state(), errc::peer_lost, "rank 1 ended the group: the loss is NaN");
          expect_failure(c.barrier(), errc::peer_lost, "rank 1 ended the group: the loss is NaN");
        }
      });
}
/// The own call of a rank, which waits for the others, is ended from another thread.
template <class G> void an_abort_ends_a_blocked_call(int ranks) {
  G group(ranks);
  std::atomic<int> ended{0};
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        const std::string reason = "rank " + std::to_string(c.rank()) + " was stopped";
        if (c.rank() == ranks - 1) {  // never comes
          for (int n = ended.load(); n < ranks - 1; n = ended.load()) ended.wait(n);
          EXPECT_FALSE(c.barrier().ok());
        } else {
          std::thread other([&] { c.abort(isotope::fail(errc::interrupted, reason, "", "none")); });
          const auto r = c.barrier();
          other.join();
          ASSERT_FALSE(r.ok());
          EXPECT_TRUE(r.error().code == errc::interrupted || r.error().code == errc::peer_lost) << r.error().line();
          EXPECT_NE(r.error().what.find("was stopped"), std::string::npos) << r.error().line();
          ++ended;
          ended.notify_all();
        }
      });
}
/// One rank leaves where the others go on. Over TCP a slow rank may hear of it while it is in the operation before.
template <class G> void a_rank_that_left_is_named(int ranks) {
  G group(ranks);
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        const auto first = c.barrier();
        if (c.rank() != 1) expect_failure(first ? c.barrier() : first, errc::peer_lost, "rank 1 has left the group");
      });
}
/// One rank does something else, for longer than the others wait.
template <class G> void a_rank_that_hangs_is_named(int ranks) {
  G group(ranks, 0.1);
  std::atomic<int> answered{0};
  on_ranks(
      ranks, [&](int r) { return group.join(r); },
      [&](communicator& c) {
        if (c.rank() == 1) {
          for (int n = answered.load(); n < ranks - 1; n = answered.load()) answered.wait(n);
          const auto late = c.barrier();
          ASSERT_FALSE(late.ok());
        } else {
          expect_late_rank_1(c.barrier());
          ++answered;
          answered.notify_all();
        }
      });
}

}  // namespace comm_test
