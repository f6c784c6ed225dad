#include "compare.hpp"

#include <limits>

namespace elementwise_test {
using namespace isotope_test;
using precision::bf16;
using precision::f32;

template <class... A> std::vector<array> outputs(A&&... a) {
  std::vector<array> r;
  (r.push_back(std::forward<A>(a)), ...);
  return r;
}
/// Compares a body of one instruction in a kernel set with the reference kernels.
template <class Set, class Op, class P>
void instruction_of_set_matches(std::vector<array>& x, double tolerance, dtype result, double scalar = 0) {
  const std::int64_t n = x[0].count();
  std::vector<cpu::view> in;
  std::vector<int> args;
  for (std::size_t k = 0; k < x.size(); ++k) {
    in.push_back(x[k].v);
    args.push_back(int(k));
  }
  op_case wanted(in, outputs(array({n}, result))), given(in, outputs(array({n}, result)));
  wanted.body = {instruct<cpu::kernel<Op, P, kernels::reference>>(result, args, 0, scalar)};
  given.body = {instruct<kernel_of<Op, P, Set>>(result, args, 0, scalar)};
  const auto w = wanted.run<cpu::kernel<op::elementwise, P, kernels::reference>>(nullptr);
  for (int threads = 1; threads <= 3; ++threads) {
    const auto g = given.run<cpu::kernel<op::elementwise, P, kernels::portable>>(&pool_of(threads));
    for (std::int64_t i = 0; i < n; ++i) {
      const double a = w[0].at(i), b = g[0].at(i);
      if (std::isnan(a) ? std::isnan(b) : a == b) continue;
      ASSERT_TRUE(std::fabs(a - b) <= tolerance * std::fabs(a) + (tolerance > 0 ? 0x1p-19 : 0))
          << Set::name << ' ' << Op::name << " of " << x[0].at(i) << ": " << b << ", reference " << a;
    }
  }
}
template <class Op, class P> void instruction_matches(std::vector<array>& x, double tolerance, dtype result, double scalar = 0) {
  instruction_of_set_matches<kernels::portable, Op, P>(x, tolerance, result, scalar);
  instruction_of_set_matches<kernels::native, Op, P>(x, tolerance, result, scalar);
}
/// In f32, functions have an error of a few units in the last place, GELU of 2^-21. Gradients cancel near their roots, where the absolute error is
/// 2^-21 times |dy| <= 3, below 2^-19. bf16 results may differ by one rounding.
template <class P> void every_instruction() {
  const dtype t = P::type;
  const double tolerance = t == dtype::bf16 ? 0x1p-7 : 0x1p-20;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<array> one, two, choice;
  one.push_back(array::random({10007}, t, 1, -6, 6));
  const double edges[] = {0.0, -0.0, infinity, -infinity, std::nan(""), 1e-30, -1e-30, 20, -20, 100, -100};
  for (std::size_t i = 0; i < std::size(edges); ++i) one[0].set(std::int64_t(i) * 37, edges[i]);
  two.push_back(array::random({10007}, t, 2, -3, 3));
  two.push_back(array::random({10007}, t, 3, -3, 3));
  two[1].set(5, two[0].at(5));
  instruction_matches<op::scale, P>(one, 0, t, -0.37);
  instruction_matches<op::shift, P>(one, 0, t, 0.37);
  instruction_matches<op::square, P>(one, 0, t);
  instruction_matches<op::relu, P>(one, 0, t);
  instruction_matches<op::sqrt, P>(one, 0, t);
  instruction_matches<op::exp, P>(one, tolerance, t);
  instruction_matches<op::log, P>(one, tolerance, t);
  instruction_matches<op::tanh, P>(one, tolerance, t);
  instruction_matches<op::sigmoid, P>(one, tolerance, t);
  instruction_matches<op::silu, P>(one, tolerance, t);
  instruction_matches<op::gelu_tanh, P>(one, tolerance, t);
  instruction_matches<op::gelu_erf, P>(one, tolerance, t);
  instruction_matches<op::add, P>(two, 0, t);
  instruction_matches<op::sub, P>(two, 0, t);
  instruction_matches<op::mul, P>(two, 0, t);
  instruction_matches<op::div, P>(two, 0, t);
  instruction_matches<op::less, P>(two, 0, dtype::boolean);
  instruction_matches<op::equal, P>(two, 0, dtype::boolean);
  instruction_matches<op::relu_grad, P>(two, 0, t);
  instruction_matches<op::tanh_grad, P>(two, tolerance, t);
  instruction_matches<op::sigmoid_grad, P>(two, tolerance, t);
  instruction_matches<op::silu_grad, P>(two, tolerance, t);
  instruction_matches<op::sqrt_grad, P>(two, tolerance, t);
  instruction_matches<op::gelu_tanh_grad, P>(two, 4 * tolerance, t);
  instruction_matches<op::gelu_erf_grad, P>(two, tolerance, t);
  std::vector<array> three;
  for (std::uint64_t k = 0; k < 3; ++k) three.push_back(array::random({10007}, t, 5 + k, -3, 3));
  instruction_matches<op::div_grad, P>(three, tolerance, t);
  choice.push_back(array::random({10007}, dtype::boolean, 4, 0, 2));
  for (std::int64_t i = 0; i < 10007; ++i) choice[0].set(i, i % 3 == 0);
  choice.push_back(std::move(two[0]));
  choice.push_back(std::move(two[1]));
  instruction_matches<op::select, P>(choice, 0, t);
}
TEST(elementwise, every_instruction_matches_the_reference_in_f32) { every_instruction<f32>(); }
TEST(elementwise, every_instruction_matches_the_reference_in_bf16) { every_instruction<bf16>(); }

/// y0 = (a + b) c, y1 = a + b. Both kernels run the same instructions, so the bits are equal.
template <class P> void broadcasts(const shape& s, const cpu::view& a, const cpu::view& b, const cpu::view& c, std::uint8_t inout = 0) {
  op_case k({a, b, c}, outputs(array(s, P::type), array(s, dtype::f32)));
  k.inout = inout;
  const auto check = [&]<class Set>(Set) {
    k.body = {instruct<kernel_of<op::add, P, Set>>(dtype::f32, {0, 1}, 1), instruct<kernel_of<op::mul, P, Set>>(P::type, {8, 2}, 0)};
    expect_matches<op::elementwise, P>(k, {0, 0});
  };
  check(kernels::portable{});
  check(kernels::native{});
}
TEST(elementwise, repeats_operands_along_any_axis) {
  const auto check = [&]<class P>(P) {
    // Rows shorter and longer than the minimum for running row by row; several rows, one row and less than one row per tile; and several tasks.
    for (const shape& s : {shape{4, 30, 50}, shape{3, 1, 1100}, shape{70, 5, 3}, shape{1, 1, 1}, shape{2, 37, 241}, shape{3, 5, 600}}) {
      const array whole = array::random(s, P::type, 1), last = array::random({s[2]}, P::type, 2),
                  middle = array::random({s[1], 1}, P::type, 3), first = array::random({s[0], 1, 1}, dtype::f32, 4),
                  one = array::random({1}, P::type, 5), turned = array::random({s[0], s[2], s[1]}, P::type, 6);
      broadcasts<P>(s, whole.v, last.v, middle.v);
      broadcasts<P>(s, first.v, whole.v, one.v);
      broadcasts<P>(s, turned.transposed(), middle.v, whole.v);
      broadcasts<P>(s, middle.v, last.v, first.v);
      cpu::view expanded = last.v;  // strides are 0 along broadcast axes, as in plans
      expanded.dims = s;
      expanded.strides = {0, 0, 1};
      broadcasts<P>(s, whole.v, expanded, one.v);
    }
  };
  check(f32{});
  check(bf16{});
}
TEST(elementwise, an_output_may_take_the_place_of_any_operand) {
  const shape s{3, 2000};
  const array a = array::random(s, dtype::f32, 1), b = array::random(s, dtype::f32, 2), c = array::random(s, dtype::f32, 3);
  // Output 0 is stored in the memory of operand 0, which the next instruction still reads.
  for (int place = 0; place < 3; ++place) {
    op_case k({a.v, b.v, c.v}, outputs(array(s, dtype::f32), array(s, dtype::f32)));
    std::swap(k.in[0], k.in[std::size_t(place)]);
    k.inout = 1;
    const auto check = [&]<class Set>(Set) {
      k.body = {instruct<kernel_of<op::add, f32, Set>>(dtype::f32, {1, 2}, 0),
                instruct<kernel_of<op::mul, f32, Set>>(dtype::f32, {8, 0}, 1)};
      expect_matches<op::elementwise, f32>(k, {0, 0});
    };
    check(kernels::portable{});
    check(kernels::native{});
  }
}

/// A tile, whose rows may have gaps or be the same row, gives the bits of single elements, and nothing is written between its rows.
template <class Op> void tile_has_the_bits_of_single_elements() {
  using kernel = kernel_of<Op, f32, kernels::native>;
  if constexpr (requires { &kernel::tile; }) {
    const array x = array::random({3, 200}, dtype::f32, 1, -6, 6), y = array::random({3, 200}, dtype::f32, 2, -6, 6);
    for (const std::int64_t n : {1, 15, 16, 17, 100})
      for (const std::int64_t repeated : {0, 200}) {
        const cpu::row_view in[] = {{x.v.as<float>() + 7, 150}, {y.v.as<float>() + 3, repeated}};
        std::vector<float> out(3 * 128, 77.0f);
        cpu::row_target to;
        to.data = out.data();
        to.stride = 128;
        kernel::tile(in, to, 3, n, 0.37);
        for (std::int64_t r = 0; r < 3; ++r)
          for (std::int64_t j = 0; j < 128; ++j) {
            float one = 77;
            const void* const at[] = {x.v.as<float>() + 7 + r * 150 + j, y.v.as<float>() + 3 + r * repeated + j};
            if (j < n) kernel::block(at, &one, 1, 0.37);
            ASSERT_EQ(out[std::size_t(r * 128 + j)], one) << Op::name << ", row " << r << ", element " << j << " of " << n;
          }
      }
  }
}
/// bf16 operands give the same bits as their values in f32; results are stored as f32 rows, bf16 rows or both, and rounded once.
template <class Op> void tile_takes_and_makes_bf16() {
  using kernel = kernel_of<Op, f32, kernels::native>;
  if constexpr (requires { &kernel::tile; }) {
    const array x = array::random({3, 200}, dtype::bf16, 1, -6, 6), y = array::random({3, 200}, dtype::bf16, 2, -6, 6);
    std::vector<float> wide(1200);
    for (std::size_t i = 0; i < 600; ++i) {
      wide[i] = float(x.v.as<bfloat16>()[i]);
      wide[600 + i] = float(y.v.as<bfloat16>()[i]);
    }
    for (const std::int64_t n : {1, 15, 16, 17, 100}) {
      const cpu::row_view in[] = {{wide.data() + 7, 150}, {wide.data() + 603, 0}};
      std::vector<float> expected(3 * 128), out(3 * 128, 77.0f), alone(3 * 128, 77.0f);
      cpu::row_target to;
      to.data = expected.data();
      to.stride = 128;
      kernel::tile(in, to, 3, n, 0.37);
      std::vector<bfloat16> half(3 * 130, bfloat16(77.0f)), half_alone = half;
      const cpu::row_view half_in[] = {{x.v.as<bfloat16>() + 7, 150, dtype::bf16}, {y.v.as<bfloat16>() + 3, 0, dtype::bf16}};
      kernel::tile(half_in, {out.data(), 128, true, half.data(), 130}, 3, n, 0.37);
      kernel::tile(half_in, {nullptr, 0, true, half_alone.data(), 130}, 3, n, 0.37);
      kernel::tile(half_in, {alone.data(), 128, true}, 3, n, 0.37);
      for (std::int64_t r = 0; r < 3; ++r)
        for (std::int64_t j = 0; j < 128; ++j) {
          const auto at = std::size_t(r * 128 + j), at_half = std::size_t(r * 130 + j);
          const float one = j < n ? float(bfloat16(expected[at])) : 77.0f;
          ASSERT_EQ(out[at], one) << Op::name << ", row " << r << ", element " << j << " of " << n;
          ASSERT_EQ(alone[at], one) << Op::name << ", row " << r << ", element " << j << " of " << n;
          ASSERT_EQ(float(half[at_half]), one) << Op::name << ", row " << r << ", element " << j << " of " << n;
          ASSERT_EQ(float(half_alone[at_half]), one) << Op::name << ", row " << r << ", element " << j << " of " << n;
        }
    }
  }
}
template <class... Op> void tiles_have_the_bits_of_single_elements() {
  (tile_has_the_bits_of_single_elements<Op>(), ...);
  (tile_takes_and_makes_bf16<Op>(), ...);
}
TEST(elementwise, native_tiles_have_the_bits_of_single_elements) {
  tiles_have_the_bits_of_single_elements<op::add, op::sub, op::mul, op::scale, op::shift, op::relu, op::relu_grad, op::exp, op::tanh,
                                         op::tanh_grad, op::sigmoid, op::sigmoid_grad, op::silu, op::silu_grad, op::gelu_tanh,
                                         op::gelu_tanh_grad, op::gelu_erf, op::gelu_erf_grad, op::square, op::div, op::sqrt_grad, op::less,
                                         op::equal>();
}
}  // namespace elementwise_test
