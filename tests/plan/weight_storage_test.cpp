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

// 16-bit numbers are exact in f32, so an f32 program with the rounded weights computes the same sums in the same order. Matrix units also round activations,
// and other tests check their error.
TYPED_TEST(weight_storage, gives_the_bits_of_f32_weights_that_were_rounded_before) {
  if (rounds_activations<TypeParam>()) GTEST_SKIP() << "this device rounds activations in matmuls of f16 weights";
  for (const auto how : {iso::weights::f16, iso::weights::bf16}) {
    auto wide = loaded<TypeParam>(stored<TypeParam>(nullptr)), narrow = loaded<TypeParam>(stored<TypeParam>(how));
    for (std::size_t k = 0; k < wide.parameters().size(); ++k) {
      const auto type = narrow.parameters()[k].type;
      std::vector<float> x(std::size_t(wide.parameters()[k].dims.count()));
      ASSERT_TRUE(wide.read(iso::tensor_kind::parameter, k, x).ok());
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
  EXPECT_NE(p.error().line().find("cannot be stored in i32: choose f32, f16 or bf16"), std::string::npos) << p.error().line();
  const auto q = iso::plan_inference<reference_bf16>(logits, 0, true, false, iso::weights::f16);
  ASSERT_FALSE(q.ok());
  EXPECT_NE(q.error().line().find("weights of a bf16 program are stored in bf16"), std::string::npos) << q.error().line();
}

}  // namespace weight_storage_test
