// The concepts, by types that have every part, and types that lack exactly one.
#include <isotope/core/graph.hpp>
#include <isotope/core/tape.hpp>
#include <isotope/core/target.hpp>
#include <isotope/plan/kernels.hpp>

#include <gtest/gtest.h>

#include <array>
#include <type_traits>

namespace concepts_test {
using namespace isotope;

// The archetype of a backend, put together from its parts; one of them may be missing.
struct nothing {};
struct with_name {
  static constexpr std::string_view name = "toy";
};
struct with_preference {
  static constexpr int preference = 1;
};
struct with_chunks {
  static constexpr std::int64_t chunk_bytes = 0;
};
struct with_kernels {
  using kernels = boost::mp11::mp_list<>;
};
struct with_device {
  template <class T> struct device {};
};
template <class Part, int Index, int Missing> struct part : std::conditional_t<Index == Missing, nothing, Part> {};
template <int Missing>
struct toy : part<with_name, 0, Missing>,
             part<with_preference, 1, Missing>,
             part<with_chunks, 2, Missing>,
             part<with_kernels, 3, Missing>,
             part<with_device, 4, Missing> {};
template <class B> constexpr std::array<bool, 5> parts_of{HasBackendName<B>, HasPreference<B>, HasChunks<B>, HasKernels<B>, HasDevice<B>};

/// Exactly part `Missing` is reported, and the concept fails; with none missing it holds.
template <int Missing> constexpr bool reports_exactly() {
  for (int k = 0; k < 5; ++k)
    if (parts_of<toy<Missing>>[std::size_t(k)] != (k != Missing)) return false;
  return Backend<toy<Missing>> == (Missing < 0);
}
static_assert(reports_exactly<-1>());
static_assert(reports_exactly<0>() && reports_exactly<1>() && reports_exactly<2>() && reports_exactly<3>() && reports_exactly<4>());
// A part of the wrong type is as good as none.
struct numbered : toy<0> {
  static constexpr int name = 7;
};
static_assert(!HasBackendName<numbered> && !Backend<numbered>);

static_assert(Target<target<toy<-1>, precision::f32>>);
static_assert(!Target<target<toy<3>, precision::f32>> && !HasBackend<target<toy<3>, precision::f32>>, "a target needs kernels");
static_assert(!Target<target<toy<-1>, float>> && !HasPrecision<target<toy<-1>, float>>, "float is not a precision");
static_assert(!Target<target<toy<-1>, precision::f32, nothing>> && !HasKernelSet<target<toy<-1>, precision::f32, nothing>>);
static_assert(!Target<int>);

static_assert(Precision<precision::f32> && Precision<precision::bf16> && Precision<precision::f64> && !Precision<float>);

static_assert(Machine<tape> && Machine<graph<target<toy<-1>, precision::f32>>> && !Machine<int> && !Machine<nothing>);
static_assert(std::is_same_v<graph<target<toy<-1>, precision::bf16>>::target::precision, precision::bf16>);

// Kernel lists: what a backend supports, and what a target may run.
struct twice {
  static constexpr std::string_view name = "twice";
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
};
struct thrice : twice {
  static constexpr std::string_view name = "thrice";
};
static_assert(IsOp<twice> && !IsOp<nothing> && !HasGradientRule<twice>);
template <class Op, class P, class Set> struct kernel {};
struct some : toy<-1> {
  using kernels = boost::mp11::mp_list<kernel<twice, precision::f32, isotope::kernels::reference>,
                                       kernel<twice, precision::f32, isotope::kernels::portable>,
                                       kernel<twice, precision::f64, isotope::kernels::reference>>;
};
static_assert(Supports<some, twice, precision::f32> && Supports<some, twice, precision::f64>);
static_assert(!Supports<some, twice, precision::bf16> && !Supports<some, thrice, precision::f32>);

TEST(kernel_table, the_wanted_set_comes_first_and_those_above_it_are_left_out) {
  const auto& native = kernel_table<target<some, precision::f32>>;
  ASSERT_EQ(native.size(), 2u);
  EXPECT_EQ(native[0].set, "portable");
  EXPECT_EQ(native[1].set, "reference");
  const auto& reference = kernel_table<target<some, precision::f32, isotope::kernels::reference>>;
  ASSERT_EQ(reference.size(), 1u);
  EXPECT_EQ(reference[0].set, "reference");
  EXPECT_EQ(reference[0].op, &info<twice>);
}
TEST(kernel_table, kernels_of_the_target_come_before_those_of_the_backend) {
  using more = boost::mp11::mp_list<kernel<thrice, precision::f32, isotope::kernels::reference>>;
  const auto& table = kernel_table<target<some, precision::f32, isotope::kernels::native, more>>;
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[0].op, &info<thrice>);
}
}  // namespace concepts_test
