/// isotope-serve: an HTTP server of texts and vectors, with the interface of OpenAI. See --help.
#include "../support/command_line.hpp"
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"
#include "http_server.hpp"
#include "open.hpp"
#include "settings.hpp"

#include <isotope/build_info.hpp>
#include <isotope/config/load.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

namespace serve_program {

isotope::result<void> check(const settings& s) {
  using isotope::errc, isotope::fail;
  if (s.model.empty()) return fail(errc::missing_value, "is missing", "flag --model", "name a folder of Hugging Face");
  struct range {
    const char* flag;
    std::int64_t value, least, most;
  };
  for (const range& r : {range{"port", s.port, 0, 65535}, range{"slots", s.slots, 1, 4096}, range{"queue", s.queue, 1, 1 << 20},
                         range{"tokens-per-submit", s.tokens_per_submit, 0, 1024}, range{"batch-tokens", s.batch_tokens, 1, 1 << 24},
                         range{"connections", s.connections, 1, 1 << 20}, range{"header-bytes", s.header_bytes, 256, 1 << 20},
                         range{"body-bytes", s.body_bytes, 256, 1 << 30}, range{"header-seconds", s.header_seconds, 1, 86400},
                         range{"body-seconds", s.body_seconds, 1, 86400}, range{"idle-seconds", s.idle_seconds, 1, 86400},
                         range{"write-seconds", s.write_seconds, 1, 86400}, range{"stop-seconds", s.stop_seconds, 1, 86400}})
    if (r.value < r.least || r.value > r.most)
      return fail(errc::invalid_argument, "is " + std::to_string(r.value), std::string("flag --") + r.flag,
                  "give " + std::to_string(r.least) + " to " + std::to_string(r.most));
  if (constexpr auto own = support::target::precision::type; !s.diagnose.stores_in(own))
    return fail(errc::invalid_argument, "is for f32 builds, this one stores weights in " + std::string(name_of(own)), "flag --weights",
                "leave it out");
  return {};
}

/// Lets this process open as many files as its connections need, as far as the system allows.
void raise_file_limit(std::int64_t connections) {
  rlimit limit{};
  const auto wanted = rlim_t(connections + 64);
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}
/// The last part of a folder's path.
std::string name_of_folder(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

int run(const settings& s) {
  int code = support::success;
  if (auto r = check(s); support::failed(program, r, code)) return code;
  auto keys = read_keys(s.api_key_file);
  if (support::failed(program, keys, code)) return code;
  raise_file_limit(s.connections);
  isotope::serve::metrics counts;
  auto model = open_service(s, counts);
  if (support::failed(program, model, code)) return code;
  std::random_device entropy;
  isotope::serve::api api(**model, counts,
                          {.model = s.served_name.empty() ? name_of_folder(s.model) : s.served_name,
                           .keys = *std::move(keys),
                           .seed = std::uint64_t(entropy()) << 32 | entropy(),
                           .now = [] { return std::int64_t(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())); }});
  const http_limits limits{.connections = std::size_t(s.connections),
                           .header_bytes = std::size_t(s.header_bytes),
                           .body_bytes = std::size_t(s.body_bytes),
                           .header_seconds = s.header_seconds,
                           .body_seconds = s.body_seconds,
                           .idle_seconds = s.idle_seconds,
                           .write_seconds = s.write_seconds,
                           .stop_seconds = s.stop_seconds};
  auto server = http_server::open(api, counts, s.host, std::uint16_t(s.port), limits, s.log_requests);
  if (support::failed(program, server, code)) return code;
  if (!(*server)->loopback() && s.api_key_file.empty())
    support::note(program, "anybody who reaches " + s.host + " may ask: --api-key-file FILE lets only those with a key");
  support::print("isotope-serve listens on " + (*server)->address() + "\n");
  const bool answered = (*server)->run();
  (*model)->close();
  (*model)->join();
  if (const auto broken = (*model)->broken()) return support::note(program, broken->line()), support::runtime_failure;
  return answered ? support::success : support::interrupted;
}

int guarded_main(int argc, char** argv) {
  const auto given = support::command_line(argc, argv);
  if (support::asks_for_help(given))
    return support::print(isotope::config::flag_help(isotope::config::fields_of(settings{}), switches, words_of_help())), support::success;
  int code = support::success;
  if (auto r = support::check_variables(given); support::failed(program, r, code)) return code;
  const auto loaded = isotope::config::load<settings>(given, {}, support::rules_for(switches));
  if (support::failed(program, loaded, code)) return code;
  if (loaded->has_switch("version"))
    return support::print(support::version_text(program, isotope::build_info<isotope::selected>)), support::success;
  if (auto r = support::check_run(*loaded, true); support::failed(program, r, code)) return code;
  return run(loaded->value);
}

}  // namespace serve_program

int main(int argc, char** argv) {
  return support::guarded(serve_program::program, [&] { return serve_program::guarded_main(argc, argv); });
}
