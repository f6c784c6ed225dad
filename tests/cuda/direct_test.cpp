/// GPUs that use each other's memory: the operations on two of them, which are skipped where there are not two, and what is refused anywhere.
#include <isotope/backend/cuda/graph_edges.hpp>
#include <isotope/backend/cuda/step_graph.hpp>
#include <isotope/comm/cuda/direct_group.hpp>
#include <isotope/comm/sanity.hpp>

#include <atomic>
#include <cstring>

#include "../comm/operations.hpp"
#include "device.hpp"
#include "gpu_ranks.hpp"

namespace direct_test {

using namespace isotope::cuda_test;
using isotope::direct_communicator;
using isotope::dtype;
using isotope::errc;
using isotope::reduction;
using isotope::result;
using isotope::cuda_test::device_memory;
namespace cuda = isotope::cuda;
namespace direct = isotope::direct;
using bytes = std::vector<std::byte>;
void failed(const std::string& line) { ADD_FAILURE() << line; }

struct cuda_direct : testing::Test {
  gpu_ranks ranks;
  void SetUp() override {
    auto found = gpu_ranks::open(true);
    if (!found) GTEST_SKIP() << found.error().line();
    ranks = *std::move(found);
  }
};

TEST_F(cuda_direct, operations_on_the_host_give_the_bits_of_the_host) {
  ranks.each_directly(
      2, 60,
      [](direct_communicator& c, const gpu&) {
        comm_test::expect_ok(isotope::check_group(c), "the check of the group");
        std::uint64_t number = 0;
        for (const int elems : {0, 1, 7, 64, 1031, 10007})
          for (const dtype t : comm_test::all_types)
            for (int kind = 0; kind < comm_test::kinds; ++kind)
              for (const reduction how : {reduction::sum, reduction::max}) {
                if (how == reduction::max && kind != 0 && kind != 3) continue;
                comm_test::run_operation(c, ++number, kind, t, how, std::size_t(elems));
              }
      },
      failed);
}
TEST_F(cuda_direct, operations_are_captured_as_kernels_and_replayed_in_place) {
  ranks.each_directly(
      2, 60,
      [](direct_communicator& c, const gpu& device) {
        constexpr std::size_t elems = 30'000;
        const auto& f = device.f();
        for (const dtype t : {dtype::f32, dtype::bf16}) {
          const auto size = std::size_t(isotope::size_of(t));
          const device_memory x(device, 2 * elems * size);
          const auto own = x.at + std::uint64_t(c.rank()) * elems * size;
          constexpr int of_this_thread = 1;
          ASSERT_EQ(f->begin_capture(device.stream(), of_this_thread), cuda::status::success);
          comm_test::expect_ok(c.reduce_scatter_on(device.stream(), x.at, own, elems, t, reduction::sum), "reduce_scatter");
          comm_test::expect_ok(c.all_gather_on(device.stream(), own, x.at, elems * size), "all_gather");
          comm_test::expect_ok(c.all_reduce_on(device.stream(), x.at, x.at, 2 * elems, t, reduction::sum), "all_reduce");
          cuda::graph_handle graph = nullptr;
          ASSERT_EQ(f->end_capture(device.stream(), &graph), cuda::status::success);
          std::size_t count = 0;
          ASSERT_EQ(f->graph_nodes(graph, nullptr, &count), cuda::status::success);
          EXPECT_EQ(count, 3u);
          cuda::executable_handle executable = nullptr;
          ASSERT_EQ(f->instantiate(&executable, graph, 0), cuda::status::success);
          for (std::uint64_t run = 0; run < 10; ++run) {
            x.set(comm_test::given(t, 2 * elems, c.rank(), run));
            ASSERT_EQ(f->launch_graph(executable, device.stream()), cuda::status::success);
            comm_test::expect_ok(c.wait(device.stream()), "the wait");
            const bytes once = comm_test::combined(t, 2 * elems, 2, reduction::sum, run);
            bytes twice(once.size());
            std::array<const std::byte*, 2> from{once.data(), once.data()};
            std::array<std::byte*, 1> to{twice.data()};
            isotope::comm::combine(from, to, 2 * elems, t, reduction::sum);
            ASSERT_EQ(x.get(twice.size()), twice) << "run " << run;
          }
          f->destroy_executable(executable);
          f->destroy_graph(graph);
        }
      },
      failed);
}
TEST_F(cuda_direct, an_operation_that_hangs_is_aborted_from_another_thread) {
  std::atomic<bool> answered{false};
  ranks.each_directly(
      2, 60,
      [&](direct_communicator& c, const gpu& device) {
        const device_memory x(device, 4 << 20);
        if (c.rank() == 1) {
          answered.wait(false);
          comm_test::expect_failure(c.state(), errc::peer_lost, "rank 0 ended the group: the step took too long");
        } else {
          comm_test::expect_ok(c.all_reduce_on(device.stream(), x.at, x.at, 1 << 20, dtype::f32, reduction::sum), "all_reduce");
          std::thread other([&] { c.abort(isotope::fail(errc::timeout, "the step took too long", "watchdog", "none")); });
          comm_test::expect_failure(c.wait(device.stream()), errc::timeout, "the step took too long");
          other.join();
          comm_test::expect_failure(c.barrier(), errc::timeout, "the step took too long");
          answered = true;
          answered.notify_all();
        }
      },
      failed);
}
TEST_F(cuda_direct, a_wait_ends_by_its_timeout_and_every_rank_hears_it) {
  ranks.each_directly(
      2, 0.5,
      [&](direct_communicator& c, const gpu& device) {
        const device_memory x(device, 4 << 20);
        if (c.rank() == 0) {
          comm_test::expect_ok(c.all_reduce_on(device.stream(), x.at, x.at, 1 << 20, dtype::f32, reduction::sum), "all_reduce");
          comm_test::expect_failure(c.wait(device.stream()), errc::timeout, "did not end within 0.5 s");
        } else {
          result<void> r;
          while ((r = c.state())) std::this_thread::yield();
          comm_test::expect_failure(r, errc::peer_lost, "rank 0 ended the group");
        }
      },
      failed);
}
TEST_F(cuda_direct, a_rank_that_fails_ends_the_exchange_of_the_other) {
  ranks.each_directly(
      2, 60,
      [&](direct_communicator& c, const gpu& device) {
        const device_memory x(device, 4 << 20);
        if (c.rank() == 1) {
          c.abort(isotope::fail(errc::non_finite, "the loss is NaN", "step 12", "lower the learning rate"));
          comm_test::expect_failure(c.barrier(), errc::non_finite, "the loss is NaN");
        } else {
          const auto started = c.all_reduce_on(device.stream(), x.at, x.at, 1 << 20, dtype::f32, reduction::sum);
          comm_test::expect_failure(started ? c.wait(device.stream()) : started, errc::peer_lost,
                                    "rank 1 ended the group: the loss is NaN");
        }
      },
      failed);
}
TEST_F(cuda_direct, calls_that_differ_end_the_group) {
  ranks.each_directly(
      2, 60,
      [&](direct_communicator& c, const gpu&) {
        bytes x(c.rank() == 1 ? 20 : 24);
        const auto r = c.all_reduce(x, dtype::f32, reduction::sum);
        ASSERT_FALSE(r.ok());
        EXPECT_NE(r.error().what.find("calls another operation"), std::string::npos) << r.error().line();
      },
      failed);
}

/// Devices of the emulated driver do not reach each other's memory.
struct cuda_direct_refused : testing::Test {
  emulator_settings restored;
  std::shared_ptr<const cuda::driver> driver;
  void SetUp() override {
    if (!emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
    emulator().set_devices({{.compute = emulated_compute()}, {.compute = emulated_compute()}});
    auto d = cuda::driver::open(emulated_driver);
    ASSERT_TRUE(d.ok()) << d.error().line();
    driver = *d;
  }
  /// What each of two ranks hears; rank r has the device `device_of(r)` and joins by `places_of(r)`.
  template <class Device, class Places> std::vector<isotope::failure> joined(const Device& device_of, const Places& places_of) const {
    isotope::thread_group hosts(2, {.timeout_seconds = 60});
    std::vector<isotope::failure> heard(2);
    std::vector<std::thread> threads;
    for (int r = 0; r < 2; ++r)
      threads.emplace_back([&, r] {
        auto g = gpu::open(driver, device_of(r));
        auto host = hosts.join(r);
        ASSERT_TRUE(g.ok() && host.ok());
        auto c = direct_communicator::join(places_of(r), (*g)->device(), *std::move(host), 60);
        if (!c) heard[std::size_t(r)] = c.error();
      });
    for (auto& t : threads) t.join();
    return heard;
  }
  /// One rank says why, and the other one says the same or whose reason it was.
  static void expect_refusal(const std::vector<isotope::failure>& heard, errc code, const std::string& says) {
    int first = 0;
    for (const auto& f : heard) {
      EXPECT_NE(f.what.find(says), std::string::npos) << f.line();
      EXPECT_TRUE(f.code == code || f.code == errc::peer_lost) << f.line();
      if (f.code == code) ++first;
    }
    EXPECT_GE(first, 1);
  }
};
TEST_F(cuda_direct_refused, gpus_without_access_to_each_other) {
  const auto places = std::make_shared<direct::places>(2);
  expect_refusal(joined([](int r) { return r; }, [&](int) { return places; }), errc::missing_feature, "cannot reach the memory of GPU");
}
TEST_F(cuda_direct_refused, two_ranks_with_one_gpu) {
  const auto places = std::make_shared<direct::places>(2);
  expect_refusal(joined([](int) { return 0; }, [&](int) { return places; }), errc::invalid_argument, "have the same GPU, 0");
}
TEST_F(cuda_direct_refused, ranks_of_different_processes) {
  expect_refusal(joined([](int r) { return r; }, [&](int) { return std::make_shared<direct::places>(2); }), errc::missing_feature,
                 "is not in this process");
}

/// A group of one rank, whose exchanges are kernels: an all_reduce copies.
class lonely_rank final : public isotope::communicator, public cuda::stream_communicator {
 public:
  lonely_rank(const cuda::context& c, bool by_kernels) : context_(c), by_kernels_(by_kernels) {
    const auto& code = cuda::fatbins::exchange;
    c.f()->load_library(&library_, code.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    cuda::kernel_handle kernel = nullptr;
    c.f()->library_kernel(&kernel, library_, "exchange_f32");
    c.f()->kernel_function(&function_, kernel);
    c.f()->allocate(&box_, sizeof(cuda::gpu::exchange_box));
    c.f()->fill_words(box_, 0, sizeof(cuda::gpu::exchange_box) / 4, c.stream());
  }
  ~lonely_rank() override {
    context_.f()->free(box_);
    context_.f()->unload_library(library_);
  }
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  result<void> all_reduce(std::span<std::byte>, dtype, reduction) override { return {}; }
  result<void> all_gather(std::span<const std::byte>, std::span<std::byte>) override { return {}; }
  result<void> reduce_scatter(std::span<std::byte>, std::span<std::byte>, dtype, reduction) override { return {}; }
  result<void> broadcast(std::span<std::byte>, int) override { return {}; }
  result<void> barrier() override { return {}; }
  void abort(isotope::failure) noexcept override {}
  bool exchanges_by_kernels() const override { return by_kernels_; }
  result<void> start(const cuda::library_collective& c, cuda::stream_handle s) override {
    cuda::gpu::exchange_operands a{};
    a.boxes[0] = box_;
    a.from = c.whole, a.to = c.part;
    a.count = c.count;
    a.ranks = 1;
    cuda::launch_config how{.grid_x = 2, .block_x = 64};
    how.stream = s;
    void* parameters[] = {&a};
    EXPECT_EQ(context_.f()->launch_kernel(&how, function_, parameters, nullptr), cuda::status::success);
    return {};
  }

 private:
  const cuda::context& context_;
  bool by_kernels_;
  cuda::library_handle library_ = nullptr;
  cuda::function_handle function_ = nullptr;
  cuda::device_address box_ = 0;
};
TEST(cuda_direct_graph, exchanges_by_kernels_are_nodes_of_the_graph_and_others_graphs_inside_it) {
  if (!emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
  const emulator_settings restored;
  cuda::options o;
  o.diagnose.driver_library = emulated_driver;
  o.diagnose.no_library = true;
  auto opened = cuda::context::open(o, cuda::fatbins::needs);
  ASSERT_TRUE(opened.ok()) << opened.error().line();
  const auto context = *opened;
  const auto here = context->current();
  const auto& f = context->f();
  cuda::loaded_functions functions(context);
  constexpr std::size_t count = 300;
  cuda::device_address at = 0;
  ASSERT_EQ(f->allocate(&at, 3 * count * 4), cuda::status::success);
  const auto exchange_of = [&](std::uint64_t from, std::uint64_t to) {
    cuda::dispatch d;
    d.collective = {cuda::library_collective::kind::all_reduce, isotope::rank_group::data, dtype::f32, std::int64_t(count), from, to};
    d.function = "all_reduce";
    d.reads = {{from, std::int64_t(count * 4)}};
    d.writes = {{to, std::int64_t(count * 4)}};
    return d;
  };
  const std::vector<cuda::dispatch> all{exchange_of(at, at + count * 4), exchange_of(at + count * 4, at + 2 * count * 4)};
  for (const bool by_kernels : {true, false}) {
    lonely_rank rank(*context, by_kernels);
    const auto graphs = emulator().calls("cuGraphAddChildGraphNode"), kernels = emulator().calls("cuGraphAddKernelNode");
    cuda::step_graph graph(context);
    const isotope::rank_groups groups{.tensor = nullptr, .data = &rank};
    const auto built = graph.build(functions, all, cuda::graph_edges(all), {}, cuda::stream_groups(groups));
    ASSERT_TRUE(built.ok()) << built.error().line();
    EXPECT_EQ(emulator().calls("cuGraphAddKernelNode") - kernels, by_kernels ? 2 : 0);
    EXPECT_EQ(emulator().calls("cuGraphAddChildGraphNode") - graphs, by_kernels ? 0 : 2);
    for (std::uint64_t run = 0; run < 2; ++run) {
      const bytes x = comm_test::given(dtype::i32, count, 0, run + (by_kernels ? 10 : 0));
      bytes y(x.size());
      f->copy_to_device(at, x.data(), x.size(), context->stream());
      auto value = context->submit(graph.handle());
      ASSERT_TRUE(value.ok()) << value.error().line();
      ASSERT_TRUE(context->wait(*value).ok());
      f->copy_to_host(y.data(), at + 2 * count * 4, y.size(), context->stream());
      f->synchronize_stream(context->stream());
      for (std::size_t i = 0; i < count; ++i) {
        float from = 0, to = 0;
        std::memcpy(&from, x.data() + i * 4, 4), std::memcpy(&to, y.data() + i * 4, 4);
        ASSERT_TRUE(from == to || (from != from && to != to)) << i;
      }
    }
  }
  f->free(at);
}

}  // namespace direct_test
