/// The longest serial sums that matrix products declare: the bounds of their results are made of them.
#include <isotope/backend/cpu.hpp>
#include <isotope/conform/executor_of.hpp>

#include <gtest/gtest.h>

namespace isotope::conform {
namespace chain_test {

template <class Set> using cpu = target<backend::cpu, precision::f32, Set>;

template <class K> void expect_declared() {
  if constexpr (std::is_same_v<typename kernel_traits<K>::op, op::matmul>) { EXPECT_NE(declared_chain<K>(), nullptr); }
}
TEST(conform_chain, every_kernel_of_the_product_declares_it) {
  using each = boost::mp11::mp_transform<std::type_identity, backend::cpu::kernels>;
  boost::mp11::mp_for_each<each>([]<class K>(std::type_identity<K>) { expect_declared<K>(); });
}
TEST(conform_chain, blocks_of_k_shorten_it) {
  const auto chain = chain_of_products<cpu<kernels::portable>>();
  EXPECT_EQ(chain(0), 0);
  EXPECT_EQ(chain(1), 1);
  EXPECT_EQ(chain(256), 256);
  EXPECT_EQ(chain(257), 129 + 1) << "two blocks of about equal size";
  EXPECT_EQ(chain(4096), 256 + 15);
  const auto native = chain_of_products<cpu<kernels::native>>();  // with blocks of another depth, where the processor has it
  EXPECT_EQ(native(100), 100);
  EXPECT_LE(native(4096), 400);
}
TEST(conform_chain, a_sum_in_f64_rounds_once) { EXPECT_EQ(chain_of_products<cpu<kernels::reference>>()(4096), 1); }
TEST(conform_chain, without_a_declaration_it_is_k) { EXPECT_EQ((conditions{}.chain_of(777)), 777); }

}  // namespace chain_test
}  // namespace isotope::conform
