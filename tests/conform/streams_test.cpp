/// A run refuses invalid streams of cases and names the fault.
#include "toy.hpp"

namespace streams_test {

using namespace toy;
namespace generators = conform::generators;

/// The error of a run over the cases that `cases` makes; empty: no error.
std::string error_of(void (*cases)(conform::case_sink&)) {
  conform::spec s = *conform::find_spec("twice");
  s.cases = cases;
  toy_device d;
  conform::silent_progress heard;
  conform::run_options o;
  o.cases = {{&s}, iso::dtype::f32, conform::strength::fast, 1, 1};
  const auto t = conform::conformance_run(d, o, heard).run();
  return t.ok() ? "" : t.error().what;
}
void one(conform::case_sink& s) { s.add({s.x({3})}); }

TEST(conform_streams, a_sound_stream_runs) {
  EXPECT_EQ(error_of([](conform::case_sink& s) { one(s), one(s), one(s); }), "");
}
TEST(conform_streams, an_op_without_cases_is_refused) {
  EXPECT_EQ(error_of([](conform::case_sink&) {}), "op_spec<twice>::cases gives none");
}
TEST(conform_streams, other_cases_the_second_time_are_refused) {
  const std::string others = "the cases are others when they are asked for again";
  static int asked = 0;  // makes the generator depend on earlier calls
  EXPECT_EQ(error_of([](conform::case_sink& s) { s.add({s.x({3 + asked++})}); }), others);
  EXPECT_EQ(error_of([](conform::case_sink& s) {
              one(s);
              if (asked++ % 2 == 0) one(s);
            }),
            others);
  EXPECT_EQ(error_of([](conform::case_sink& s) { s.add({s.x({3}, 0, 1 + asked++)}); }), others) << "other numbers in the same shape";
}
TEST(conform_streams, one_case_twice_is_refused) {
  const conform::spec* op = conform::find_spec("twice");
  const conform::spec* const ops[] = {op};
  conform::case_stream sound, twice, again, gap;
  for (std::uint64_t k = 0; k < 3; ++k) sound.add(case_of({3}, k));
  EXPECT_TRUE(sound.check(ops).ok());
  auto c = case_of({3}, 0);
  twice.add(c);
  c.id = 1;  // the same seed, so the same numbers
  twice.add(c);
  EXPECT_EQ(twice.check(ops).error().what, "op_spec<twice>::cases gives one case twice, number 1");
  again.add(case_of({3}, 5));
  again.add(case_of({4}, 5));
  EXPECT_EQ(again.check(ops).error().what, "op_spec<twice>::cases gives number 5 after 5");
  gap.add(case_of({3}, 5));
  gap.add(case_of({3}, 7));
  EXPECT_FALSE(gap.check(ops).ok());
}
bool others(double a, double b) { return a != b || std::signbit(a) != std::signbit(b); }
/// Every generator is a function of seed and index. Repeated calls give the same numbers, each is representable in the format, and not all are equal.
TEST(conform_streams, generators_give_the_same_numbers_again) {
  for (const conform::generator& g : conform::every_generator)
    for (const iso::dtype t : {iso::dtype::f32, iso::dtype::bf16, iso::dtype::i32, iso::dtype::boolean}) {
      if (!g.handles(t)) continue;
      const conform::drawing d{42, t, 0, 5, 1, 7};
      std::vector<double> first, second;
      stream(g, d, 300, [&](std::int64_t, double x) { first.push_back(x); });
      stream(g, d, 300, [&](std::int64_t, double x) { second.push_back(x); });
      EXPECT_EQ(std::memcmp(first.data(), second.data(), 300 * sizeof(double)), 0) << g.name;
      for (const double x : first) ASSERT_TRUE(std::isnan(x) || conform::rounded(t, x) == x) << g.name << " " << x;
      if (g.name != "constant" && t != iso::dtype::boolean) {
        EXPECT_NE(std::adjacent_find(first.begin(), first.end(), others), first.end()) << g.name;
      }
    }
}

}  // namespace streams_test
