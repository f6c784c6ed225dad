#include <gtest/gtest.h>
#include <isotope/comm/sanity.hpp>

#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>

#include "../comm/operations.hpp"
#include "gpu_ranks.hpp"

namespace nccl_test {

using namespace isotope::cuda_test;
using isotope::dtype;
using isotope::errc;
using isotope::nccl_communicator;
using isotope::reduction;
using isotope::result;
namespace cuda = isotope::cuda;
using bytes = std::vector<std::byte>;

/// NCCL reads its choices from the environment when it is loaded, so they are set for a process of the test's own.
void run_pinned(const std::function<void(const gpu_ranks&, const isotope::nccl_settings&)>& body) {
  const auto found = gpu_ranks::open();
  if (!found) GTEST_SKIP() << found.error().line();
  if (const auto settings = isotope::nccl_settings::from(nccl_environment())) return body(*found, *settings);
  const auto& test = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name(), program = "/proc/self/exe";
  char* const words[] = {program.data(), filter.data(), nullptr};
  std::string pinned[] = {"NCCL_NVLS_ENABLE=0", "NCCL_ALGO=Ring", "NCCL_PROTO=Simple"};
  std::vector<char*> variables;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string(*entry).starts_with("NCCL_")) variables.push_back(*entry);
  for (auto& p : pinned) variables.push_back(p.data());
  variables.push_back(nullptr);
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, words, variables.data()), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it failed in a process of its own, as is printed above";
}
void failed(const std::string& line) { ADD_FAILURE() << line; }

/// Numbers without NaN and infinity, for which NCCL's maximum has rules of its own.
bytes finite(dtype t, std::size_t elems, int rank, std::uint64_t seed) {
  return comm_test::with_type(t, [&]<class T>(T) {
    comm_test::numbers from{seed * 31 + std::uint64_t(rank)};
    bytes b(elems * sizeof(T));
    for (std::size_t i = 0; i < elems; ++i) {
      const std::uint64_t bits = from.next();
      T x;
      if constexpr (std::is_integral_v<T>) x = T(bits);
      else x = T(float(std::ldexp(double(std::int64_t(bits)), -60)));
      std::memcpy(b.data() + i * sizeof(T), &x, sizeof(T));
    }
    return b;
  });
}
/// For two ranks every order of sums is that of the contract.
bytes of_both(dtype t, std::size_t elems, reduction how, std::uint64_t seed) {
  const bytes a = finite(t, elems, 0, seed), b = finite(t, elems, 1, seed);
  bytes y(a.size());
  std::array<const std::byte*, 2> x{a.data(), b.data()};
  std::array<std::byte*, 1> to{y.data()};
  isotope::comm::combine(x, to, elems, t, how);
  return y;
}

TEST(nccl, operations_on_the_host_give_the_bits_of_a_thread_group) {
  run_pinned([](const gpu_ranks& g, const isotope::nccl_settings& s) {
    g.each(
        2, s, 60,
        [](nccl_communicator& c, const gpu&) {
          comm_test::expect_ok(isotope::check_group(c), "the check of the group");
          std::uint64_t seed = 0;
          for (const std::size_t elems : {std::size_t(1), std::size_t(7), std::size_t(1000), std::size_t(100003)})
            for (const dtype t : comm_test::all_types)
              for (const reduction how : {reduction::sum, reduction::max}) {
                ++seed;
                const auto size = std::size_t(isotope::size_of(t));
                const auto what = std::string(isotope::name_of(t)) + " x " + std::to_string(elems);
                bytes x = finite(t, elems, c.rank(), seed);
                comm_test::expect_ok(c.all_reduce(x, t, how), what);
                EXPECT_EQ(x, of_both(t, elems, how, seed)) << what;
                bytes whole = finite(t, 2 * elems, c.rank(), seed), part(elems * size);
                comm_test::expect_ok(c.reduce_scatter(whole, part, t, how), what);
                const bytes all = of_both(t, 2 * elems, how, seed);
                const auto place = std::ptrdiff_t(part.size()) * c.rank();
                EXPECT_EQ(part, bytes(all.begin() + place, all.begin() + place + std::ptrdiff_t(part.size()))) << what;
                part = finite(t, elems, c.rank(), seed);
                comm_test::expect_ok(c.all_gather(part, whole), what);
                bytes both = finite(t, elems, 0, seed);
                const bytes second = finite(t, elems, 1, seed);
                both.insert(both.end(), second.begin(), second.end());
                EXPECT_EQ(whole, both) << what;
                comm_test::expect_ok(c.broadcast(part, 1), what);
                EXPECT_EQ(part, second) << what;
              }
          comm_test::expect_ok(c.barrier(), "the last barrier");
        },
        failed);
  });
}

TEST(nccl, operations_on_a_stream_work_in_place_and_repeat_bit_for_bit) {
  run_pinned([](const gpu_ranks& g, const isotope::nccl_settings& s) {
    g.each(
        2, s, 60,
        [](nccl_communicator& c, const gpu& device) {
          constexpr std::size_t elems = 1 << 20;
          for (const dtype t : {dtype::f32, dtype::bf16}) {
            const auto size = std::size_t(isotope::size_of(t));
            const device_memory x(device, 2 * elems * size);
            const bytes expected = of_both(t, 2 * elems, reduction::sum, 5);
            for (int run = 0; run < 20; ++run) {
              x.set(finite(t, 2 * elems, c.rank(), 5));
              comm_test::expect_ok(c.all_reduce_on(device.stream(), x.at, x.at, 2 * elems, t, reduction::sum), "all_reduce");
              comm_test::expect_ok(c.wait(device.stream()), "the wait");
              ASSERT_EQ(x.get(2 * elems * size), expected) << "run " << run;
            }
            const auto mine = std::size_t(c.rank()) * elems * size;
            x.set(finite(t, 2 * elems, c.rank(), 5));
            comm_test::expect_ok(c.reduce_scatter_on(device.stream(), x.at, x.at + mine, elems, t, reduction::sum), "reduce_scatter");
            comm_test::expect_ok(c.all_gather_on(device.stream(), x.at + mine, x.at, elems * size), "all_gather");
            comm_test::expect_ok(c.wait(device.stream()), "the wait");
            EXPECT_EQ(x.get(2 * elems * size), expected) << "a reduce_scatter and an all_gather are an all_reduce";
            comm_test::expect_ok(c.broadcast_on(device.stream(), x.at, 100, 1), "broadcast");
            comm_test::expect_ok(c.wait(device.stream()), "the wait");
          }
        },
        failed);
  });
}

TEST(nccl, operations_are_captured_in_a_graph_and_replayed) {
  run_pinned([](const gpu_ranks& g, const isotope::nccl_settings& s) {
    g.each(
        2, s, 60,
        [](nccl_communicator& c, const gpu& device) {
          constexpr std::size_t elems = 300'000;
          const auto& f = device.f();
          const device_memory x(device, elems * 4), y(device, elems * 4);
          const auto record = [&] {
            comm_test::expect_ok(c.all_reduce_on(device.stream(), x.at, y.at, elems, dtype::f32, reduction::sum), "all_reduce");
            comm_test::expect_ok(c.all_reduce_on(device.stream(), x.at, x.at, 100, dtype::f32, reduction::max), "all_reduce");
            comm_test::expect_ok(c.broadcast_on(device.stream(), x.at, 4, 1), "broadcast");
          };
          record();  // the first call of each kind connects the ranks, which a capture should not
          comm_test::expect_ok(c.wait(device.stream()), "the wait");
          constexpr int of_this_thread = 1;
          ASSERT_EQ(f->begin_capture(device.stream(), of_this_thread), cuda::status::success);
          record();
          cuda::graph_handle graph = nullptr;
          ASSERT_EQ(f->end_capture(device.stream(), &graph), cuda::status::success);
          std::size_t count = 0;
          ASSERT_EQ(f->graph_nodes(graph, nullptr, &count), cuda::status::success);
          std::vector<cuda::node_handle> nodes(count);
          ASSERT_EQ(f->graph_nodes(graph, nodes.data(), &count), cuda::status::success);
          std::string types;
          for (const auto n : nodes) {
            int type = -1;
            f->node_type(n, &type);
            types += " " + std::to_string(type);
          }
          EXPECT_GE(count, 3u) << "types of nodes:" << types;
          if (c.rank() == 0)
            std::printf("graph of 3 operations: %zu nodes, of types%s (0: kernel, 6: wait for an event, 7: event)\n", count, types.c_str());
          cuda::executable_handle executable = nullptr;
          ASSERT_EQ(f->instantiate(&executable, graph, 0), cuda::status::success);
          for (int run = 0; run < 10; ++run) {
            x.set(finite(dtype::f32, elems, c.rank(), std::uint64_t(run)));
            ASSERT_EQ(f->launch_graph(executable, device.stream()), cuda::status::success);
            comm_test::expect_ok(c.wait(device.stream()), "the wait");
            EXPECT_EQ(y.get(elems * 4), of_both(dtype::f32, elems, reduction::sum, std::uint64_t(run)));
            const bytes greater = of_both(dtype::f32, 100, reduction::max, std::uint64_t(run));
            EXPECT_EQ(x.get(396, 4), bytes(greater.begin() + 4, greater.end()));
          }
          f->destroy_executable(executable);
          f->destroy_graph(graph);
        },
        failed);
  });
}

TEST(nccl, an_operation_that_hangs_is_aborted_from_another_thread) {
  run_pinned([](const gpu_ranks& g, const isotope::nccl_settings& s) {
    std::atomic<bool> answered{false};
    g.each(
        2, s, 60,
        [&](nccl_communicator& c, const gpu& device) {
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
  });
}
TEST(nccl, a_wait_ends_by_its_timeout_and_every_rank_hears_it) {
  run_pinned([](const gpu_ranks& g, const isotope::nccl_settings& s) {
    g.each(
        2, s, 0.5,
        [&](nccl_communicator& c, const gpu& device) {
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
  });
}

}  // namespace nccl_test
