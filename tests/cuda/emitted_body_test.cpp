// Emitted bodies must be understood, give the same numbers as the interpreter, and leave everything else in memory alone.
#include <isotope/kernels/cuda/body/body.hpp>
#include <isotope/kernels/cuda/body/emitted_body.hpp>
#include <isotope/kernels/cuda/reference/erf.hpp>
#include <isotope/kernels/cuda/reference/floor.hpp>
#include <isotope/kernels/cuda/reference/maximum.hpp>
#include <isotope/kernels/cuda/reference/pow.hpp>
#include <isotope/kernels/cuda/reference/rsqrt.hpp>
#include <isotope/kernels/cuda/reference/sign.hpp>
#include <isotope/kernels/cuda/reference/sine.hpp>
#include <string>

#include "body_samples.hpp"
#include "emulator/run_ptx.hpp"

namespace isotope::cuda_test {
namespace emitted_body_test {

/// Runs the PTX of a sample's body in `threads` threads per block; returns the number of elements that a thread computes.
int run_emitted(sample& s, std::uint32_t threads, std::span<const cuda::ptx::custom_instruction> custom = {}) {
  const auto in = views(s.in), out = views(s.out);
  const auto code = cuda::ptx::emit_body(cuda::form_of<cuda::view>(in, out, s.body, s.accumulate), custom);
  cuda::emitted_arguments a;
  for (std::size_t k = 0; k < in.size(); ++k) a.at[k] = in[k].at;
  for (std::size_t k = 0; k < out.size(); ++k) a.at[max_inputs + k] = out[k].at;
  a.threads = out[0].dims.count() / code.width;
  ptx_program program({code.ptx.data(), code.ptx.size()});
  program.run(&a, std::uint32_t(a.threads / threads + 1), threads);
  EXPECT_EQ(program.error(), "");
  return code.width;
}
void run_interpreted(sample& s) {
  const auto in = views(s.in), out = views(s.out);
  cuda::launch l;
  l.in = in;
  l.out = out;
  l.body = s.body;
  l.accumulate = s.accumulate;
  const auto b = cuda::fused_body(l).arguments();
  for (std::int64_t i = 0; i < out[0].dims.count(); ++i) body_run(b, i);
}
/// Equal bits, or both NaN: processors choose the bits of NaN by rules of their own.
bool same(const stored& a, const stored& b) {
  for (std::int64_t i = 0; i < a.dims.count(); ++i) {
    const float x = load(a.address(), i, a.type), y = load(b.address(), i, b.type);
    if (std::bit_cast<std::uint32_t>(x) != std::bit_cast<std::uint32_t>(y) && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

/// The same contents in memory of its own.
sample copy_of(const sample& s) {
  sample c;
  for (const stored& t : s.in) c.in.push_back(t.copy());
  for (const stored& t : s.out) c.out.push_back(t.copy());
  c.body = s.body;
  c.accumulate = s.accumulate;
  return c;
}
/// Compares emitted code with the interpreter; returns the number of elements that a thread computes.
int compare(sample s, const std::string& name, std::uint32_t threads = 32) {
  sample expected = copy_of(s);
  const int width = run_emitted(s, threads);
  run_interpreted(expected);
  for (std::size_t k = 0; k < s.out.size(); ++k) {
    EXPECT_TRUE(same(s.out[k], expected.out[k])) << "output " << k << " of " << name;
    EXPECT_TRUE(s.out[k].guarded()) << "output " << k << " of " << name;
  }
  return width;
}

TEST(emitted_body, gives_the_numbers_of_the_interpreter_for_random_bodies) {
  int widths[9]{};
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    ++widths[compare(random_sample(seed), "body " + std::to_string(seed), seed % 2 == 0 ? 32 : 7)];
  for (const int w : {1, 4, 8}) EXPECT_GT(widths[w], 20) << "bodies with threads of " << w << " elements";
}

TEST(emitted_body, gives_the_numbers_of_the_interpreter_for_each_op_and_format) {
  random_numbers r(1);
  for (const op_info* op : cuda::instructions)
    for (const dtype t : {dtype::f32, dtype::bf16, dtype::f16}) {
      sample s;
      micro_op m{op, {-1, -1, -1}, 0, compares(*op) ? dtype::boolean : t, 0.75};
      for (int k = 0; k < operands_of(*op); ++k) {
        s.in.emplace_back(shape{512}, t).fill(r);
        m.arg[std::size_t(k)] = std::int8_t(k);
      }
      s.out.emplace_back(shape{512}, m.type).fill(r);
      s.body = {m};
      EXPECT_EQ(compare(std::move(s), std::string(op->name)), size_of(t) == 2 ? 8 : 4);
    }
}

template <class Op> using formula_of = cuda::kernel<Op, precision::f32, kernels::reference>;
/// Compares the emitted code of an op that no interpreter knows with its formula on the host.
template <class Op, int Operands, class F> void compare_formula(F of) {
  const cuda::ptx::custom_instruction own{&info<Op>, &formula_of<Op>::formula};
  random_numbers r(4);
  for (const dtype t : {dtype::f32, dtype::bf16}) {
    sample s;
    micro_op m{&info<Op>, {-1, -1, -1}, 0, t};
    for (int k = 0; k < Operands; ++k) {
      s.in.emplace_back(shape{2048}, t).fill(r);
      m.arg[std::size_t(k)] = std::int8_t(k);
    }
    s.out.emplace_back(shape{2048}, t).fill(r);
    s.body = {m};
    run_emitted(s, 32, std::span(&own, 1));
    for (std::int64_t i = 0; i < 2048; ++i) {
      const float a = load(s.in[0].address(), i, t), b = load(s.in[Operands - 1].address(), i, t), y = load(s.out[0].address(), i, t);
      const float formula = of(on_host::number(a), on_host::number(b)).value,
                  expected = t == dtype::f32 ? formula : float(bfloat16(formula));
      ASSERT_TRUE((y == expected && std::signbit(y) == std::signbit(expected)) || (std::isnan(y) && std::isnan(expected)))
          << info<Op>.name << ' ' << a << ' ' << b << " is " << y << ", not " << expected;
    }
  }
}
TEST(emitted_body, gives_the_numbers_of_formulas_that_no_interpreter_knows) {
  using on_host::number;
  compare_formula<op::erf, 1>([](number a, number) { return on_host::erf_accurate(a); });
  compare_formula<op::rsqrt, 1>([](number a, number) { return on_host::inverse_root(a); });
  compare_formula<op::sin, 1>([](number a, number) { return on_host::sin_accurate(a); });
  compare_formula<op::cos, 1>([](number a, number) { return on_host::cos_accurate(a); });
  compare_formula<op::sign, 1>([](number a, number) { return on_host::sign_or_itself(a); });
  compare_formula<op::floor, 1>([](number a, number) { return on_host::largest_whole(a); });
  compare_formula<op::maximum, 2>([](number a, number b) { return on_host::larger_of(a, b); });
  compare_formula<op::minimum, 2>([](number a, number b) { return on_host::smaller_of(a, b); });
  compare_formula<op::pow, 2>([](number a, number b) { return on_host::pow_accurate(a, b); });
}

TEST(emitted_body, reads_operands_before_it_overwrites_them) {
  random_numbers r(2);
  sample s;
  s.in.emplace_back(shape{64}, dtype::bf16).fill(r);
  s.in.emplace_back(shape{64}, dtype::bf16).fill(r);
  s.out.emplace_back(shape{64}, dtype::bf16).fill(r);
  s.out.emplace_back(shape{64}, dtype::bf16).fill(r);
  s.body = {{&info<op::add>, {0, 1, -1}, 0, dtype::bf16}, {&info<op::sub>, {0, 1, -1}, 1, dtype::bf16}};
  sample expected = copy_of(s);
  run_interpreted(expected);
  const auto in = views(s.in);
  const std::vector<cuda::view> swapped{in[1], in[0]};
  const auto code = cuda::ptx::emit_body(cuda::form_of<cuda::view>(in, swapped, s.body, 0));
  const cuda::emitted_arguments a{{in[0].at, in[1].at, 0, 0, 0, 0, 0, 0, in[1].at, in[0].at}, 64 / code.width};
  ptx_program({code.ptx.data(), code.ptx.size()}).run(&a, 1, 32);
  EXPECT_TRUE(same(s.in[1], expected.out[0]));
  EXPECT_TRUE(same(s.in[0], expected.out[1]));
}

TEST(emitted_body, is_the_same_code_for_flat_bodies_of_any_size) {
  const auto code = [](std::int64_t n) {
    const std::vector<cuda::view> x{{256, 2 * n, {n}, {1}, dtype::bf16}};
    const micro_op m{&info<op::exp>, {0, -1, -1}, 0, dtype::bf16};
    return cuda::ptx::emit_body(cuda::form_of<cuda::view>(x, x, std::span(&m, 1), 0)).ptx;
  };
  EXPECT_EQ(code(8), code(80000));
  EXPECT_EQ(code(8), code(std::int64_t(1) << 33));
  EXPECT_NE(code(8), code(9));
}

// The addresses are such that the only thread that runs reads and writes small buffers.
TEST(emitted_body, finds_elements_of_tensors_with_more_than_four_billion) {
  const std::int64_t rows = std::int64_t(1) << 21, cols = 4097, row = rows - 3, col = 4090;
  const shape dims{rows, cols};
  alignas(16) float x = 3, bias = 4, y = 0;
  const auto before = [](float& first, std::int64_t elements) {
    return reinterpret_cast<std::uint64_t>(&first) - std::uint64_t(4 * elements);
  };
  const std::vector<cuda::view> in{{before(x, row * cols + col), 4 * rows * cols, dims, {cols, 1}, dtype::f32},
                                   {before(bias, col), 4 * cols, {cols}, {1}, dtype::f32}};
  const std::vector<cuda::view> out{{before(y, row * cols + col), 4 * rows * cols, dims, {cols, 1}, dtype::f32}};
  const micro_op m{&info<op::sub>, {0, 1, -1}, 0, dtype::f32};
  const auto code = cuda::ptx::emit_body(cuda::form_of<cuda::view>(in, out, std::span(&m, 1), 0));
  ASSERT_EQ(code.width, 1);
  const cuda::emitted_arguments a{{in[0].at, in[1].at, 0, 0, 0, 0, 0, 0, out[0].at}, rows * cols};
  ptx_program program({code.ptx.data(), code.ptx.size()});
  const std::int64_t item = row * cols + col;
  program.run_thread(&a, std::uint32_t(item / 256), 256, std::uint32_t(item % 256));
  EXPECT_EQ(program.error(), "");
  EXPECT_EQ(y, -1);
}

struct twice_minus {
  static constexpr std::string_view name = "twice_minus";
  static constexpr void infer(shape_rule&) {}
};

TEST(emitted_body, takes_formulas_of_ops_from_outside_the_library) {
  random_numbers r(3);
  sample s;
  s.in.emplace_back(shape{40}, dtype::f32).fill(r);
  s.out.emplace_back(shape{40}, dtype::f32).fill(r);
  s.body = {{&info<twice_minus>, {0, -1, -1}, 0, dtype::f32, 0.5}};
  using cuda::ptx::number;
  const cuda::ptx::custom_instruction own{&info<twice_minus>, [](const number& x, const number&, const number&, const number& k) {
                                            return 2.0f * cuda::ptx::formulas::exp_accurate(x) - k;
                                          }};
  run_emitted(s, 32, std::span(&own, 1));
  for (std::int64_t i = 0; i < 40; ++i) {
    const float expected = 2 * on_host::exp_accurate(load(s.in[0].address(), i, dtype::f32)).value - 0.5f;
    const float y = load(s.out[0].address(), i, dtype::f32);
    EXPECT_TRUE(y == expected || (std::isnan(y) && std::isnan(expected))) << y << ", not " << expected;
  }
}

TEST(emitted_body, a_wrong_instruction_is_noticed) {
  const std::vector<float> x(4, 1.0f);
  float y[4]{};
  const auto at = [](const float* p) { return reinterpret_cast<std::uint64_t>(p); };
  const std::vector<cuda::view> in{{at(x.data()), 16, {4}, {1}, dtype::f32}}, out{{at(y), 16, {4}, {1}, dtype::f32}};
  const micro_op m{&info<op::add>, {0, 0, -1}, 0, dtype::f32};
  const auto code = cuda::ptx::emit_body(cuda::form_of<cuda::view>(in, out, std::span(&m, 1), 0));
  std::string text(code.ptx.begin(), code.ptx.end());
  text.replace(text.find("add.rn.f32"), 10, "add.rz.f32");
  const cuda::emitted_arguments a{{in[0].at, 0, 0, 0, 0, 0, 0, 0, out[0].at}, 4};
  ptx_program program(text);
  program.run(&a, 1, 4);
  EXPECT_NE(program.error().find("add.rz.f32"), std::string::npos) << program.error();
}

}  // namespace emitted_body_test
}  // namespace isotope::cuda_test
