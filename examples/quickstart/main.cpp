/// The smallest training program: a GPT learns this sentence. The README shows it whole.
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <cstdio>
#include <string_view>
#include <vector>
namespace iso = isotope;

constexpr iso::model::gpt tiny{.layers = 2, .heads = 2, .width = 32, .vocab = 256, .context = 32};
using step = iso::training<iso::model::gpt_loss<tiny, 1, 32>, iso::selected>;  // traced, differentiated and planned by the compiler
static_assert(step::bytes <= 4 << 20, "a memory budget is a compile error");

int main() {
  constexpr std::string_view text = "the model is written once; here";
  std::vector<int> tokens(32), targets(32);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) tokens[i + 1] = targets[i] = text[i];
  targets.back() = '.';

  auto device = iso::device<iso::selected>::open();
  if (!device) return std::puts(device.error().line().c_str()), 1;
  auto session = device->load<step>();
  if (!session) return std::puts(session.error().line().c_str()), 1;
  session->initialize(1);
  const iso::batch batch{tokens, targets};
  for (int i = 1; i <= 100; ++i) {
    const auto report = session->step(batch, {.optimizer_step = i, .learning_rate = 1e-2f, .clip_norm = 1});
    if (i % 20 == 0) std::printf("step %3d  loss %.4f\n", i, report.loss);
  }
}
