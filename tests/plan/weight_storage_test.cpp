#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

#include <cmath>
#include <limits>

using namespace plan_test;
namespace iso = isotope;

namespace weight_storage_test {

constexpr iso::model::gpt size{2, 2, 32, 40, 16};
constexpr iso::model::gpt_logits_of logits{size, 2, 16};

using f32_targets = ::testing::Types<reference_f32, portable_f32, on<iso::precision::f32, iso::kernels::native>>;
template <class T> struct weight_storage : testing::Test {};
TYPED_TEST_SUITE(weight_storage, f32_targets, target_name);

iso::dynamic_plan must(iso::result<iso::dynamic_plan> p) {
  EXPECT_TRUE(p.ok()) << (p ? "" : p.error().line());
  return p ? *std::move(p) : iso::dynamic_plan{};
}
template <class T> iso::dynamic_plan stored(iso::weight_storage how) { return must(iso::plan_inference<T>(logits, 0, true, false, how)); }
template <class Session> std::vector<float> output_of(Session& s) {
  s.run({}, iso::phase_always);
  const auto y = s.template output<float>("output");
  EXPECT_TRUE(y.ok());
  return {y->begin(), y->end()};
}
/// Whether matmuls of f16 weights run on matrix units, which round activations.
template <class T> bool rounds_activations() {
  const auto device = opened<T>(1);
  if constexpr (requires { device->what().matrix(iso::dtype::f16); })
    return T::kernel_set::rank == iso::kernels::native::rank && device->what().matrix(iso::dtype::f16) != nullptr;
  else return false;
}
/// Whether the target has kernels that read weights in blocks.
template <class T> constexpr bool reads_blocks() {
  const auto k = iso::find_kernel(iso::kernel_table<T>, &iso::info<iso::op::matmul>, T::precision::type);
  return k >= 0 && iso::kernel_table<T>[std::size_t(k)].reads_blocks;
}
/// Rounds rows of a multiple of 32 numbers as blocks do.
void round_to_blocks(iso::dtype type, std::vector<float>& x) {
  for (std::size_t i = 0; i < x.size(); i += 32) {
    const auto block = iso::quantized::quantize(type, x.data() + i);
    for (std::size_t j = 0; j < 32; ++j) x[i + j] = block[std::int64_t(j)];
  }
}
/// The bytes of parameters that matmuls read.
std::int64_t weight_bytes(const iso::plan_view& p) {
  std::int64_t n = 0;
  for (const auto& s : p.steps)
    if (s.op == &iso::info<iso::op::matmul>)
      if (const auto& w = p.operands[std::size_t(s.operands + 1)]; w.region == iso::value_kind::param) n += w.bytes;
  return n;
}
std::int64_t parameter_bytes(const iso::plan_view& p) { return p.totals.region[std::size_t(iso::value_kind::param)]; }

TYPED_TEST(weight_storage, halves_the_bytes_of_products_and_of_the_weights_they_read) {
  const auto wide = stored<TypeParam>(nullptr), narrow = stored<TypeParam>(iso::weights::f16);
  EXPECT_GT(weight_bytes(wide), 0);
  EXPECT_EQ(2 * weight_bytes(narrow), weight_bytes(wide));
  std::int64_t saved = 0;
  for (const auto& s : iso::plan_view(narrow).slots) {
    const bool product = s.dims.rank == 2 && s.path.view() != "wpe.weight";
    EXPECT_EQ(s.type, product ? iso::dtype::f16 : iso::dtype::f32) << s.path.view();
    if (product) saved += 2 * s.dims.count();
  }
  EXPECT_EQ(parameter_bytes(wide) - parameter_bytes(narrow), saved);  // every weight here is a multiple of the alignment
  EXPECT_EQ(narrow.totals.parameters, wide.totals.parameters);
}

TYPED_TEST(weight_storage, in_blocks_takes_34_or_18_bytes_for_32_weights_or_is_refused) {
  for (const auto how : {iso::weights::q8_0, iso::weights::q4_0}) {
    const iso::dtype type = how({}, {});
    const auto p = iso::plan_inference<TypeParam>(logits, 0, true, false, how);
    if (!reads_blocks<TypeParam>()) {
      ASSERT_FALSE(p.ok());
      EXPECT_NE(p.error().line().find("does not read them; store f16 or bf16, or use the cpu backend"), std::string::npos)
          << p.error().line();
      continue;
    }
    ASSERT_TRUE(p.ok()) << p.error().line();
    std::int64_t expected = 0;
    for (const auto& s : iso::plan_view(*p).slots) {
      const bool product = s.dims.rank == 2 && s.path.view() != "wpe.weight";
      EXPECT_EQ(s.type, product ? type : iso::dtype::f32) << s.path.view();
      if (product) expected += (s.dims[0] + 15) / 16 * 16 * s.dims[1] / 32 * (type == iso::dtype::q8_0 ? 34 : 18);
    }
    EXPECT_EQ(weight_bytes(*p), expected);
  }
}

/// x w^T of `rows` rows; w (37, 800) has a panel that is not full, and on cpu blocks of K that end within a block of 32.
struct product {
  int rows = 1;
  template <iso::Machine M> iso::tensor<M> operator()(iso::scope<M> s) const {
    return matmul(s.input("x", {rows, 800}, iso::dtype::f32), transpose(s.param("w", {37, 800}, iso::init::normal(1))));
  }
};
// Products of a few rows read the weight in another way than those of many, but sum in the same order.
TYPED_TEST(weight_storage, in_blocks_gives_a_row_the_same_bits_whatever_the_number_of_rows) {
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  for (const auto how : {iso::weights::q8_0, iso::weights::q4_0}) {
    std::vector<float> all;
    for (const int rows : {11, 1, 2, 3, 4, 5, 8, 9}) {
      auto s = loaded<TypeParam>(must(iso::plan_inference<TypeParam>(product{rows}, 0, true, false, how)));
      s.initialize(3);
      const auto x = s.template input<float>("x");
      ASSERT_TRUE(x.ok());
      const auto values = input_values<float>("x", 11 * 800);
      std::copy_n(values.begin(), x->size(), x->begin());
      const auto y = output_of(s);
      if (all.empty()) all = y;
      EXPECT_TRUE(same_bits(y, std::vector<float>(all.begin(), all.begin() + std::ptrdiff_t(y.size())))) << rows;
    }
  }
}

// 16-bit numbers are exact in f32, and so are those in blocks, so an f32 program with the rounded weights computes the same sums in the same order. Matrix units also round activations,
// and other tests check their error.
TYPED_TEST(weight_storage, gives_the_bits_of_f32_weights_that_were_rounded_before) {
  if (rounds_activations<TypeParam>()) GTEST_SKIP() << "this device rounds activations in matmuls of f16 weights";
  for (const auto how : {iso::weights::f16, iso::weights::bf16, iso::weights::q8_0, iso::weights::q4_0}) {
    if (iso::in_blocks(how({}, {})) && !reads_blocks<TypeParam>()) continue;
    auto wide = loaded<TypeParam>(stored<TypeParam>(nullptr)), narrow = loaded<TypeParam>(stored<TypeParam>(how));
    for (std::size_t k = 0; k < wide.parameters().size(); ++k) {
      const auto type = narrow.parameters()[k].type;
      std::vector<float> x(std::size_t(wide.parameters()[k].dims.count()));
      ASSERT_TRUE(wide.read(iso::tensor_kind::parameter, k, x).ok());
      if (iso::in_blocks(type)) round_to_blocks(type, x);
      else
        for (float& v : x) v = type == iso::dtype::f16 ? float(iso::float16(v)) : type == iso::dtype::bf16 ? float(iso::bfloat16(v)) : v;
      ASSERT_TRUE(wide.write(iso::tensor_kind::parameter, k, x).ok());
    }
    EXPECT_TRUE(same_bits(output_of(wide), output_of(narrow)));
  }
}

// Each weight has a relative error of 2^-11, and so has each matmul of a layer; the errors of layers add up. 4 % of the largest logit is ten times the
// error of two layers of four matmuls if all errors had the same sign, 2^-11 x 9.
TYPED_TEST(weight_storage, changes_logits_but_only_slightly) {
  auto wide = loaded<TypeParam>(stored<TypeParam>(nullptr)), narrow = loaded<TypeParam>(stored<TypeParam>(iso::weights::f16));
  const auto a = output_of(wide), b = output_of(narrow);
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(double(a[i])));
    apart = std::max(apart, std::fabs(double(a[i]) - double(b[i])));
  }
  EXPECT_TRUE(apart <= 0.04 * largest) << apart << " of " << largest;
  EXPECT_GT(apart, 0);
}

TYPED_TEST(weight_storage, in_blocks_refuses_what_is_not_finite_or_beyond_the_range_of_scales) {
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  auto s = loaded<TypeParam>(stored<TypeParam>(iso::weights::q4_0));
  std::size_t k = 0;
  while (s.parameters()[k].type != iso::dtype::q4_0) ++k;
  std::vector<float> x(std::size_t(s.parameters()[k].dims.count()), 0.5f);
  for (const float wrong : {6e5f, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    x[7] = wrong;
    const auto refused = s.write(iso::tensor_kind::parameter, k, x);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_NE(refused.error().line().find("beyond the range of q4_0"), std::string::npos) << refused.error().line();
  }
  x[7] = 5e5f;
  EXPECT_TRUE(s.write(iso::tensor_kind::parameter, k, x).ok());
}

TYPED_TEST(weight_storage, refuses_numbers_beyond_its_range_and_keeps_infinities) {
  auto s = loaded<TypeParam>(stored<TypeParam>(iso::weights::f16));
  std::size_t k = 0;
  while (s.parameters()[k].type != iso::dtype::f16) ++k;
  std::vector<float> x(std::size_t(s.parameters()[k].dims.count()), 0.5f);
  x[3] = 65504;
  EXPECT_TRUE(s.write(iso::tensor_kind::parameter, k, x).ok());
  x[3] = -70000;
  const auto refused = s.write(iso::tensor_kind::parameter, k, x);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, iso::errc::invalid_argument);
  EXPECT_NE(refused.error().line().find("-70000"), std::string::npos) << refused.error().line();
  x[3] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(s.write(iso::tensor_kind::parameter, k, x).ok());
  EXPECT_FALSE(s.read(iso::tensor_kind::parameter, k, x).ok());
}

/// A weight that is read by other ops than matmul and embedding, and one that is the left operand of a matmul.
struct other_readers {
  template <iso::Machine M> iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto x = s.input("x", {4, 4}, iso::dtype::f32), w = s.param("w", {4, 4}), v = s.param("v", {4, 4}), u = s.param("u", {4, 4});
    return matmul(x, w) + w + matmul(v, x) + matmul(x, u);
  }
};
TEST(weight_storage, leaves_alone_what_other_ops_read) {
  const auto p = must(iso::plan_inference<portable_f32>(other_readers{}, 0, true, false, iso::weights::f16));
  for (const auto& s : p.slots) EXPECT_EQ(s.type, s.path.view() == "u" ? iso::dtype::f16 : iso::dtype::f32) << s.path.view();
}
TEST(weight_storage, is_planned_by_the_compiler_too) {
  using narrow = iso::inference<iso::model::gpt_forward<iso::model::gpt{1, 2, 16, 20, 8}, 1, 8>, reference_f32, 0, iso::weights::f16>;
  using wide = iso::inference<iso::model::gpt_forward<iso::model::gpt{1, 2, 16, 20, 8}, 1, 8>, reference_f32>;
  static_assert(narrow::bytes < wide::bytes);
  EXPECT_EQ(2 * weight_bytes(narrow::view()), weight_bytes(wide::view()));
}
TEST(weight_storage, refuses_other_formats_and_programs_of_16_bits) {
  const auto integers = [](std::string_view, const iso::shape&) { return iso::dtype::i32; };
  const auto p = iso::plan_inference<reference_f32>(logits, 0, true, false, integers);
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().line().find("cannot be stored in i32: choose f32, f16, bf16, q8_0 or q4_0"), std::string::npos) << p.error().line();
  const auto q = iso::plan_inference<reference_bf16>(logits, 0, true, false, iso::weights::f16);
  ASSERT_FALSE(q.ok());
  EXPECT_NE(q.error().line().find("weights of a bf16 program are stored in bf16, q8_0 or q4_0"), std::string::npos) << q.error().line();
}

/// x w^T of bf16.
struct half_product {
  int rows = 1;
  template <iso::Machine M> iso::tensor<M> operator()(iso::scope<M> s) const {
    return matmul(s.input("x", {rows, 800}, iso::dtype::bf16), transpose(s.param("w", {37, 800}, iso::init::normal(1))));
  }
};
template <class T> void in_blocks_has_the_bits_of_weights_that_were_rounded_before(iso::weight_storage how) {
  for (const int rows : {1, 3, 11, 70}) {
    const auto planned = [&](iso::weight_storage stored) {
      return must(iso::plan_inference<T>(half_product{rows}, 0, true, false, stored, nullptr, true));
    };
    auto dense = loaded<T>(planned(nullptr)), blocks = loaded<T>(planned(how));
    std::vector<float> w = input_values<float>("w", 37 * 800);
    EXPECT_EQ(blocks.parameters()[0].type, how({}, {}));
    ASSERT_TRUE(blocks.write(iso::tensor_kind::parameter, 0, w).ok());
    round_to_blocks(how({}, {}), w);
    ASSERT_TRUE(dense.write(iso::tensor_kind::parameter, 0, w).ok());
    std::vector<std::vector<iso::bfloat16>> y;
    for (auto* s : {&dense, &blocks}) {
      const auto x = s->template input<iso::bfloat16>("x");
      ASSERT_TRUE(x.ok());
      const auto values = input_values<float>("x", std::int64_t(x->size()));
      std::transform(values.begin(), values.end(), x->begin(), [](float v) { return iso::bfloat16(v); });
      s->run({}, iso::phase_always);
      const auto out = s->template output<iso::bfloat16>("output");
      ASSERT_TRUE(out.ok());
      y.emplace_back(out->begin(), out->end());
    }
    for (std::size_t i = 0; i < y[0].size(); ++i) ASSERT_EQ(y[0][i].bits, y[1][i].bits) << rows << ' ' << i;
  }
}
TEST(weight_storage, in_blocks_gives_a_bf16_program_the_bits_of_weights_that_were_rounded_before) {
  if (!reads_blocks<reference_bf16>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  for (const auto how : {iso::weights::q8_0, iso::weights::q4_0}) {
    in_blocks_has_the_bits_of_weights_that_were_rounded_before<reference_bf16>(how);
    in_blocks_has_the_bits_of_weights_that_were_rounded_before<on<iso::precision::bf16, iso::kernels::native>>(how);
  }
}

TEST(weight_storage, in_blocks_refuses_rows_of_no_multiple_of_32_and_weights_that_are_not_summed_along_their_rows) {
  if (!reads_blocks<reference_f32>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  const iso::model::gpt_logits_of narrow{{1, 2, 40, 40, 16}, 1, 16};
  const auto p = iso::plan_inference<reference_f32>(narrow, 0, true, false, iso::weights::q8_0);
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().line().find("cannot be stored in q8_0: its rows have 40 elements, not a multiple of 32"), std::string::npos)
      << p.error().line();
  const auto q = iso::plan_inference<reference_f32>(other_readers{}, 0, true, false, iso::weights::q8_0);
  ASSERT_FALSE(q.ok());
  EXPECT_NE(q.error().line().find("'u' [4,4] cannot be stored in q8_0: a matmul does not sum along its last axis"), std::string::npos)
      << q.error().line();
}
TEST(weight_storage, policies_are_found_by_name) {
  EXPECT_EQ(iso::weights::named("q4_0"), &iso::weights::q4_0);
  EXPECT_EQ(iso::weights::named("f16"), &iso::weights::f16);
  EXPECT_EQ(iso::weights::named("f32"), nullptr);
}

}  // namespace weight_storage_test
