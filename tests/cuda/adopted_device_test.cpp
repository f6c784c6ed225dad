/// An application makes a context and a stream without isotope; isotope trains on them and leaves them usable.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <vector>

namespace isotope::cuda {
namespace adopted_device_test {

using f32 = target<backend::cuda, precision::f32>;

/// A program that uses the driver without isotope's context.
class application {
 public:
  application() {
    auto opened = driver::open(cuda_test::test_options().diagnose.driver_library);
    if (opened) driver_ = *opened;
    if (opened && d()->retain_primary_context(&context_, 0) == status::success) {
      context_handle ignored = nullptr;
      d()->push_context(context_);
      d()->create_stream(&stream_, 1);
      d()->pop_context(&ignored);
    }
  }
  application(const application&) = delete;
  application& operator=(const application&) = delete;
  ~application() {
    if (stream_ != nullptr) {
      context_handle ignored = nullptr;
      d()->push_context(context_);
      d()->destroy_stream(stream_);
      d()->pop_context(&ignored);
      d()->release_primary_context(0);
    }
  }
  native_handles handles() const { return {context_, stream_}; }
  native_handles without_stream() const { return {context_, nullptr}; }
  /// The application's own use of its context and stream.
  bool copies_four_bytes() const {
    context_handle ignored = nullptr;
    device_address at = 0;
    unsigned sent = 0x12345678, got = 0;
    const bool done = d()->push_context(context_) == status::success && d()->allocate(&at, 4) == status::success &&
                      d()->copy_to_device(at, &sent, 4, stream_) == status::success &&
                      d()->copy_to_host(&got, at, 4, stream_) == status::success && d()->synchronize_stream(stream_) == status::success &&
                      d()->free(at) == status::success;
    d()->pop_context(&ignored);
    return done && got == sent;
  }

 private:
  std::shared_ptr<const driver> driver_;
  context_handle context_ = nullptr;
  stream_handle stream_ = nullptr;
  const driver& d() const { return *driver_; }
};

std::vector<double> losses(const device<f32>& d) {
  auto plan = plan_training<f32>(model::gpt_loss_of{model::gpt{2, 2, 16, 20, 8, 0.1}, 2, 8}, {});
  EXPECT_TRUE(plan.ok());
  auto s = d.load(*std::move(plan));
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  s->initialize(3);
  const std::vector<std::int32_t> tokens(16, 3), targets(16, 5);
  const batch b{tokens, targets};
  std::vector<double> r;
  for (int i = 1; i <= 3; ++i) {
    step_scalars x;
    x.optimizer_step = i;
    x.learning_rate = 0.01f;
    r.push_back(s->step(b, x).loss);
  }
  EXPECT_TRUE(s->status().ok());
  return r;
}

TEST(cuda_adopted_device, of_an_application_trains_as_the_librarys_own_does_and_outlives_the_session) {
  const auto own = losses(*isotope_test::there(device<f32>::open(cuda_test::test_options())));
  const application a;
  ASSERT_NE(a.handles().stream, nullptr);
  {
    auto d = device<f32>::adopt(a.handles(), cuda_test::test_options());
    ASSERT_TRUE(d.ok()) << d.error().line();
    EXPECT_EQ(d->handles().context, a.handles().context);
    EXPECT_EQ(d->handles().stream, a.handles().stream);
    EXPECT_EQ(losses(*d), own);
    EXPECT_LT(own.back(), own.front());
  }
  EXPECT_TRUE(a.copies_four_bytes());
}
TEST(cuda_adopted_device, without_a_stream_gets_one_of_its_own) {
  cuda_test::test_device();
  const application a;
  {
    auto d = device<f32>::adopt(a.without_stream(), cuda_test::test_options());
    ASSERT_TRUE(d.ok()) << d.error().line();
    EXPECT_NE(d->handles().stream, nullptr);
    auto b = d->allocate<float>(100);
    ASSERT_TRUE(b.ok()) << b.error().line();
    EXPECT_EQ(b->span()[99], 0.0f);
  }
  EXPECT_TRUE(a.copies_four_bytes());
}
TEST(cuda_adopted_device, that_is_null_is_refused) {
  const auto d = device<f32>::adopt({}, cuda_test::test_options());
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, errc::invalid_argument);
}

}  // namespace adopted_device_test
}  // namespace isotope::cuda
