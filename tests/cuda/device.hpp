#pragma once
/// The device that tests share: a GPU if there is one, otherwise the emulated device of tests/cuda/emulator. Objects are released before the program ends.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <isotope/backend/cuda/device.hpp>
#include <isotope/backend/session/session.hpp>
#include <isotope/fatbins/decode_hopper.hpp>
#include <memory>
#include <string>

#include "../device_there.hpp"
#include "emulator/blas_control.hpp"
#include "emulator/control.hpp"

#include <cuda_emulated_driver.hpp>  // isotope::cuda_test::emulated_driver and folders of libraries, written by the build

namespace isotope::cuda {
template <Target T> using session = isotope::session<queue<T>>;
}

namespace isotope::cuda_test {

/// A device that the code of this build runs on, of another compute capability than 9.0, whose own code has tests of its own (hopper_devices).
inline int emulated_compute() {
  for (const int compute : {80, 86, 87, 89, 91, 100, 103, 110, 120, 121})
    if (cuda::runs_on(cuda::fatbins::architectures, compute)) return compute;
  return 80;
}
/// The emulated driver, whether or not there is a GPU. It stays loaded: after that, `libcuda.so.1` names it, too, if there is no other.
inline const isotope_emulated::emulator& emulator() {
  static const isotope_emulated::emulator e = [] {
    isotope_emulated::emulator opened(emulated_driver);
    if (opened.there()) opened.set_devices({{.compute = emulated_compute()}});
    return opened;
  }();
  return e;
}
/// Restores the emulated driver's settings at the end of a test that changes them.
struct emulator_settings {
  emulator_settings() { restore(); }
  emulator_settings(const emulator_settings&) = delete;
  emulator_settings& operator=(const emulator_settings&) = delete;
  ~emulator_settings() { restore(); }
  static void restore() {
    if (!emulator().there()) return;
    emulator().reset();
    emulator().set_devices({{.compute = emulated_compute()}});
  }
};

/// Whether tests run on the emulated device, since the machine has no GPU.
inline bool emulated() {
  static const bool e = [] {
    if (auto real = cuda::driver::open({})) return false;
    return emulator().there();
  }();
  return e;
}
/// Devices that are opened without options are emulated, too, if there is no GPU.
inline const bool chosen_before_tests = emulated();

/// Options of a device of the emulated driver, whether or not there is a GPU.
inline cuda::options emulated_options() {
  cuda::options o;
  o.diagnose.driver_library = emulated_driver;
  o.diagnose.no_library = true;  // a real cuBLASLt needs a GPU
  o.timeout_seconds = 600;
  return o;
}
/// Those with the emulated cuBLASLt of a folder.
inline cuda::options library_options(const std::string& folder = emulated_blas) {
  cuda::options o = emulated_options();
  o.diagnose.no_library = false;
  o.diagnose.library_folder = folder;
  return o;
}

/// While it lives, devices that tests open are of compute capability 9.0: the GPU of this machine or, where there is none, emulated ones.
class hopper_devices {
 public:
  hopper_devices() {
    if (emulated()) emulator().set_devices({{.compute = 90}});
  }
  hopper_devices(const hopper_devices&) = delete;
  hopper_devices& operator=(const hopper_devices&) = delete;
  ~hopper_devices() {
    if (emulated()) emulator().set_devices({{.compute = emulated_compute()}});
  }
  /// Why there is none; empty: there is one.
  std::string missing() const {
    if (!cuda::fatbins::decode_hopper.there()) return "the build has no code for 90a";
    if (emulated()) return {};
    const auto c = cuda::context::open({}, cuda::fatbins::needs);
    return c && (*c)->physical().limits.compute == 90 ? "" : "no GPU of compute capability 9.0 is here";
  }
};

inline cuda::options test_options() {
  cuda::options o;
  if (emulated()) return emulated_options();
  o.timeout_seconds = 600;
  return o;
}
/// Runs the body of a test, if the test is the only one of its process. If it is not, the test runs in a process of its own, which must succeed. For tests
/// after which the device is of no use to other tests: it is broken as long as anybody holds it, or hangs to the end of the program.
template <class Body> void run_alone(const Body& body) {
  const auto& all = *testing::UnitTest::GetInstance();
  if (all.test_to_run_count() == 1) return body();
  std::string filter = std::string("--gtest_filter=") + all.current_test_info()->test_suite_name() + "." + all.current_test_info()->name();
  std::string program = "/proc/self/exe";
  char* const words[] = {program.data(), filter.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, words, environ), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it failed in a process of its own, as is printed above";
}

struct shared_device {
  std::shared_ptr<cuda::context> context;
  std::shared_ptr<cuda::loaded_functions> functions;
  cuda::transfer moving;
};
inline shared_device& instance_of_tests() {
  static shared_device d;
  return d;
}
class releaser : public ::testing::EmptyTestEventListener {
 public:
  void OnTestProgramEnd(const ::testing::UnitTest&) override { instance_of_tests() = {}; }
};

/// The device with its code. Skips the test, with a reason, if there is none.
inline shared_device& test_device() {
  auto& d = instance_of_tests();
  if (d.context == nullptr) {
    d.context = *isotope_test::there(cuda::context::open(test_options(), cuda::fatbins::needs));
    d.functions = std::make_shared<cuda::loaded_functions>(d.context);
    d.moving = cuda::transfer(d.context);
    ::testing::UnitTest::GetInstance()->listeners().Append(new releaser);
  }
  return d;
}

}  // namespace isotope::cuda_test
