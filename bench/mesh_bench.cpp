/// bench_mesh SIZE BATCH LENGTH DATA TENSOR [STEPS] [--zero] [--bucket MIB] [--reduced accumulation] [--apart] [--in-order] [--sums-late]
/// [--communicator nccl|direct] [--blocks N]: training
/// steps of a GPT on DATA x TENSOR devices of this machine, of the backend of this build, BATCH rows of LENGTH random tokens for each data index: median
/// milliseconds, tokens per second of all, and memory of a device: what is planned, that with what was in use before the session opened, and what is in use at the end.
/// --apart: the devices train at the same time and exchange nothing. --in-order, on cuda: exchanges run beside nothing. --sums-late: work that could run while a tensor group adds up stays where it was traced (training_options::overlap).
/// On cpu, the devices are threads; on cuda they are GPUs, which communicate by NCCL (set NCCL_NVLS_ENABLE=0, NCCL_ALGO and NCCL_PROTO) or, with direct, by kernels
/// that use each other's memory, of at most N blocks.
#include <isotope/comm/mesh.hpp>
#include <isotope/comm/thread_group.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include "measure.hpp"

#if __has_include(<isotope/fatbins/build.hpp>)
#include <isotope/comm/cuda/direct_group.hpp>
#include <isotope/comm/cuda/nccl_group.hpp>
#endif

namespace {
namespace iso = isotope;
using target = iso::selected;
constexpr bool on_cuda = target::backend::name == "cuda";

int fail(const iso::failure& f) { return bench::fail("bench_mesh", f); }

struct asked {
  iso::model::gpt size;
  std::string_view name;
  int batch = 1, length = 1, steps = 20;
  iso::training_options options;
  bool apart = false, in_order = false, direct = false;
  int blocks = 0;
};

struct memory_use {
  std::int64_t planned = 0, taken = 0,
               in_use = 0;  // taken: before the session; in use: at the end. Both are 0 where the device does not say.
};
double gibibytes(std::int64_t bytes) { return double(bytes) / (1 << 30); }

/// Trains on one rank, and gives the milliseconds of each step after a third of a second.
template <class Device>
iso::result<std::vector<double>> train(Device& device, const iso::dynamic_plan& plan, const asked& a, int data, memory_use& memory,
                                       double& loss) {
  auto s = device.load(plan);
  if (!s) return s.error();
  s->initialize(1);
  const std::size_t count = std::size_t(a.batch * a.length);
  std::vector<std::int32_t> tokens(count), targets(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t at = std::uint64_t(data) * count + i;
    tokens[i] = std::int32_t(iso::philox(1, at, 0, 0)[0] % std::uint32_t(a.size.vocab));
    targets[i] = std::int32_t(iso::philox(2, at, 0, 0)[0] % std::uint32_t(a.size.vocab));
  }
  iso::step_scalars x;
  x.learning_rate = 1e-4f, x.weight_decay = 0.1f, x.clip_norm = 1;
  std::vector<double> times;
  const int warm = 5;
  for (int i = 0; i < warm + a.steps; ++i, ++x.counter, ++x.optimizer_step) {
    const double before = bench::seconds();
    loss = s->step(iso::batch{tokens, targets}, x).loss;
    if (auto r = s->status(); !r) return r.error();
    if (i >= warm) times.push_back(1e3 * (bench::seconds() - before));
  }
  memory = {s->planned_bytes(), s->taken_bytes(), 0};
  if (const auto m = device.memory(); m && memory.taken > 0) memory.in_use = m->total - m->free;
  std::sort(times.begin(), times.end());
  return times;
}

template <class Groups, class Open, class Announce>
int run(const asked& a, const iso::dynamic_plan& plan, Groups& groups, const Open& open, const Announce& announce) {
  const iso::device_mesh mesh = a.options.mesh;
  std::mutex one;
  std::vector<std::vector<double>> times(std::size_t(mesh.ranks()));
  memory_use memory;
  double loss = 0;
  int wrong = 0;
  std::vector<std::thread> threads;
  for (int r = 0; r < mesh.ranks(); ++r)
    threads.emplace_back([&, r] {
      const auto failed = [&](const iso::failure& f) {
        const std::lock_guard lock(one);
        wrong = fail(f);
      };
      auto device = open(r);
      if (!device) return failed(device.error());
      announce(r, *device);
      auto c = groups.join(r);
      if (!c) return failed(c.error());
      if (!a.apart) device->join(c->groups());
      memory_use own_memory;
      double own_loss = 0;
      auto t = train(*device, plan, a, mesh.position_of(r).data, own_memory, own_loss);
      if (!t) {
        c->abort(t.error());
        return failed(t.error());
      }
      times[std::size_t(r)] = *std::move(t);
      if (r == 0) memory = own_memory, loss = own_loss;
    });
  for (auto& t : threads) t.join();
  if (wrong != 0) return wrong;
  std::vector<double>& ms = times[0];
  const double median = ms[ms.size() / 2];
  std::printf(
      "%s %s %.*s B=%d T=%d data %d tensor %d zero %d%s: %.3f ms/step (least %.3f), %.0f tokens/s, loss %.4f, %.2f GiB planned on a "
      "device\n",
      std::string(target::backend::name).c_str(), std::string(target::precision::name).c_str(), int(a.name.size()), a.name.data(), a.batch,
      a.length, mesh.data, mesh.tensor, a.options.zero, a.direct ? " direct" : "", median, ms[0],
      double(a.batch) * a.length * mesh.data / median * 1e3, loss, gibibytes(memory.planned));
  if (memory.taken > 0)
    std::printf("  %.2f GiB with what was in use before, %.2f in use at the end\n", gibibytes(memory.planned + memory.taken),
                gibibytes(memory.in_use));
  for (std::size_t r = 0; r < times.size() && a.apart; ++r)
    std::printf("  device %d by itself: %.3f ms/step (least %.3f)\n", int(r), times[r][times[r].size() / 2], times[r][0]);
  return 0;
}

/// Sets what a backend has of these.
template <class Diagnostics> void diagnose(const asked& a, Diagnostics& d) {
  if constexpr (requires { d.exchanges_in_order; }) d.exchanges_in_order = a.in_order;
}

int measure_mesh(const asked& a, const iso::dynamic_plan& plan) {
  const auto open = [&a](int rank) {
    typename iso::device<target>::options o;
    o.threads = on_cuda ? 0 : 1;
    o.name = on_cuda ? std::to_string(rank) : "";
    const auto kept = bench::options_of_environment<decltype(o)>();
    o.cache = kept.cache, o.autotune = kept.autotune;
    diagnose(a, o.diagnose);
    return iso::device<target>::open(o);
  };
  const auto threads = [](const std::string&, const std::vector<int>& members) {
    return std::make_unique<iso::thread_group>(int(members.size()), iso::thread_group_options{.timeout_seconds = 120});
  };
#if __has_include(<isotope/fatbins/build.hpp>)
  if constexpr (on_cuda) {
    std::vector<iso::gpu_of_rank> devices(std::size_t(a.options.mesh.ranks()));
    const auto announce = [&](int rank, const auto& d) {
      const auto& c = d.shared();
      devices[std::size_t(rank)] = {c->library(), c->handle(), c->stream()};
    };
    const auto device_of = [&devices](const std::vector<int>& members) {
      return [&devices, members](int rank) { return devices[std::size_t(members[std::size_t(rank)])]; };
    };
    if (a.direct) {
      using group = iso::direct_group<iso::thread_group>;
      iso::mesh_group<group> groups(a.options.mesh, [&](const std::string& name, const std::vector<int>& members) {
        return std::make_unique<group>(threads(name, members), iso::direct_options{120, a.blocks}, device_of(members));
      });
      return run(a, plan, groups, open, announce);
    }
    std::map<std::string, std::string> environment;
    for (char** e = environ; *e != nullptr; ++e)
      if (const std::string_view line = *e; line.find('=') != line.npos)
        environment.emplace(line.substr(0, line.find('=')), line.substr(line.find('=') + 1));
    auto settings = iso::nccl_settings::from(environment);
    if (!settings) return fail(settings.error());
    auto library = iso::nccl::library::open({});
    if (!library) return fail(library.error());
    using group = iso::nccl_group<iso::thread_group>;
    iso::mesh_group<group> groups(a.options.mesh, [&](const std::string& name, const std::vector<int>& members) {
      return std::make_unique<group>(threads(name, members), iso::nccl_options{*library, *settings, 120}, device_of(members));
    });
    return run(a, plan, groups, open, announce);
  }
#endif
  iso::mesh_group<iso::thread_group> groups(a.options.mesh, threads);
  return run(a, plan, groups, open, [](int, const auto&) {});
}
}  // namespace

int main(int argc, char** argv) {
  const auto usage = [] {
    return std::fprintf(stderr,
                        "usage: bench_mesh SIZE BATCH LENGTH DATA TENSOR [STEPS] [--zero] [--bucket MIB] [--reduced accumulation] "
                        "[--apart] [--in-order] [--sums-late] [--communicator nccl|direct] [--blocks N]\n"),
           2;
  };
  if (argc < 6) return usage();
  asked a;
  a.name = argv[1];
  bool known = false;
  for (const auto& [name, g] : iso::model::gpt_sizes)
    if (name == a.name) a.size = g, known = true;
  if (!known) return std::fprintf(stderr, "bench_mesh: no size '%s'\n", argv[1]), 2;
  a.size.dropout = 0;
  a.batch = std::atoi(argv[2]), a.length = std::atoi(argv[3]);
  a.options.mesh = {std::atoi(argv[4]), std::atoi(argv[5])};
  if (argc > 6 && std::atoi(argv[6]) > 0) a.steps = std::atoi(argv[6]);
  for (int i = 6; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--zero") a.options.zero = 1;
    if (flag == "--bucket" && i + 1 < argc) a.options.bucket_bytes = std::int64_t(std::atoi(argv[i + 1])) << 20;
    if (flag == "--apart") a.apart = true;
    if (flag == "--in-order") a.in_order = true;
    if (flag == "--communicator" && i + 1 < argc) a.direct = std::string_view(argv[i + 1]) == "direct";
    if (flag == "--blocks" && i + 1 < argc) a.blocks = std::atoi(argv[i + 1]);
    if (flag == "--sums-late") a.options.overlap = false;
    if (flag == "--reduced") a.options.reduced = iso::reduced_format::accumulation;
  }
  iso::training_options planned = a.options;
  if (a.apart) planned.mesh = {};
  auto plan = iso::plan_training<target>(iso::model::gpt_loss_of{a.size, a.batch, a.length}, planned);
  if (!plan) return fail(plan.error());
  return measure_mesh(a, *plan);
}
