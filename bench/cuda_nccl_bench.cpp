/// bench_cuda_nccl [direct]: time of operations between two GPUs by size, through NCCL or by each other's memory: each in a CUDA graph of several, which is how a training step
/// runs them, and launched alone.
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tests/cuda/gpu_ranks.hpp"

namespace {

using namespace isotope;
using namespace isotope::cuda_test;
using cuda_test::device_memory;

/// Microseconds of one of `count` operations that put(stream) puts on the stream. All ranks call it.
template <class Put> result<std::pair<double, double>> microseconds(gpu_communicator& c, const gpu& g, int count, const Put& put) {
  const auto& f = g.f();
  cuda::event_handle begin = nullptr, end = nullptr;
  f->create_event(&begin, 0);
  f->create_event(&end, 0);
  float graph_ms = 0, alone_ms = 0;
  if (auto r = put(); !r) return r.error();
  if (auto r = c.barrier(); !r) return r.error();
  f->begin_capture(g.stream(), 1);
  for (int i = 0; i < count; ++i) (void)put();
  cuda::graph_handle graph = nullptr;
  cuda::executable_handle executable = nullptr;
  f->end_capture(g.stream(), &graph);
  f->instantiate(&executable, graph, 0);
  f->launch_graph(executable, g.stream());
  (void)c.barrier();
  f->record_event(begin, g.stream());
  f->launch_graph(executable, g.stream());
  f->record_event(end, g.stream());
  g.wait();
  f->elapsed_milliseconds(&graph_ms, begin, end);
  (void)c.barrier();
  f->record_event(begin, g.stream());
  for (int i = 0; i < count; ++i) (void)put();
  f->record_event(end, g.stream());
  g.wait();
  f->elapsed_milliseconds(&alone_ms, begin, end);
  auto whole = c.barrier();
  f->destroy_executable(executable);
  f->destroy_graph(graph);
  f->destroy_event(begin);
  f->destroy_event(end);
  if (!whole) return whole.error();
  return std::pair{double(graph_ms) * 1e3 / count, double(alone_ms) * 1e3 / count};
}

void time_operations(gpu_communicator& c, const gpu& g) {
  constexpr std::size_t most = std::size_t(512) << 20;
  const device_memory x(g, most), y(g, most);
  g.f()->fill_words(x.at, 0, most / 4, g.stream());
  const auto row = [&](const char* what, std::size_t bytes, double factor, const auto& put) {
    const int count = bytes < (4u << 20) ? 50 : bytes < (64u << 20) ? 20 : 5;
    const auto took = microseconds(c, g, count, put);
    if (c.rank() == 0 && took)
      std::printf("%-22s %12zu %12.1f %12.1f %12.1f\n", what, bytes, took->first, took->second, factor * double(bytes) / took->first / 1e3);
    if (c.rank() == 0 && !took) std::printf("%-22s %12zu %s\n", what, bytes, took.error().line().c_str());
  };
  for (const dtype t : {dtype::f32, dtype::bf16})
    for (std::size_t bytes = 1 << 10; bytes <= most; bytes *= bytes < (1u << 20) ? 8 : bytes < most / 2 ? 4 : 2)
      row(t == dtype::f32 ? "all_reduce f32" : "all_reduce bf16", bytes, 1,
          [&] { return c.all_reduce_on(g.stream(), x.at, x.at, bytes / std::size_t(size_of(t)), t, reduction::sum); });
  for (std::size_t bytes = 64 << 10; bytes <= most; bytes *= 16) {
    row("reduce_scatter f32", bytes, 0.5,
        [&] { return c.reduce_scatter_on(g.stream(), x.at, y.at, bytes / 8, dtype::f32, reduction::sum); });
    row("all_gather", bytes, 0.5, [&] { return c.all_gather_on(g.stream(), y.at, x.at, bytes / 2); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool direct = argc > 1 && std::string_view(argv[1]) == "direct";
  const auto found = gpu_ranks::open(direct);
  if (!found) return std::puts(found.error().line().c_str()), 77;
  int wrong = 0;
  const auto failed = [&](const std::string& line) { std::puts(line.c_str()), ++wrong; };
  const auto head = [&](const std::string& through) {
    std::printf("%s, 2 of %d GPUs\n", through.c_str(), found->gpus);
    std::printf("%-22s %12s %12s %12s %12s\n", "operation", "bytes", "graph, us", "alone, us", "bus GB/s");
  };
  if (direct) {
    head("by each other's memory");
    found->each_directly(2, 60, time_operations, failed);
    return wrong == 0 ? 0 : 1;
  }
  const auto settings = nccl_settings::from(nccl_environment());
  if (!settings) return std::puts(settings.error().line().c_str()), 1;
  head("NCCL " + nccl::library::version_text(found->library->version()) + ", " + settings->text());
  found->each(2, *settings, 60, time_operations, failed);
  return wrong == 0 ? 0 : 1;
}
