/// Opens a tokenizer and converts a text to ids and back, on one thread; processor time. Prints a line of JSON.
///
/// bench_tokenizer TOKENIZER FILE [ROUNDS]
#include <isotope/io/file.hpp>
#include <isotope/io/tokenizer_file.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The least time of several rounds.
template <class Work> double best_of(int rounds, Work&& work) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double start = seconds();
    work();
    best = std::min(best, seconds() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  namespace io = isotope::io;
  if (argc < 3) return std::fputs("bench_tokenizer TOKENIZER FILE [ROUNDS]\n", stderr), 2;
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 7;
  auto t = io::open_tokenizer(argv[1]);
  const auto bytes = io::read_file(argv[2]);
  if (!t) return std::fprintf(stderr, "%s\n", t.error().line().c_str()), 2;
  if (!bytes) return std::fprintf(stderr, "%s\n", bytes.error().line().c_str()), 2;
  const double open = best_of(rounds, [&] { t = io::open_tokenizer(argv[1]); });
  io::encoding made;
  const double encode = best_of(rounds, [&] { made = *t->encode(bytes->text()); });
  std::string text;
  const double decode = best_of(rounds, [&] { text = *t->decode(made.ids); });
  std::uint32_t digest = 0;
  for (const std::int32_t id : made.ids) digest = digest * 31 + static_cast<std::uint32_t>(id);
  const double megabytes = double(bytes->size()) / 1e6;
  std::printf("{\"name\":\"isotope\",\"open_ms\":%.1f,\"encode_mb_s\":%.1f,\"decode_mb_s\":%.1f,\"ids\":%zu,\"digest\":%u}\n", 1e3 * open,
              megabytes / encode, double(text.size()) / 1e6 / decode, made.ids.size(), digest);
}
