// Each collective op in a plan of its own sizes, on ranks of threads, against plain loops: bit for bit. isotope-conform runs one device, so it has no cases of them.
#include "on_mesh.hpp"

#include <isotope/op/all_gather.hpp>
#include <isotope/op/reduce_scatter.hpp>

using namespace dist_test;

namespace collectives_test {

const std::vector<std::int64_t> pieces{1, 3, 64, 257, 4099};  // elements of a rank

const op_rules* const ops[] = {&rules<op::all_reduce>, &rules<op::all_gather>, &rules<op::all_gather_pieces>, &rules<op::reduce_scatter>};

/// For each op and size the input "x<n>" and the result "y<n>" of a copy of it, over one group. all_gather takes a rank's piece, the others all pieces.
template <class T> dynamic_plan every_op(rank_group group, const device_mesh& m) {
  tape t(T::precision::type);
  t.g.mesh = m;
  const auto at = place::current();
  const auto constants = op::collective_constants::of(group, m);
  int n = 0;
  for (const op_rules* op : ops)
    for (const auto each : pieces) {
      const std::string number = std::to_string(n++);
      const auto x = t.input(name("x" + number), {op == &rules<op::all_gather> ? each : each * constants.ranks}, t.program(), at);
      const auto copied = t.record(rules<op::copy>, {&x, 1}, {}, at, 0).out[0];
      const auto y = t.record(*op, {&copied, 1}, constants, at, 0).out[0];
      t.g.values[std::size_t(t.g.root(y))].kind = value_kind::output;
      t.g.outputs.push_back({name("y" + number), y});
    }
  dynamic_plan p = freeze(t.g, lay_out(t.g, kernel_table<T>, 0));
  EXPECT_TRUE(p.error.empty()) << p.error.view();
  return p;
}

/// Element i of the input of a rank. Every second sum of three depends on its order: the first two are large and cancel.
template <class E> E number(int rank, std::int64_t i) {
  if (i % 2 == 0 && rank < 2) return E((rank == 0 ? 0x1p20f : -0x1p20f) * float(1 + i % 5));
  return E(float((rank + 1) * 37 % 11 - 5) * 0.37f + float(i % 29) * 0.01f);
}
/// The sum over all ranks, in their order, in f32, rounded once.
template <class E> E sum_of(int ranks, std::int64_t i) {
  float total = float(number<E>(0, i));
  for (int r = 1; r < ranks; ++r) total += float(number<E>(r, i));
  return E(total);
}

template <class T> void every_collective_gives_the_bits_of_a_plain_loop(rank_group group, int ranks) {
  using E = typename T::precision::storage;
  const device_mesh m = group == rank_group::tensor ? device_mesh{1, ranks} : device_mesh{ranks, 1};
  on_mesh<T>(m, every_op<T>(group, m), [&](const rank<T>& r) {
    const int me = group == rank_group::tensor ? r.at.tensor : r.at.data;
    for (int run = 0; run < 2; ++run) {
      int n = 0;
      for (std::size_t k = 0; k < std::size(ops) * pieces.size(); ++k) {
        const auto x = *r.session.template input<E>("x" + std::to_string(k));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = number<E>(me, std::int64_t(i));
      }
      r.session.run(scalars(1));
      ASSERT_TRUE(r.session.status().ok());
      for (const op_rules* op : ops)
        for (const auto each : pieces) {
          const auto y = *r.session.template output<E>("y" + std::to_string(n++));
          ASSERT_EQ(y.size(), std::size_t(each * ranks));
          for (std::int64_t i = 0; i < each * ranks; ++i) {
            const int of = int(i / each);
            if (op == &rules<op::reduce_scatter> && of != me) continue;  // these hold anything
            const bool sums = op == &rules<op::all_reduce> || op == &rules<op::reduce_scatter>;
            const E expected = sums ? sum_of<E>(ranks, i) : number<E>(of, op == &rules<op::all_gather> ? i % each : i);
            ASSERT_EQ(float(y[std::size_t(i)]), float(expected))
                << op->info->name << " of " << each << ", element " << i << ", rank " << me;
          }
        }
    }
  });
}

TEST(collectives, give_the_bits_of_plain_loops_in_f32_and_bf16_over_both_groups) {
  for (const auto group : {rank_group::tensor, rank_group::data})
    for (const int ranks : {2, 3}) {
      every_collective_gives_the_bits_of_a_plain_loop<f32_target>(group, ranks);
      every_collective_gives_the_bits_of_a_plain_loop<bf16_target>(group, ranks);
    }
}

TEST(collectives, refuse_what_does_not_divide_and_what_cannot_be_summed) {
  const auto refused = [](const op_rules& op, const shape& dims, dtype type) {
    tape t(dtype::f32);
    const auto x = t.input(name("x"), dims, type, place::current());
    t.record(op, {&x, 1}, op::collective_constants{.ranks = 3}, place::current(), 0);
    return std::string(t.g.error.view());
  };
  for (const op_rules* op : {&rules<op::all_gather_pieces>, &rules<op::reduce_scatter>}) {
    EXPECT_NE(refused(*op, {10}, dtype::f32).find("do not divide by the ranks"), std::string::npos);
    EXPECT_EQ(refused(*op, {9}, dtype::f32), "");
  }
  for (const op_rules* op : {&rules<op::all_reduce>, &rules<op::reduce_scatter>})
    EXPECT_NE(refused(*op, {9}, dtype::i32).find("sums floating-point numbers only"), std::string::npos);
  EXPECT_NE(refused(rules<op::all_gather>, {1, 1, 1, 1, 1, 1}, dtype::f32).find("more than 6 axes"), std::string::npos);
}

}  // namespace collectives_test
