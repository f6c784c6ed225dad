// labels: alone
// Emitted modules: valid, equal to the interpreter bit for bit, and the same from the compiler and at run time.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <isotope/backend/vulkan.hpp>
#include <isotope/core/philox.hpp>
#include <isotope/isotope.hpp>

#include "../io/scratch_folder.hpp"
#include "run_body.hpp"

namespace isotope::vulkan_test {
namespace spirv_test {

using vulkan::body_form;

int operands_of(const op_info& op) {
  if (&op == &info<op::select> || &op == &info<op::div_grad>) return 3;
  for (const op_info* two : {&info<op::add>, &info<op::sub>, &info<op::mul>, &info<op::div>, &info<op::less>, &info<op::equal>})
    if (&op == two) return 2;
  return op.name.ends_with("_grad") ? 2 : 1;
}

/// A step of an element-wise body: operands that broadcast, several formats, some results stored.
struct sample {
  std::vector<stored> in, out;
  std::vector<micro_op> body;
  std::uint8_t accumulate = 0;

  body_form form() const {
    std::vector<vulkan::view> ins, outs;
    for (const auto& t : in) ins.push_back({256 + std::uint64_t(t.shift), std::int64_t(t.bytes.size()), t.dims, t.strides, t.type});
    for (const auto& t : out) outs.push_back({256 + std::uint64_t(t.shift), std::int64_t(t.bytes.size()), t.dims, t.strides, t.type});
    return vulkan::form_of<vulkan::view>(ins, outs, body, accumulate);
  }
};

/// Numbers of all magnitudes, with zeros, infinities, NaN and subnormal ones; booleans of 0 and 1.
void fill(stored& t, std::uint64_t seed) {
  const auto n = std::int64_t(t.bytes.size()) / size_of(t.type);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto w = philox(seed, std::uint64_t(i), 0, 0);
    const float some[] = {0.0f,
                          -0.0f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          1e-40f,
                          -1e-40f,
                          1.0f,
                          -1.0f,
                          3e38f,
                          65504.0f,
                          6e-8f,
                          -3e-6f};
    const float x = w[1] % 8 == 0   ? some[w[2] % std::size(some)]
                    : w[1] % 8 == 1 ? std::bit_cast<float>(w[0])
                                    : 8 * float(unit_interval(w[0])) - 4;
    std::byte* to = t.bytes.data() + i * size_of(t.type);
    const auto put = [&](auto y) { std::memcpy(to, &y, sizeof y); };
    if (t.type == dtype::f32) put(x);
    else if (t.type == dtype::bf16) put(bfloat16(x));
    else if (t.type == dtype::f16) put(float16(x));
    else put(std::uint8_t(w[0] & 1));
  }
}

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : seed_(seed) {}
  int below(int n) { return int(philox(seed_, next_++, 1, 0)[0] % std::uint32_t(n)); }

 private:
  std::uint64_t seed_, next_ = 0;
};

sample random_sample(std::uint64_t seed) {
  random_numbers r(seed);
  const dtype floating[] = {dtype::f32, dtype::bf16, dtype::f16};
  sample s;
  shape dims;
  const int rank = 1 + r.below(4), inner[] = {1, 4, 8, 12, 5, 7};
  for (int i = 0; i + 1 < rank; ++i) dims.push(1 + r.below(4));
  dims.push(inner[r.below(6)]);
  const int inputs = 1 + r.below(max_inputs);
  for (int k = 0; k < inputs; ++k) {
    shape d;
    for (int i = r.below(3) == 0 ? r.below(rank) : 0; i < rank; ++i) d.push(r.below(3) == 0 ? 1 : dims[i]);
    stored t = dense(d, k == 0 ? dtype::boolean : floating[r.below(3)]);
    if (r.below(4) == 0 && d.rank == 2) {  // columns in memory order, with a gap
      t.strides = {1, d[0] + 3};
      t.bytes.resize(std::size_t((d[1] * (d[0] + 3)) * size_of(t.type)));
    }
    if (r.below(4) == 0) t.shift = 4 * size_of(t.type) / 2;
    fill(t, seed + std::uint64_t(k));
    s.in.push_back(std::move(t));
  }
  const int count = 1 + r.below(r.below(3) == 0 ? max_micro_ops : 4);
  std::vector<dtype> types;  // of the operands, then of the results
  for (int j = 0; j < count; ++j) {
    const op_info& op = *vulkan::instructions[std::size_t(r.below(int(vulkan::instructions.size())))];
    const bool compares = &op == &info<op::less> || &op == &info<op::equal>;
    micro_op m = instruction(op, {}, compares ? dtype::boolean : floating[r.below(3)], -1, 0.1 * r.below(30) - 1.5);
    for (int k = 0; k < operands_of(op); ++k) {
      const int of = r.below(inputs + j);
      m.arg[std::size_t(k)] = std::int8_t(of < inputs ? of : max_inputs + of - inputs);
    }
    const bool last = j + 1 == count;
    if (s.out.size() < std::size_t(max_outputs) && (last || r.below(3) == 0)) {
      m.store = std::int8_t(s.out.size());
      stored t = dense(dims, m.type);
      fill(t, seed + 100 + std::uint64_t(j));
      if (m.type != dtype::boolean && r.below(4) == 0) s.accumulate = std::uint8_t(s.accumulate | (1u << s.out.size()));
      s.out.push_back(std::move(t));
    }
    s.body.push_back(m);
  }
  if (s.out.empty()) {
    s.body.back().store = 0;
    s.out.push_back(dense(dims, s.body.back().type));
  }
  return s;
}

/// One instruction on dense operands.
sample single(const op_info& op, dtype t, std::int64_t inner) {
  sample s;
  for (int k = 0; k < operands_of(op); ++k) {
    s.in.push_back(dense({6, inner}, &op == &info<op::select> && k == 0 ? dtype::boolean : t));
    fill(s.in.back(), std::uint64_t(7 + k));
  }
  const bool compares = &op == &info<op::less> || &op == &info<op::equal>;
  const auto type = compares ? dtype::boolean : t;
  s.body.push_back(instruction(op, {0, 1, 2}, type, 0, 0.3));
  for (std::size_t k = s.in.size(); k < 3; ++k) s.body[0].arg[k] = -1;
  s.out.push_back(dense({6, inner}, type));
  return s;
}

/// The same numbers bit for bit; one NaN is as good as another, for which operand's a sum of two keeps is the device's choice.
testing::AssertionResult same_bits(const stored& a, const stored& b) {
  const auto n = std::int64_t(a.bytes.size()) / size_of(a.type);
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t x = 0, y = 0;
    std::memcpy(&x, a.bytes.data() + i * size_of(a.type), std::size_t(size_of(a.type)));
    std::memcpy(&y, b.bytes.data() + i * size_of(a.type), std::size_t(size_of(a.type)));
    const std::uint32_t infinite = a.type == dtype::f32    ? 0x7f800000u
                                   : a.type == dtype::bf16 ? 0x7f80u
                                   : a.type == dtype::f16  ? 0x7c00u
                                                           : 255u;
    const std::uint32_t magnitude = a.type == dtype::f32 ? 0x7fffffffu : 0x7fffu;
    if (x == y || ((x & magnitude) > infinite && (y & magnitude) > infinite)) continue;
    return testing::AssertionFailure() << name_of(a.type) << " element " << i << ": bits " << std::hex << x << " and " << y;
  }
  return testing::AssertionSuccess();
}
std::string names(const sample& s) {
  std::string text;
  for (const auto& m : s.body) text += std::string(m.op->name) + ' ';
  return text;
}
void expect_interpreted(const sample& s) {
  const auto a = run_body<emitted>(s.in, s.out, s.body, s.accumulate), b = run_body<interpreted>(s.in, s.out, s.body, s.accumulate);
  for (std::size_t k = 0; k < s.out.size(); ++k) EXPECT_TRUE(same_bits(a[k], b[k])) << "output " << k << " of " << names(s);
}

TEST(emitted_modules, give_the_bits_of_the_interpreter_for_every_op_and_format_by_fours_and_alone) {
  for (const op_info* op : vulkan::instructions)
    for (const dtype t : {dtype::f32, dtype::bf16, dtype::f16})
      for (const std::int64_t inner : {256, 255})
        if (inner == 256 || t == dtype::bf16) expect_interpreted(single(*op, t, inner));
}
TEST(emitted_modules, give_the_bits_of_the_interpreter_for_random_bodies) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    expect_interpreted(random_sample(seed));
  }
}
TEST(same_bits_itself, tells_a_bit_a_zero_and_a_nan_apart) {
  const stored a = row({1, 0, std::nanf("1")});
  EXPECT_TRUE(same_bits(a, row({1, 0, -std::nanf("2")})));
  EXPECT_FALSE(same_bits(a, row({std::nextafter(1.0f, 2.0f), 0, std::nanf("")})));
  EXPECT_FALSE(same_bits(a, row({1, -0.0f, std::nanf("")})));
  EXPECT_FALSE(same_bits(a, row({1, 0, 5})));
}

/// Whether spirv-val takes the module; its words if not.
testing::AssertionResult valid(const scratch_folder& folder, const std::vector<std::uint32_t>& words) {
  const std::string file = folder.at("module.spv"), log = folder.at("log");
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(words.data()), std::streamsize(4 * words.size()));
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(log.c_str(), "w", stderr) == nullptr || std::freopen(log.c_str(), "a", stdout) == nullptr) ::_exit(126);
    ::execl(ISOTOPE_SPIRV_VAL, ISOTOPE_SPIRV_VAL, "--target-env", "vulkan1.3", "--scalar-block-layout", file.c_str(),
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return testing::AssertionFailure() << "cannot start " << ISOTOPE_SPIRV_VAL;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << folder.read("log");
}
class validated_modules : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::string_view(ISOTOPE_SPIRV_VAL).starts_with('/')) GTEST_SKIP() << "no spirv-val: apt-get install spirv-tools";
  }
};
TEST_F(validated_modules, of_every_op_and_format_pass_spirv_val) {
  const scratch_folder folder;
  for (const op_info* op : vulkan::instructions)
    for (const dtype t : {dtype::f32, dtype::bf16, dtype::f16})
      for (const std::int64_t inner : {256, 255})
        EXPECT_TRUE(valid(folder, vulkan::spirv::emit_body(single(*op, t, inner).form()))) << op->name << ' ' << name_of(t) << ' ' << inner;
}
TEST_F(validated_modules, of_random_bodies_pass_spirv_val) {
  const scratch_folder folder;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) EXPECT_TRUE(valid(folder, vulkan::spirv::emit_body(random_sample(seed).form()))) << seed;
}
TEST_F(validated_modules, are_told_from_broken_ones) {
  const scratch_folder folder;
  auto words = vulkan::spirv::emit_body(random_sample(1).form());
  words.pop_back();
  EXPECT_FALSE(valid(folder, words));
}

/// A plan whose body is emitted by the compiler.
struct gated {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    return gelu(s.input("x", {24, 16}) + s.param("b", {16})) * s.param("s", {16});
  }
};
using here = target<backend::vulkan, precision::bf16, kernels::portable>;
using program = inference<gated, here>;

constexpr body_form first_body(plan_view p) {
  for (const step& s : p.steps)
    if (s.op == &info<op::elementwise>)
      return vulkan::form_of<operand>(p.operands.subspan(std::size_t(s.operands), s.inputs),
                                      p.operands.subspan(std::size_t(s.operands + s.inputs), s.outputs),
                                      p.micro_ops.subspan(std::size_t(s.body), s.body_size), s.accumulate);
  return {};
}
constexpr auto module_size = vulkan::spirv::emit_body(first_body(program::view())).size();
constexpr auto static_words = [] {
  std::array<std::uint32_t, module_size> words{};
  const auto all = vulkan::spirv::emit_body(first_body(program::view()));
  for (std::size_t i = 0; i < module_size; ++i) words[i] = all[i];
  return words;
}();
static_assert(first_body(program::view()).instructions == 3 && first_body(program::view()).wide && static_words[0] == 0x07230203u);

TEST(static_modules, have_the_words_that_are_emitted_at_run_time) {
  const auto words = vulkan::spirv::emit_body(first_body(program::view()));
  EXPECT_TRUE(std::equal(words.begin(), words.end(), static_words.begin(), static_words.end()));
}

struct softplus : op::unary_elementwise {
  static constexpr std::string_view name = "softplus";
};
TEST(own_instructions, join_a_body_by_a_formula_of_numbers) {
  using namespace vulkan::spirv;
  constexpr custom_instruction custom{&info<softplus>, [](const number& x, const number&, const number&, const number&) {
                                        const number rest = formulas::log_accurate(1.0f + formulas::exp_accurate(-formulas::magnitude(x)));
                                        return choose(x > number(0.0f), x, number(0.0f)) + rest;
                                      }};
  sample s = single(info<op::relu>, dtype::f32, 256);
  const auto without = emit_body(s.form());
  s.body[0].op = &info<softplus>;
  const auto words = emit_body(s.form(), std::span(&custom, 1));
  EXPECT_GT(words.size(), without.size() + 300) << "an exponential and a logarithm";
  if (std::string_view(ISOTOPE_SPIRV_VAL).starts_with('/')) { EXPECT_TRUE(valid(scratch_folder(), words)); }
}

struct described {
  std::uint64_t at = 0;
  shape dims;
  extents strides{};
  dtype type = dtype::f32;
};
constexpr body_form form_over(described x, described y, shape out) {
  const described in[] = {x, y}, result{0, out, dense_strides(out), dtype::f32};
  const micro_op add{&info<op::add>, {0, 1, -1}, 0, dtype::f32, 0};
  return vulkan::form_of<described>(in, std::span<const described>(&result, 1), std::span<const micro_op>(&add, 1), 0);
}
// Axes merge where all operands allow it; four elements at a time need an inner axis of a multiple of four and aligned operands.
constexpr shape cube{2, 3, 8};
constexpr body_form same_order = form_over({0, cube, dense_strides(cube)}, {0, cube, dense_strides(cube)}, cube);
static_assert(same_order.rank == 1 && same_order.dims[0] == 48 && same_order.wide && same_order.quads[1] == vulkan::quad::contiguous);
constexpr body_form with_row = form_over({0, cube, dense_strides(cube)}, {0, {8}, {1}}, cube);
static_assert(with_row.rank == 2 && with_row.dims[0] == 8 && with_row.dims[1] == 6 && with_row.strides[1][1] == 0);
constexpr body_form with_column = form_over({8, cube, dense_strides(cube)}, {0, {3, 1}, {1, 1}}, cube);
static_assert(with_column.rank == 3 && with_column.quads[1] == vulkan::quad::broadcast && with_column.quads[0] == vulkan::quad::strided);
constexpr body_form odd = form_over({0, {5}, {1}}, {0, {1}, {1}}, {5});
static_assert(!odd.wide && odd.rank == 1 && odd.strides[1][0] == 0);

}  // namespace spirv_test
}  // namespace isotope::vulkan_test
