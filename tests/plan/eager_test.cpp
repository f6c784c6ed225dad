#include "device_there.hpp"
#include "property.hpp"
#include "run_eagerly.hpp"

using namespace plan_test;

namespace eager_test {

struct small_gpt : isotope::model::gpt_loss_of {
  static constexpr std::int64_t x_count = 0, ids_count = 10;
};
struct small_mlp : isotope::model::mlp_loss_of {
  static constexpr std::int64_t x_count = 10, ids_count = 5;
};

template <class T> struct eager : testing::Test {};
TYPED_TEST_SUITE(eager, every_target, target_name);

// There is no tolerance: both run the kernels of the target, and a plan changes only order, fusion and memory.
TYPED_TEST(eager, gives_the_bits_of_the_plan_on_random_graphs) {
  check_property(20240602, affordable(200), 60, [] {
    const sized_random_model model{*random_models()};
    RC_ASSERT(difference(run_eagerly<TypeParam>(model), run_planned<TypeParam>(model)) == "");
  });
}

TYPED_TEST(eager, gives_the_bits_of_the_plan_on_gpt) {
  const small_gpt model{{{2, 2, 16, 11, 6, 0.1}, 2, 5}};
  EXPECT_EQ(difference(run_eagerly<TypeParam>(model), run_planned<TypeParam>(model)), "");
}

TYPED_TEST(eager, gives_the_bits_of_the_plan_on_mlp) {
  const small_mlp model{{{2, 7, 2, 4}, 5}};
  EXPECT_EQ(difference(run_eagerly<TypeParam>(model), run_planned<TypeParam>(model)), "");
}

TEST(eager_errors, an_input_without_data_is_named) {
  isotope::eager<reference_f32> machine(*isotope_test::there(opened<reference_f32>(1)));
  const auto x = isotope::scope<isotope::eager<reference_f32>>{&machine, {}}.input("x", {2, 2});
  EXPECT_FALSE(x.valid());
  EXPECT_NE(machine.g.error.view().find("'x' needs 16 bytes of data"), std::string_view::npos) << machine.g.error.view();
}
TEST(eager_errors, a_size_that_is_known_late_is_refused) {
  isotope::eager<reference_f32> machine(*isotope_test::there(opened<reference_f32>(1)));
  const auto x = isotope::scope<isotope::eager<reference_f32>>{&machine, {}}.input("x", {isotope::scalar_dim{4, 0}, 2});
  EXPECT_FALSE(x.valid());
  EXPECT_NE(machine.g.error.view().find("'x' [<=4,2] has a size known late"), std::string_view::npos) << machine.g.error.view();
  isotope::eager<reference_f32> other(*isotope_test::there(opened<reference_f32>(1)));
  const auto h = isotope::scope<isotope::eager<reference_f32>>{&other, {}}.state("h", {isotope::scalar_dim{4, 0}, 2});
  EXPECT_FALSE(h.valid());
  EXPECT_NE(other.g.error.view().find("'h' [<=4,2] has a size known late"), std::string_view::npos) << other.g.error.view();
}

}  // namespace eager_test
