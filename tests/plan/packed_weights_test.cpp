/// With pre-packed copies of weights, steps give the same bits as without, regardless of what writes the weights.
#include "../cpu/kernels/imitated_unit.hpp"
#include "memory_checker.hpp"
#include "outcome.hpp"

#include <isotope/kernels/cpu/native/matmul.hpp>
#include <isotope/model/all.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cmath>

namespace packed_weights_test {
using namespace plan_test;
using isotope::packing;
using isotope::tensor_kind;
using isotope::training_options;
using isotope::update_policy;
using isotope::value_kind;

/// The matmul kernel for a matrix unit, with an emulated unit that runs on any processor with AVX-512.
template <class Op, class P, class Set> struct imitating;
template <class P>
struct imitating<isotope::op::matmul, P, isotope::kernels::native> : isotope::cpu::native::matmul<P, isotope_test::imitated_unit<>> {};

using bf16 = isotope::precision::bf16;
using with_unit = isotope::target<isotope::backend::cpu, bf16, isotope::kernels::native,
                                  boost::mp11::mp_list<imitating<isotope::op::matmul, bf16, isotope::kernels::native>>>;

constexpr isotope::model::gpt small{.layers = 2, .heads = 2, .width = 48, .vocab = 70, .context = 12, .dropout = 0.0};
constexpr isotope::model::gpt_loss_of gpt{small, 2, 12};

isotope::param_group frozen_in_part(std::string_view path, const isotope::shape&, isotope::param_group given) {
  if (path == "h.1.mlp.c_fc.weight") given.trainable = false;
  if (path.starts_with("h.0.attn")) given.rate_scale = 0.5;
  return given;
}
training_options packed(bool packs, update_policy update = update_policy::after_backward) {
  training_options o{.update = update, .group = &frozen_in_part, .pack = packs ? packing::always : packing::never};
  if (update == update_policy::within_backward) o.clip = isotope::clipping::none;
  return o;
}
bool reads_packed(const isotope::step& s) {
  return s.op == &isotope::info<isotope::op::matmul> && isotope::op::matmul::constants::of(s.attr).packed;
}
template <class Op> bool keeps_packed(const isotope::step& s) {
  return s.op == &isotope::info<Op> && Op::constants::of(s.attr).columns != 0;
}
std::int64_t packed_bytes(const isotope::plan_view& p) { return p.totals.region[std::size_t(value_kind::packed)]; }

class packed_weights : public testing::Test {
  void SetUp() override {
    if (!isotope::cpu::native::matmul<bf16, isotope_test::imitated_unit<>>::tiles) GTEST_SKIP() << "needs a build for AVX-512";
  }
};

TEST_F(packed_weights, are_those_that_products_read_across_their_rows) {
  const auto p = planned<with_unit>(gpt, packed(true));
  int products = 0, updates = 0;
  for (const auto& s : p.steps) {
    products += reads_packed(s);
    updates += keeps_packed<isotope::op::adamw>(s);
  }
  EXPECT_EQ(products, 9);  // four in each block, and the head
  EXPECT_EQ(updates, 8);   // one weight is frozen
  for (const auto& s : p.slots) {
    const bool matrix = s.dims.rank == 2 && s.path.view() != "wpe.weight";
    EXPECT_EQ(s.packed >= 0, matrix) << s.path.view();
  }
  EXPECT_EQ(packed_bytes(planned<with_unit>(gpt, packed(false))), 0);
  EXPECT_EQ(packed_bytes(planned<with_unit>(gpt)), 0);
  EXPECT_EQ(packed_bytes(planned<with_unit>(gpt, {.accumulate = true})), packed_bytes(p));
  EXPECT_EQ(packed_bytes(planned<with_unit>(gpt, {.optimizer = isotope::optimizer_kind::sgd, .pack = packing::always})), 0);
  EXPECT_EQ(packed_bytes(planned<portable_bf16>(gpt, packed(true))), 0);
}

TEST_F(packed_weights, leave_the_bits_of_steps_without_them) {
  for (const auto update : {update_policy::after_backward, update_policy::within_backward}) {
    auto with = loaded<with_unit>(planned<with_unit>(gpt, packed(true, update))),
         without = loaded<with_unit>(planned<with_unit>(gpt, packed(false, update)));
    EXPECT_GT(packed_bytes(with.plan()), 0);
    auto x = scalars();
    for (int i = 1; i <= 3; ++i) {
      x.optimizer_step = i;
      EXPECT_EQ("", difference(step(with, x), step(without, x))) << i;
    }
    for (std::size_t k = 0; k < with.parameters().size(); ++k) {  // weights that the host writes
      std::vector<float> w(std::size_t(with.parameters()[k].dims.count()));
      ASSERT_TRUE(with.read(tensor_kind::parameter, k, w).ok());
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = w[i] * 0.5f + float(i % 7) * 0x1p-9f;
      ASSERT_TRUE(with.write(tensor_kind::parameter, k, w).ok() && without.write(tensor_kind::parameter, k, w).ok());
    }
    for (int i = 4; i <= 5; ++i) {
      x.optimizer_step = i;
      EXPECT_EQ("", difference(step(with, x), step(without, x))) << i;
    }
  }
}

/// The default options.
TEST_F(packed_weights, leave_the_bits_of_steps_of_several_micro_batches) {
  const auto options = [](packing pack) { return training_options{.group = &frozen_in_part, .accumulate = true, .pack = pack}; };
  auto with = loaded<with_unit>(planned<with_unit>(gpt, options(packing::amortized))),
       without = loaded<with_unit>(planned<with_unit>(gpt, options(packing::never)));
  EXPECT_GT(packed_bytes(with.plan()), 0);
  for (int i = 1; i <= 3; ++i) {
    auto x = scalars();
    x.optimizer_step = i;
    x.gradient_scale = 0.5f;
    const auto run = [&](auto& s) {
      EXPECT_FALSE(std::isnan(s.run(x, isotope::phase_first).loss));
      return s.run(x, isotope::phase_later | isotope::phase_last);
    };
    const auto a = run(with), b = run(without);
    EXPECT_EQ(a.loss, b.loss) << i;
    EXPECT_EQ(a.grad_norm, b.grad_norm) << i;
    for (const auto what : {tensor_kind::gradient, tensor_kind::parameter, tensor_kind::moment1, tensor_kind::moment2}) {
      const auto given = read_all(with, what), wanted = read_all(without, what);
      ASSERT_FALSE(wanted.empty());
      for (const auto& [path, v] : wanted) EXPECT_TRUE(same_bits(v, given.at(path))) << path << ' ' << i;
    }
  }
}

TEST_F(packed_weights, leave_the_bits_of_steps_of_muon) {
  const auto options = [](packing pack) {
    return training_options{.optimizer = isotope::optimizer_kind::muon, .group = &frozen_in_part, .pack = pack};
  };
  auto with = loaded<with_unit>(planned<with_unit>(gpt, options(packing::always))),
       without = loaded<with_unit>(planned<with_unit>(gpt, options(packing::never)));
  int updates = 0;
  for (const auto& s : with.plan().steps) updates += keeps_packed<isotope::op::muon>(s);
  EXPECT_EQ(updates, 7);
  auto x = scalars();
  x.momentum = 0.95f;
  for (int i = 1; i <= 4; ++i) {
    x.optimizer_step = i;
    EXPECT_EQ("", difference(step(with, x), step(without, x))) << i;
  }
}

TEST_F(packed_weights, are_not_overwritten_before_their_last_reader) {
  for (const auto update : {update_policy::after_backward, update_policy::within_backward}) {
    const auto g = isotope::plan_detail::trace_training<with_unit>(gpt, packed(true, update));
    const auto p = isotope::freeze(g, isotope::plan_detail::lay_out_for<with_unit>(g));
    EXPECT_EQ("", check_memory(g, p, isotope::kernel_table<with_unit>).fault);
    for (std::size_t i = 0; i < p.steps.size(); ++i)  // no matmul reads a copy that was already updated for the next step
      for (std::size_t k = i + 1; k < p.steps.size(); ++k) {
        const auto &a = p.steps[i], &b = p.steps[k];
        if (!keeps_packed<isotope::op::adamw>(a) || !reads_packed(b)) continue;
        EXPECT_NE(p.operands[std::size_t(a.operands + 4)].at, p.operands[std::size_t(b.operands + 1)].at) << i << ' ' << k;
      }
  }
}
/// Embeddings in f32 whose plan is not batch invariant make products of many rows of pieces of the weights, which lie beside the weights in f32.
TEST_F(packed_weights, of_f32_have_pieces_where_bits_may_depend_on_the_number_of_rows) {
  using f32 = isotope::precision::f32;
  using with_pieces = isotope::target<isotope::backend::cpu, f32, isotope::kernels::native,
                                      boost::mp11::mp_list<imitating<isotope::op::matmul, f32, isotope::kernels::native>>>;
  constexpr isotope::model::bert size{1, 2, 96, 200, 50, 40};
  constexpr int tokens = 130, texts = 13;
  std::int64_t bytes[2] = {};
  const auto embedded = [&](bool batch_invariant) {
    auto plan = isotope::plan_inference<with_pieces>(isotope::model::bert_embeddings_of{size, tokens, texts}, 0, true, false, nullptr,
                                                     nullptr, batch_invariant, false, {}, true);
    EXPECT_TRUE(plan.ok());
    bytes[batch_invariant] = packed_bytes(*plan);
    auto device = opened<with_pieces>(2);
    EXPECT_TRUE(device.ok());
    auto session = device->load(*std::move(plan));
    EXPECT_TRUE(session.ok());
    session->initialize(7);
    std::vector<std::int32_t> ids, position, starts{0};
    for (int i = 0; i < tokens; ++i) ids.push_back(7 * i % size.vocab), position.push_back(i % 10);
    for (int i = 0; i < texts; ++i) starts.push_back(10 * (i + 1));
    EXPECT_TRUE(session->template set<std::int32_t>("tokens", ids).ok() && session->template set<std::int32_t>("position", position).ok() &&
                session->template set<std::int32_t>("starts", starts).ok());
    session->run({}, isotope::phase_always);
    const auto y = session->template output<float>("output");
    return std::vector<float>(y->begin(), y->end());
  };
  const auto by_pieces = embedded(false), by_vectors = embedded(true);
  EXPECT_GT(bytes[false], 2 * bytes[true]);
  EXPECT_NE(by_pieces, by_vectors);
  ASSERT_EQ(by_pieces.size(), by_vectors.size());
  for (std::size_t i = 0; i < by_pieces.size(); ++i) ASSERT_NEAR(by_pieces[i], by_vectors[i], 2e-5) << i;
}
}  // namespace packed_weights_test
