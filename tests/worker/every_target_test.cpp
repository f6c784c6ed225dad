/// Device workers on every target of the build's backend: what only a device with a driver can get wrong.
#include "../device_there.hpp"
#include "../plan/targets.hpp"
#include "rig.hpp"

using namespace worker_test;
using plan_test::every_target;

template <class T> class workers : public testing::Test {
 public:
  static constexpr bool gpu = !iso::device<T>::on_host;
  static worker::worker_options options() {
    auto o = one_thread();
    o.device.timeout_seconds = 600;  // a software driver compiles at the first dispatch
    return o;
  }
  /// A worker, or the end of the test where the machine lacks a device.
  static worker::device_worker on_device(const worker::worker_options& o = options()) {
    return *isotope_test::there(worker::device_worker::start<T>(o));
  }
};
TYPED_TEST_SUITE(workers, every_target, plan_test::target_name);

TYPED_TEST(workers, steps_evaluate_and_read_as_a_session_that_is_used_directly) {
  using T = TypeParam;
  const auto w = TestFixture::on_device();
  EXPECT_EQ(w.name(), worker::thread_name_of<typename T::backend>(0));
  EXPECT_EQ(w.info().backend, T::backend::name);
  const auto m = load_training<T>(w);
  auto d = isotope_test::there(plan_test::opened<T>(1));
  auto s = d->load(training_plan<T>(), evaluation_plan<T>());
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(3);
  using storage = typename T::precision::storage;
  for (const auto& x : batch()) {
    std::vector<storage> values;
    for (const float v : std::get<std::vector<float>>(x.values)) values.push_back(storage(v));
    value_of(s->template set<storage>(x.name, values));
  }
  for (int k = 0; k < 2; ++k) EXPECT_EQ(value_of(w.submit(worker::step{m, {batch()}, scalars()}).get()).loss, s->run(scalars()).loss);
  std::vector<float> weights(4);
  value_of(s->read(iso::tensor_kind::parameter, 0, weights));
  EXPECT_EQ(value_of(w.submit(worker::read{m}).get())[0].values, weights);
  EXPECT_GT(value_of(w.submit(worker::evaluate{m, batch()}).get()), 0);
  value_of(w.submit(worker::drop{m}).get());
  EXPECT_EQ(code_of(w.submit(worker::read{m}).get()), errc::stale_handle);
  EXPECT_TRUE(w.shut_down().ok());
}

// DW-08: the driver's word, or that it says nothing.
TYPED_TEST(workers, the_memory_query_is_the_word_of_the_driver) {
  const auto w = TestFixture::on_device();
  const auto said = w.submit(worker::query_memory{}).get();
  const auto d = isotope_test::there(plan_test::opened<TypeParam>(1));
  const auto word = d->memory();
  ASSERT_EQ(said.ok(), word.ok());
  if (!word) {
    EXPECT_EQ(said.error().line(), word.error().line());
    GTEST_SKIP() << word.error().line();
  }
  EXPECT_EQ(said->total, word->total);
  EXPECT_GT(said->free, 0);
  EXPECT_LE(said->free, said->total);
}

// DW-06, EN-13: the faults that a driver reports, where the backend can inject them.
TYPED_TEST(workers, a_lost_device_poisons_its_worker) {
  if (!TestFixture::gpu) GTEST_SKIP() << "the processor has no faults to inject";
  for (const auto& [fault, code] :
       {std::pair{iso::injected_fault::device_lost, errc::device_lost}, std::pair{iso::injected_fault::hung, errc::timeout}}) {
    auto o = TestFixture::options();
    o.device.diagnose.fault = fault;
    const auto w = TestFixture::on_device(o);
    EXPECT_EQ(code_of(w.submit(worker::load_plans<TypeParam>(training_plan<TypeParam>())).get()), code);
    EXPECT_EQ(code_of(w.submit(worker::query_memory{}).get()), errc::poisoned);
    EXPECT_TRUE(w.shut_down().ok());
  }
}
