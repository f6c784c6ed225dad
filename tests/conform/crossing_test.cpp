/// The table of case generators: each generator makes cases for every op whose signature it handles.
#include "toy.hpp"

#include <set>

namespace crossing_test {

using namespace toy;
using conform::case_generator, conform::case_sink, conform::signature, conform::strength;

conform::selection of_toys(std::span<const case_generator> table, strength how = strength::standard) {
  conform::selection s;
  for (const conform::spec& op : conform::every_spec()) s.ops.push_back(&op);
  s.how = how;
  s.generators = table;
  return s;
}
struct listed_cases final : conform::case_visitor {
  std::vector<conform::test_case> all;
  bool visit(conform::test_case&& c) override { return all.push_back(std::move(c)), true; }
};
bool takes_numbers(const signature& s) { return s.has_form(); }
bool takes_two_operands(const signature& s) { return s.has_form() && s.form().in.size() == 2; }
void put_threes(const signature& s, case_sink& to) {
  auto c = s.form();
  for (auto& x : c.in) x.from = &conform::generator_of<conform::generators::constant>, x.low = x.high = 3;
  to.put(std::move(c));
}

TEST(conform_crossing, a_line_more_in_the_table_reaches_every_op_and_its_name_is_in_the_records) {
  static constexpr std::array table{case_generator{"threes", strength::standard, takes_numbers, put_threes}};
  const auto pairs = conform::crossed_pairs(of_toys(table));
  ASSERT_EQ(pairs.size(), 2u);
  for (const auto& p : pairs) EXPECT_EQ(p.cases, 1) << p.op;
  EXPECT_EQ(pairs[0].op, "doubled");
  EXPECT_EQ(pairs[1].op, "twice");
  EXPECT_TRUE(conform::crossed_pairs(of_toys(table, strength::fast)).empty()) << "its cases are those of stronger runs";

  listed_cases with, without;
  conform::for_each_case(of_toys(table), with);
  conform::for_each_case(of_toys({}), without);
  EXPECT_EQ(with.all.size(), without.all.size() + 2);
  int made = 0;
  for (const auto& c : with.all) {
    const std::string record = conform::record_of(c);
    EXPECT_EQ(record.find(R"("made_by":"threes")") != record.npos, c.made_by == "threes");
    made += c.made_by == "threes" ? 1 : 0;
    EXPECT_TRUE(c.made_by == "threes" || record.find("made_by") == record.npos) << "a case of the specification's own";
  }
  EXPECT_EQ(made, 2);
}
TEST(conform_crossing, signatures_that_are_not_handled_have_no_case_and_handled_ones_without_a_case_are_told) {
  static constexpr std::array table{case_generator{"for two", strength::standard, takes_two_operands, put_threes},
                                    case_generator{"idle", strength::standard, takes_numbers, [](const signature&, case_sink&) {}}};
  const auto pairs = conform::crossed_pairs(of_toys(table));
  ASSERT_EQ(pairs.size(), 2u);
  for (const auto& p : pairs) EXPECT_TRUE(p.generator == "idle" && p.cases == 0) << p.generator << " " << p.cases;
}
TEST(conform_crossing, every_generator_has_cases_of_the_ops_that_it_handles) {
  std::set<std::string_view> names;
  for (const auto& p : conform::crossed_pairs(of_toys(conform::every_case_generator))) {
    EXPECT_GT(p.cases, 0) << p.generator << " of " << p.op;
    names.insert(p.generator);
  }
  for (const auto* name : {"boundary values", "subnormal numbers", "whole numbers", "equal numbers", "zeros of both signs", "reversed axes",
                           "no elements", "one element", "many elements"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_FALSE(names.contains("broadcast operands")) << "of one operand";
  EXPECT_FALSE(names.contains("many rows")) << "element-wise";
  for (const auto& p : conform::crossed_pairs(of_toys(conform::every_case_generator, strength::fast)))
    EXPECT_EQ(p.generator, "boundary values");
}
/// A case that is read from its record has its generator, so that a replay reports the same.
TEST(conform_crossing, records_keep_the_generator) {
  listed_cases seen;
  conform::for_each_case(of_toys(conform::every_case_generator), seen);
  std::set<std::string_view> back;
  for (const auto& c : seen.all) {
    const auto j = iso::io::parse_json(conform::record_of(c), "record");
    ASSERT_TRUE(j.ok());
    const auto r = conform::read_record(*j);
    ASSERT_TRUE(r.ok()) << r.error().line();
    EXPECT_EQ(r->made_by, c.made_by);
    back.insert(r->made_by);
  }
  EXPECT_GE(back.size(), 9u);
}

}  // namespace crossing_test
