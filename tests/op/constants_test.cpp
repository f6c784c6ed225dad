// An op's constants are the same after a round trip through attributes, entry by entry, and use no other entries.
#include <gtest/gtest.h>
#include <boost/mp11/algorithm.hpp>
#include <isotope/conform/op_list.hpp>

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
static_assert(has<op::cast>(1, 0) && has<op::embedding>(1, 0), "a format");
static_assert(has<op::softmax>(1, 0) && has<op::softmax_grad>(1, 0) && has<op::log_softmax>(1, 0) && has<op::log_softmax_grad>(1, 0));
static_assert(has<op::argmax>(1, 0) && has<op::concat>(1, 0), "an axis");
static_assert(has<op::cumsum>(2, 0), "axis, reverse");
static_assert(has<op::split>(2, 0), "axis, parts");
static_assert(has<op::narrow>(3, 0), "axis, first, length");
static_assert(has<op::pad>(3, 0), "axis, first, size");
static_assert(has<op::permute>(8, 0), "order");
static_assert(has<op::sum>(3, 0) && has<op::mean>(3, 0) && has<op::prod>(3, 0) && has<op::max>(3, 0) && has<op::min>(3, 0));
static_assert(has<op::cross_entropy>(1, 0) && has<op::cross_entropy_grad>(1, 0), "classes");
static_assert(has<op::top_k>(1, 0), "k");
static_assert(has<op::scale>(0, 1) && has<op::shift>(0, 1), "k");
static_assert(has<op::dropout>(0, 1), "p");
static_assert(has<op::categorical>(0, 1), "temperature");
static_assert(has<op::layer_norm>(0, 1) && has<op::rms_norm>(0, 1), "epsilon");
static_assert(has<op::fft>(1, 1), "direction; factor");
static_assert(has<op::rfft>(1, 2) && has<op::irfft>(1, 2), "points; factor, inner");
static_assert(has<op::rope>(2, 1), "first, direction; base");
static_assert(has<op::matmul>(4, 2), "format, operands, half_weight, packed; alpha, beta");
static_assert(has<op::attention>(6, 2) && has<op::attention_grad>(6, 2), "heads, kv_heads, causal, packed, masked, window; scale, dropout");
static_assert(has<op::adamw>(5, 2) && has<op::sgd>(5, 2) && has<op::momentum>(5, 2) && has<op::muon>(5, 2),
              "decaying, shadow, clips, columns, written; rate_scale, direction_scale");

constexpr shape deep{2, scalar_dim{30, 4}, 5, 1, 0, 7};
static_assert(op::reshape::constants::of(op::reshape::constants{deep}).dims == deep);
static_assert(op::expand::constants::of(op::expand::constants{deep}).dims.axis(1).slot == 4);
static_assert(there_and_back<op::fill>(op::fill::constants{.dims = {3, 9}, .format = dtype::bf16, .x = -2}) ==
              attributes{.i = {3, 9, 0, 0, 0, 0, 2, std::int64_t(dtype::bf16)}, .f = {-2}});

/// The ops tested above. An op that gets constants must be added in both places.
using listed =
    boost::mp11::mp_list<op::cast, op::embedding, op::softmax, op::log_softmax, op::argmax, op::concat, op::cumsum, op::split, op::narrow,
                         op::pad, op::permute, op::sum, op::mean, op::prod, op::max, op::min, op::cross_entropy, op::top_k, op::scale,
                         op::shift, op::dropout, op::categorical, op::layer_norm, op::rms_norm, op::fft, op::rfft, op::irfft, op::rope,
                         op::matmul, op::attention, op::adamw, op::sgd, op::momentum, op::muon, op::reshape, op::expand, op::fill>;
template <class Op> struct has_constants : std::bool_constant < requires {
  typename Op::constants;
}>{};
static_assert(boost::mp11::mp_count_if<conform::specified_ops, has_constants>::value == boost::mp11::mp_size<listed>::value,
              "an op has constants that nothing here looks at");

TEST(constants, keep_numbers_that_are_no_flags) {
  boost::mp11::mp_for_each<boost::mp11::mp_list<op::split, op::narrow, op::pad, op::permute, op::rope>>([]<class Op>(Op) {
    const attributes a{.i = {-(std::int64_t(1) << 60), 77}, .f = {}};
    EXPECT_EQ(there_and_back<Op>(a), a) << Op::name;
  });
}

}  // namespace constants_test
}  // namespace isotope::op_test
