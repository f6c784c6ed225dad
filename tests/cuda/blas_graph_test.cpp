/// Products of cuBLASLt in graphs and sessions, on an emulated library.
#include "emulated_blas.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

namespace isotope::cuda {
namespace blas_graph_test {

using namespace cuda_blas_test;
struct cuda_blas_graph : cuda_blas_fixture {};

TEST_F(cuda_blas_graph, a_graph_takes_the_kernels_of_a_captured_product_as_its_own_nodes) {
  const auto& emulator = cuda_test::emulator();
  const opened on(o);
  small_product x(on);
  dispatch first, second;
  first.product = x.p;
  second.product = x.p;
  second.product.beta = 1;  // adds the product again
  step_graph g(on.c);
  const auto kernels = emulator.calls("cuGraphAddKernelNode"), children = emulator.calls("cuGraphAddChildGraphNode"),
             streams = emulator.live().streams;
  auto built = g.build(*on.functions, {first, second}, {{}, {0}});
  ASSERT_TRUE(built.ok()) << built.error().line();
  EXPECT_EQ(emulator.calls("cuGraphAddKernelNode"), kernels + 2);
  EXPECT_EQ(emulator.calls("cuGraphAddChildGraphNode"), children);
  EXPECT_EQ(emulator.live().graphs, 0);
  EXPECT_EQ(emulator.live().streams, streams);
  for (int i = 0; i < 3; ++i) {
    const auto value = on.c->submit(g.handle());
    ASSERT_TRUE(value.ok() && on.c->wait(*value).ok());
    auto want = product;
    for (float& y : want) y *= 2;
    EXPECT_EQ(x.result(), want);
  }
}
TEST_F(cuda_blas_graph, what_the_driver_refuses_while_a_product_is_captured_leaves_nothing_behind) {
  const opened on(o);
  small_product x(on);
  dispatch d;
  d.product = x.p;
  ASSERT_TRUE(on->choose(d.product).ok());
  const auto& emulator = cuda_test::emulator();
  const auto streams = emulator.live().streams;
  for (const char* entry : {"cuStreamCreate", "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphKernelNodeGetParams",
                            "cuGraphAddKernelNode", "cuGraphKernelNodeCopyAttributes", "cuLaunchKernelEx"}) {
    emulator.set_fault(entry, 2);
    step_graph g(on.c);
    EXPECT_FALSE(g.build(*on.functions, {d}, {{}}).ok()) << entry;
    EXPECT_EQ(emulator.live().streams, streams) << entry;
    if (entry != std::string_view("cuStreamEndCapture")) { EXPECT_EQ(emulator.live().graphs, 0) << entry; }
  }
}
TEST_F(cuda_blas_graph, the_digest_of_choices_is_that_of_device_library_products_and_algorithms) {
  const auto digest = [&](std::vector<std::int64_t> strides) {
    const opened on(o);
    std::vector<library_product> all;
    std::vector<small_product> kept;
    for (const auto wide : strides) {
      small_product x(on, dtype::f32, wide);
      EXPECT_TRUE(on->choose(x.p).ok());
      all.push_back(x.p);
    }
    return on->digest_of(all);
  };
  EXPECT_EQ(digest({}), "");
  const std::string one = digest({0});
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(digest({0, 0}), one);
  EXPECT_EQ(digest({0, 1}), digest({1, 0}));
  EXPECT_NE(digest({0, 1}), one);
  blas->set_algorithms({{3, 1}});
  EXPECT_NE(digest({0}), one);
  blas->reset();
  blas->set_version(130100);
  EXPECT_NE(digest({0}), one);
  blas->reset();
  cuda_test::emulator().set_version(13010);
  EXPECT_EQ(digest({0}), one) << "another driver runs the same algorithms";
}

struct one_product {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return matmul(s.input("x", {16, 32}), s.input("y", {32, 16})); }
};
struct no_product {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return square(s.input("x", {16, 32})); }
};
TEST_F(cuda_blas_graph, a_session_knows_the_digest_of_what_its_plans_run_and_tells_of_the_file) {
  using bf16 = target<backend::cuda, precision::bf16, kernels::native>;
  const folder f;
  o.cache = f.file(), o.autotune = tuning::measure;
  const auto digest = [&](auto model, std::size_t told) {
    const auto d = device<bf16>::open(o);
    EXPECT_TRUE(d.ok());
    auto s = d->load(*plan_inference<bf16>(model));
    EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
    EXPECT_EQ(s->queue().messages().size(), told);
    const std::string before = s->algorithms();
    s->run({}, phase_always);
    EXPECT_TRUE(s->status().ok()) << s->status().error().line();
    EXPECT_EQ(s->algorithms(), before);
    return before;
  };
  EXPECT_EQ(digest(no_product{}, 0), "");
  const std::string chosen = digest(one_product{}, 0);
  EXPECT_NE(chosen, "");
  blas->set_algorithms({{1, 9}, {2, 9}, {3, 1}});
  EXPECT_EQ(digest(one_product{}, 0), chosen) << "the file keeps it";
  std::ofstream(f.file()) << "another file\n";
  EXPECT_NE(digest(one_product{}, 1), chosen) << "chosen again";
  EXPECT_EQ(digest(one_product{}, 0), digest(one_product{}, 0));
}

}  // namespace blas_graph_test
}  // namespace isotope::cuda
