// A program that uses the installed library: a perceptron learns exclusive or. Exits with 1 if it does not, and with 77 if there is no device.
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace iso = isotope;

constexpr iso::model::mlp size{.inputs = 2, .hidden = 16, .layers = 1, .classes = 2};
using step = iso::training<iso::model::mlp_loss<size, 4>, iso::selected>;

int main() {
  auto device = iso::device<iso::selected>::open();
  if (!device) return std::puts(device.error().line().c_str()), device.error().code == iso::errc::no_device ? 77 : 1;
  auto session = device->load<step>();
  if (!session) return std::puts(session.error().line().c_str()), 1;
  using number = iso::selected::precision::storage;
  auto x = session->input<number>("x");
  auto targets = session->input<std::int32_t>("targets");
  if (!x || !targets) return std::puts("no such input"), 1;
  session->initialize(1);
  for (int i = 0; i < 4; ++i) {
    (*x)[std::size_t(2 * i)] = number(float(i & 1));
    (*x)[std::size_t(2 * i + 1)] = number(float(i >> 1));
    (*targets)[std::size_t(i)] = (i & 1) ^ (i >> 1);
  }
  double loss = 0;
  for (int i = 1; i <= 300; ++i) loss = session->run(iso::step_scalars{.optimizer_step = i, .learning_rate = 3e-2f}).loss;
  std::printf("loss %.4f after 300 steps of %d bytes\n", loss, int(step::bytes));
  // The model memorises four points: the loss is log 2 = 0.69 at the start and nearly 0 at the end, in f32 and bf16.
  return loss < 0.05 ? 0 : 1;
}
