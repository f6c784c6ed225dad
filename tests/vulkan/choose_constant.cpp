/// Chooses the planted bug of the shaders that tests run: its number is that of tests/mutants/choose.cpp.
#include "device.hpp"

#include <isotope/mutants/chosen.hpp>

namespace isotope::vulkan_test {
namespace {

class constant_of_mutants final : public ::testing::Environment {
  void SetUp() override {
    constexpr std::uint32_t mutant = 1000;  // the constant of mutant.glsl
    constants_of_all().push_back({mutant, std::uint32_t(mutants::number)});
  }
};
const auto* const added = ::testing::AddGlobalTestEnvironment(new constant_of_mutants);

}  // namespace
}  // namespace isotope::vulkan_test
