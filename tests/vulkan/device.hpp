#pragma once
/// The device that tests share: validation on, every message a failure, objects released before the driver unloads.
#include <gtest/gtest.h>

#include <isotope/backend/vulkan/pipelines.hpp>
#include <memory>
#include <string>

#include "../device_there.hpp"

namespace isotope::vulkan_test {

/// Messages that say nothing of correctness: advice on speed, what a software driver says of itself, and which variables the loader read.
inline bool allowed(const std::string& text) {
  for (const char* hint :
       {"BestPractices", "lavapipe is not a conformant", "terminator_CreateInstance", "Device Extension Not Found", "env var 'VK_"})
    if (text.find(hint) != text.npos) return true;
  return false;
}

struct shared_device {
  std::shared_ptr<vulkan::context> context;
  std::shared_ptr<vulkan::pipelines> pipelines;
};
inline shared_device& instance_of_tests() {
  static shared_device d;
  return d;
}

/// Fails the test during which the validation layer spoke.
class listener : public ::testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const ::testing::TestInfo&) override {
    const auto& d = instance_of_tests();
    if (d.context == nullptr) return;
    const auto texts = d.context->messages().texts();
    for (; seen_ < texts.size(); ++seen_)
      if (!allowed(texts[seen_])) ADD_FAILURE() << "validation: " << texts[seen_];
  }
  void OnTestProgramEnd(const ::testing::UnitTest&) override { instance_of_tests() = {}; }

 private:
  std::size_t seen_ = 0;
};

inline device_options test_options() {
  device_options o;
  o.diagnose.validate = true;
  o.timeout_seconds = 600;  // software drivers compile at the first dispatch, matrices for many seconds
  return o;
}

/// The device with its pipelines; a test without one ends as skipped, with the reason.
inline shared_device& test_device() {
  auto& d = instance_of_tests();
  if (d.context == nullptr) {
    d.context = *isotope_test::there(vulkan::context::open(test_options()));
    d.pipelines = std::make_shared<vulkan::pipelines>(d.context);
    ::testing::UnitTest::GetInstance()->listeners().Append(new listener);
  }
  return d;
}

}  // namespace isotope::vulkan_test
