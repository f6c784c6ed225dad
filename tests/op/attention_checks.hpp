#pragma once
/// Checks of attention and its gradient against the definition, with derived bounds.
#include "harness.hpp"

#include "attention_problem.hpp"

namespace isotope::op_test {
namespace attention_test {

using sizes = attention_problem::sizes;
inline attention_problem make(const op_test& here, const sizes& z, double scale = 0) { return {z, here.type, here.accum, scale}; }
/// A score is a sum of D products of at most 4. Its error becomes a relative error of the weights through exp, and values are at most 2.
/// In addition, matrix units and bf16 pair instructions need weights rounded to 16 bits. Weights sum to 1.
inline double forward_error(const op_test& here, const sizes& z) {
  return here.roundings(double(2 * z.D + z.T + 8)) * 4 * double(z.D + 2) + 2 * here.rounded_weights;
}
/// Runs the gradient on the results of the forward op and compares it with the definition; also with packed operands if there are as many queries as keys.
inline void expect_gradient(const op_test& here, const attention_problem& p, kernel_choices* choices = nullptr) {
  const sizes& z = p.z;
  const host dy = random({z.B, z.S, z.H * z.D}, here.type, 4);
  std::vector<host> in = p.operands();
  const auto y = here.run<op::attention>(in, p.attr, drawing(p));
  auto a = p.attr;
  a.scale = p.scale;
  in.insert(in.end(), {y.at(0), y.at(1), dy});
  auto how = drawing(p);
  how.choices = choices;
  const auto dx = here.run<op::attention_grad>(in, a, how);
  const auto expected = attention_by_definition(p, &dy);
  ASSERT_EQ(dx.size(), 3u);
  // The gradient reads rounded y and lse: y, in its format, is in sums of D products with dy <= 2; lse, in the accumulation format, is in every weight.
  // Dropout multiplies dP, the terms of dv and y, and so every error, by at most 1 / (1 - p).
  const double D = double(z.D), S = double(z.S * z.H / z.G), grown = 1 / (1 - p.dropout);
  const double ds =
      grown * (2 * D * 2 * roundoff(here.type) + (4 * D) * (forward_error(here, z) + 8 * roundoff(here.accum) + here.rounded_weights));
  const double dv = grown * 2 * S * (forward_error(here, z) + 8 * roundoff(here.accum));
  EXPECT_TRUE(near(dx[0], expected.dq, 2 * ds)) << z.S;  // weights sum to 1
  EXPECT_TRUE(near(dx[1], expected.dk, 2 * S * ds)) << z.S;
  EXPECT_TRUE(near(dx[2], expected.dv, dv)) << z.S;
  if (z.S == z.T && choices == nullptr) {  // one packed operand gives the same bits
    std::vector<host> packed = {p.packed()};
    if (z.masked) packed.push_back(p.mask);
    packed.insert(packed.end(), {y[0], y[1], dy});
    a.packed = true;
    const auto d = here.run<op::attention_grad>(packed, a, drawing(p));
    attention_problem g = p;
    g.q = dx[0], g.k = dx[1], g.v = dx[2];
    EXPECT_TRUE(same(d.at(0), g.packed().at));
  }
}

}  // namespace attention_test
}  // namespace isotope::op_test
