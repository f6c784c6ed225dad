#pragma once
/// The device that tests share. Validation is on, and every message fails a test. Objects are released before the driver is unloaded.
#include <gtest/gtest.h>

#include <atomic>
#include <isotope/backend/session/session.hpp>
#include <isotope/backend/vulkan/pipelines.hpp>
#include <isotope/backend/vulkan/queue.hpp>
#include <memory>
#include <string>
#include <vector>

#include "../device_there.hpp"

namespace isotope::vulkan {
template <Target T> using session = isotope::session<queue<T>>;
}

namespace isotope::vulkan_test {

/// Whether a message does not concern correctness: notes of a software driver or of the loader, and performance advice that isotope does not follow.
inline bool allowed(const std::string& text) {
  // A layer that does not know an extension of the device reports that when the device is created, and misinterprets shaders that use it.
  static std::atomic<bool> older = false;
  if (text.find("is not supported by this layer") != text.npos) older = true;
  if (older && (text.find("ShaderModule") != text.npos || text.find("SPIR-V") != text.npos)) return true;
  for (const char* hint : {"lavapipe is not a conformant", "terminator_CreateInstance", "Device Extension Not Found", "env var 'VK_",
                           // The layer is older than the driver and does not know an extension of it, or a structure.
                           "is not supported by this layer", "an extension that was added to a later version",
                           // A session makes one allocation for each kind of memory, and the plans of tests are small.
                           "small-allocation", "small-dedicated-allocation",
                           // All kernels share one push constant range and read only the part that they declare.
                           "PushConstants",
                           // Single command buffers are recorded again when the sizes of a plan change.
                           "command-buffer-reset",
                           // A submission may have the commands of a step several times: those that decode some tokens at once.
                           "simultaneous-use",
                           // Validation needs the debug extension.
                           "specialuse-extension-debugging"})
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

/// Fails the test during which the validation layer reported a message.
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

/// Constants of every pipeline that tests make: programs whose shaders contain planted bugs choose one by it.
inline std::vector<vulkan::shader_constant>& constants_of_all() {
  static std::vector<vulkan::shader_constant> all;
  return all;
}
inline vulkan::options test_options() {
  vulkan::options o;
  o.diagnose.validate = true;
  o.diagnose.constants = constants_of_all();
  o.timeout_seconds = 600;  // software drivers compile at the first dispatch, which takes many seconds for cooperative matrices
  return o;
}

/// The device with its pipelines. Skips the test, with a reason, if there is none.
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
