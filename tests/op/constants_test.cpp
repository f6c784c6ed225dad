// An op's constants are the same after a round trip through attributes, entry by entry, and use no other entries.
#include <gtest/gtest.h>
#include <boost/mp11/algorithm.hpp>
#include <isotope/op/all.hpp>

namespace isotope::op_test {
namespace constants_test {

template <class Op> constexpr attributes there_and_back(const attributes& a) { return Op::constants::of(a); }

/// Whether the constants of Op use exactly the first `integers` entries of i and the first `numbers` entries of f: each of them survives a round trip alone,
/// no other entry does, and all of them survive it together.
template <class Op> constexpr bool has(std::size_t integers, std::size_t numbers) {
  attributes all;
  bool right = there_and_back<Op>({}) == attributes{};
  for (std::size_t k = 0; k < all.i.size(); ++k) {
    attributes one;
    one.i[k] = 1;
    right = right && there_and_back<Op>(one) == (k < integers ? one : attributes{});
    if (k < integers) all.i[k] = 1;
  }
  for (std::size_t k = 0; k < all.f.size(); ++k) {
    attributes one;
    one.f[k] = 0.5;
    right = right && there_and_back<Op>(one) == (k < numbers ? one : attributes{});
    if (k < numbers) all.f[k] = 0.25 * double(k + 1);
  }
  return right && there_and_back<Op>(all) == all;
}
/// An op whose constants are the first `Integers` entries of i and the first `Numbers` entries of f.
template <class Op, std::size_t Integers, std::size_t Numbers> struct keeps {
  using op = Op;
  static_assert(has<Op>(Integers, Numbers));
};
// clang-format off
using entries_in_order = boost::mp11::mp_list<
    keeps<op::cast, 1, 0>, keeps<op::embedding, 1, 0>,  // a format
    keeps<op::softmax, 1, 0>, keeps<op::softmax_grad, 1, 0>, keeps<op::log_softmax, 1, 0>, keeps<op::log_softmax_grad, 1, 0>,
    keeps<op::argmax, 1, 0>, keeps<op::concat, 1, 0>,  // an axis
    keeps<op::cumsum, 2, 0>,  // axis, reverse
    keeps<op::split, 2, 0>,  // axis, parts
    keeps<op::narrow, 3, 0>,  // axis, first, length
    keeps<op::pad, 3, 0>,  // axis, first, size
    keeps<op::permute, 8, 0>,  // order
    keeps<op::sum, 3, 0>, keeps<op::mean, 3, 0>, keeps<op::prod, 3, 0>, keeps<op::max, 3, 0>, keeps<op::min, 3, 0>,
    keeps<op::cross_entropy, 2, 0>, keeps<op::cross_entropy_grad, 2, 0>,  // classes, all
    keeps<op::cross_entropy_part_grad, 3, 0>,  // classes, all, first
    keeps<op::all_reduce, 2, 0>, keeps<op::all_gather, 2, 0>, keeps<op::all_gather_pieces, 2, 0>, keeps<op::reduce_scatter, 2, 0>,  // group, ranks
    keeps<op::take_along, 1, 0>,  // zeros
    keeps<op::top_k, 1, 0>,  // k
    keeps<op::scale, 0, 1>, keeps<op::shift, 0, 1>,  // k
    keeps<op::dropout, 4, 1>,  // first, run, stride, step; p
    keeps<op::categorical, 0, 1>,  // temperature
    keeps<op::layer_norm, 0, 1>, keeps<op::rms_norm, 0, 1>,  // epsilon
    keeps<op::fft, 1, 1>,  // direction; factor
    keeps<op::rfft, 1, 2>, keeps<op::irfft, 1, 2>,  // points; factor, inner
    keeps<op::rope, 5, 3>,  // first, direction, heads, context, bits of the factor; base, low, high
    keeps<op::matmul, 6, 2>,  // format, operands, half_weight, packed, batch_invariant, a8; alpha, beta
    keeps<op::attention, 8, 2>, keeps<op::attention_grad, 8, 2>,  // heads, kv_heads, causal (and batch_invariant), packed, masked, window, all_heads, first_head; scale, dropout
    keeps<op::attention_cached, 3, 1>,  // heads, window, batch_invariant; scale
    keeps<op::attention_packed, 2, 1>,  // heads, causal; scale
    keeps<op::pool, 2, 0>,  // how, normalise
    keeps<op::adamw, 5, 2>, keeps<op::sgd, 5, 2>, keeps<op::momentum, 5, 2>, keeps<op::muon, 5, 2>>;  // decaying, shadow, clips, columns, written; rate_scale, direction_scale
// clang-format on

constexpr shape deep{2, scalar_dim{30, 4}, 5, 1, 0, 7};
static_assert(op::reshape::constants::of(op::reshape::constants{deep}).dims == deep);
static_assert(op::expand::constants::of(op::expand::constants{deep}).dims.axis(1).slot == 4);
static_assert(there_and_back<op::fill>(op::fill::constants{.dims = {3, 9}, .format = dtype::bf16, .x = -2}) ==
              attributes{.i = {3, 9, 0, 0, 0, 0, 2, std::int64_t(dtype::bf16)}, .f = {-2}});
static_assert(op::fill::constants::of(op::fill::constants{.dims = {}, .format = dtype::f32, .x = 1, .per_rank = 3}).per_rank == 3);

template <class Entry> using op_of = typename Entry::op;
/// The ops tested above.
using listed =
    boost::mp11::mp_append<boost::mp11::mp_transform<op_of, entries_in_order>, boost::mp11::mp_list<op::reshape, op::expand, op::fill>>;
template <class Op>
concept HasConstants = requires { typename Op::constants; };
template <class Op> using is_covered = std::bool_constant<!HasConstants<Op> || boost::mp11::mp_contains<listed, Op>::value>;
static_assert(boost::mp11::mp_all_of<library_ops, is_covered>::value, "an op has constants that nothing here looks at");

TEST(constants, keep_numbers_that_are_no_flags) {
  boost::mp11::mp_for_each<boost::mp11::mp_list<op::split, op::narrow, op::pad, op::permute, op::rope>>([]<class Op>(Op) {
    const attributes a{.i = {-(std::int64_t(1) << 60), 77}, .f = {}};
    EXPECT_EQ(there_and_back<Op>(a), a) << Op::name;
  });
}

}  // namespace constants_test
}  // namespace isotope::op_test
