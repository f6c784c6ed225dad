// labels: alone
// NVIDIA's assembler must accept the text of emitted bodies.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <isotope/kernels/cuda/body/emitted_body.hpp>
#include <string>
#include <string_view>

#include "../io/scratch_folder.hpp"
#include "body_samples.hpp"

namespace isotope::cuda_test {
namespace ptx_assembler_test {

/// Whether ptxas accepts the text for an architecture; if not, its message.
testing::AssertionResult accepted(const scratch_folder& folder, std::string_view text, const char* architecture) {
  const std::string file = folder.at("body.ptx"), code = folder.at("body.cubin"), log = folder.at("log");
  std::ofstream(file, std::ios::binary).write(text.data(), std::streamsize(text.size()));
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(log.c_str(), "w", stderr) == nullptr || std::freopen(log.c_str(), "a", stdout) == nullptr) ::_exit(126);
    ::execl(ISOTOPE_PTXAS, ISOTOPE_PTXAS, "-arch", architecture, file.c_str(), "-o", code.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return testing::AssertionFailure() << "cannot start " << ISOTOPE_PTXAS;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << folder.read("log");
}
std::string text_of(const sample& s) {
  const auto in = views(s.in), out = views(s.out);
  const auto code = cuda::ptx::emit_body(cuda::form_of<cuda::view>(in, out, s.body, s.accumulate)).ptx;
  return {code.begin(), code.end()};
}

class ptx_assembler : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(ISOTOPE_PTXAS, X_OK) != 0) GTEST_SKIP() << "there is no " << ISOTOPE_PTXAS;
  }
};

TEST_F(ptx_assembler, takes_random_bodies) {
  const scratch_folder folder;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    EXPECT_TRUE(accepted(folder, text_of(random_sample(seed)), seed % 2 == 0 ? "sm_80" : "sm_90")) << "body " << seed;
}
TEST_F(ptx_assembler, takes_every_op) {
  random_numbers r(5);
  const scratch_folder folder;
  for (const op_info* op : cuda::instructions) {
    sample s;
    micro_op m{op, {-1, -1, -1}, 0, compares(*op) ? dtype::boolean : dtype::bf16, 0.75};
    for (int k = 0; k < operands_of(*op); ++k) {
      s.in.emplace_back(shape{7, 6}, dtype::bf16).fill(r);
      m.arg[std::size_t(k)] = std::int8_t(k);
    }
    s.out.emplace_back(shape{7, 6}, m.type).fill(r);
    s.body = {m};
    EXPECT_TRUE(accepted(folder, text_of(s), "sm_80")) << op->name;
  }
}
TEST_F(ptx_assembler, refuses_a_broken_text) {
  const scratch_folder folder;
  std::string text = text_of(random_sample(1));
  text.replace(text.find("ld.param.u64"), 12, "ld.param.u65");
  EXPECT_FALSE(accepted(folder, text, "sm_80"));
}

}  // namespace ptx_assembler_test
}  // namespace isotope::cuda_test
