/// A training loop written by hand: linear regression on tensors that the program owns, op by op, on the device and with the kernels of the build.
#include <isotope/eager/tensor_ops.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <cmath>
#include <cstdio>
#include <vector>
namespace iso = isotope;
using number = iso::selected::precision::storage;

iso::result<double> fit(auto& ops) {
  constexpr int rows = 64, in = 8, out = 4;
  std::vector<number> points, values;  // values = points times weights that the loop has to find
  for (int i = 0; i < rows * in; ++i) points.push_back(number(float(std::sin(i * 1.7))));
  for (int i = 0; i < rows * out; ++i) values.push_back(number(float(points[std::size_t(i / out * in)]) * float(i % out)));
  auto x = ops.upload({rows, in}, points);
  if (!x) return x.error();
  auto y = ops.upload({rows, out}, values);
  if (!y) return y.error();
  auto start = ops.zeros({in, out}, iso::accum_of(iso::selected::precision::type));
  if (!start) return start.error();
  auto weights = ops.adamw(*start);
  if (!weights) return weights.error();

  double last = 0;
  for (int i = 1; i <= 100; ++i) {
    auto error = ops.call([](auto a, auto w, auto b) { return matmul(a, w) - b; }, *x, weights->values(), *y);
    if (!error) return error.error();
    auto gradient = ops.matmul_gradient(*x, weights->values(), *error, 2.0 / (rows * out));  // of the mean of squares
    if (!gradient) return gradient.error();
    auto loss = ops.call([](auto e) { return mean(square(e)); }, *error);
    if (!loss) return loss.error();
    if (auto norm = ops.clip_gradients(gradient->b, 1); !norm) return norm.error();
    ops.scalars.optimizer_step = i;
    ops.scalars.learning_rate = 0.1f;
    if (auto done = ops.adamw_step(*weights, gradient->b); !done) return done.error();
    auto numbers = ops.template download<number>(*loss);
    if (!numbers) return numbers.error();
    last = double(float((*numbers)[0]));
    if (i % 20 == 0) std::printf("step %3d  loss %.6f\n", i, last);
  }
  return last;
}

int main() {
  auto device = iso::device<iso::selected>::open();
  if (!device) return std::puts(device.error().line().c_str()), 1;
  auto ops = iso::ops_on(*device);
  if (!ops) return std::puts(ops.error().line().c_str()), 1;
  const auto loss = fit(*ops);
  if (!loss) return std::puts(loss.error().line().c_str()), 1;
  return *loss < 0.01 ? 0 : 1;
}
