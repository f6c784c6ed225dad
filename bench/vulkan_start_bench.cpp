/// bench_vulkan_start SIZE BATCH LENGTH: how long a program takes from its start to the end of its first training step of a GPT, without and with
/// the file of pipelines of an earlier start; milliseconds, each start a process of its own. What the driver caches by itself between processes is
/// switched off (Mesa, NVIDIA); of another driver it has to be emptied by hand for the cold start to be one.
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace {
namespace iso = isotope;
using target = iso::selected;

double milliseconds() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
int fail(const iso::failure& f) { return std::fprintf(stderr, "bench_vulkan_start: %s\n", f.line().c_str()), 1; }

/// One start of a program whose pipelines are kept in `file`; prints its times in milliseconds.
int start(const iso::model::gpt& size, int batch, int length, const char* file) {
  const double began = milliseconds();
  auto plan = iso::plan_training<target>(iso::model::gpt_loss_of{size, batch, length});
  if (!plan) return fail(plan.error());
  const double planned = milliseconds();
  auto device = iso::device<target>::open({.cache = file});
  if (!device) return fail(device.error());
  const double opened = milliseconds();
  auto session = device->load(*std::move(plan));
  if (!session) return fail(session.error());
  const double loaded = milliseconds();
  session->initialize(1);
  const double ready = milliseconds();
  const std::vector<std::int32_t> tokens(std::size_t(batch * length), 1);
  const iso::batch data{tokens, tokens};
  session->step(data, {});
  if (auto r = session->status(); !r) return fail(r.error());
  const double stepped = milliseconds();
  const auto counts = device->shared_pipelines()->counts();
  std::printf("plan %.1f, open %.1f, load %.1f (%zu pipelines, %zu from the file of %.2f MiB), weights %.1f, first step %.1f, all %.1f\n",
              planned - began, opened - planned, loaded - opened, counts.made, counts.from_cache,
              double(std::filesystem::file_size(file)) / (1 << 20), ready - loaded, stepped - ready, stepped - began);
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: bench_vulkan_start SIZE BATCH LENGTH\n"), 2;
  for (const auto& [name, size] : iso::model::gpt_sizes)
    if (name == argv[1]) {
      if (argc > 4) return start(size, std::atoi(argv[2]), std::atoi(argv[3]), argv[4]);
      const std::string file = (std::filesystem::temp_directory_path() / ("isotope-start-" + std::to_string(getpid()))).string();
      std::string once = "MESA_SHADER_CACHE_DISABLE=true __GL_SHADER_DISK_CACHE=0";
      for (const std::string& word : {std::string(argv[0]), std::string(argv[1]), std::string(argv[2]), std::string(argv[3]), file})
        once += " '" + word + "'";
      int wrong = 0;
      for (const char* line : {"cold: ", "warm: ", "warm: "}) {
        std::fputs(line, stdout);
        std::fflush(stdout);
        wrong |= std::system(once.c_str());
      }
      std::filesystem::remove(file);
      return wrong == 0 ? 0 : 1;
    }
  return std::fprintf(stderr, "bench_vulkan_start: no size '%s'\n", argv[1]), 2;
}
