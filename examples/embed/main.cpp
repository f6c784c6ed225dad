/// isotope-embed: vectors of sentences. See --help.
#include "../support/clock.hpp"
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"
#include "command.hpp"
#include "writer.hpp"

#include <isotope/build_info.hpp>
#include <isotope/generate/embedder.hpp>
#include <isotope/io/file.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>
#include <isotope/train/decimal.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace embed_program {

using isotope::errc, isotope::fail, isotope::result;
using embedder = isotope::embedder<isotope::selected>;

/// Texts that are embedded at once: their vectors are written before the next ones are computed.
constexpr std::size_t some = 16384;

result<embedder> open(const support::command_words& c) {
  const auto tokens = c.whole("--tokens", 0, 0, 1 << 20), threads = c.whole("--threads", 0, 0, 1024);
  if (!tokens) return tokens.error();
  if (!threads) return threads.error();
  if (!c.has("--model")) return fail(errc::missing_value, "is missing", "--model", "name the folder of a sentence embedding model");
  if (c.has("--truncate") && c.has("--refuse"))
    return fail(errc::invalid_argument, "contradicts --truncate", "--refuse", "leave one of the two out");
  isotope::device_options o;
  o.threads = int(*threads);
  o.name = c.get("--device");
  const auto device = isotope::device<isotope::selected>::open(isotope::options_for<isotope::selected_backend>(o));
  if (!device) return device.error();
  isotope::embedder_options options;
  options.tokens = int(*tokens);
  options.longer = c.has("--refuse") ? isotope::long_texts::refuse : isotope::long_texts::truncate;
  options.special = c.has("--plain") ? isotope::io::specials::plain : isotope::io::specials::parse;
  return embedder::open(*device, c.get("--model"), options);
}

/// A row for each text: its similarity with every other, and the text.
std::string table_of(const isotope::embeddings& all, std::span<const std::string_view> lines) {
  std::string table;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      const std::string number = isotope::train::fixed(isotope::similarity(all.row(i), all.row(j)), 2);
      table += std::string(6 - std::min<std::size_t>(6, number.size()), ' ') + number;
    }
    table += "  " + std::string(lines[i]) + "\n";
  }
  return table;
}

int run(const support::command_words& c) {
  int code = support::success;
  if (c.files.size() > 1) return support::report(program, fail(errc::invalid_argument, "is a second file", c.files[1], "give one file"));
  const double begin = support::seconds_now();
  auto model = open(c);
  if (support::failed(program, model, code)) return code;
  const double opened = support::seconds_now();

  const std::string source = c.files.empty() ? "/dev/stdin" : c.files[0];
  const auto bytes = isotope::io::read_file(source);
  if (support::failed(program, bytes, code)) return code;
  const std::vector<std::string_view> lines = isotope::io::detail::lines_of(bytes->text());
  const bool similarities = c.has("--similarities");
  if (similarities && (lines.size() > 1000 || c.has("--out")))
    return support::report(program, fail(errc::invalid_argument, "prints a table of at most 1000 texts, and no vectors", "--similarities",
                                         "leave it out, or give fewer lines and no --out"));
  auto out = vector_writer::open(c.get("--out"), lines.size(), model->width());
  if (support::failed(program, out, code)) return code;

  const double start = support::seconds_now();
  std::int64_t tokens = 0, cut = 0;
  for (std::size_t first = 0; first < lines.size(); first += some) {
    const auto part = std::span(lines).subspan(first, std::min(some, lines.size() - first));
    auto made = model->embed(part, first);
    if (!made) {
      isotope::failure f = made.error();
      f.where = source + ": " + f.where;
      return support::report(program, f);
    }
    for (const isotope::text_tokens t : made->texts) tokens += t.used, cut += t.cut > 0 ? 1 : 0;
    if (similarities) support::print(table_of(*made, part));
    else if (auto r = out->write(*made, first); support::failed(program, r, code)) return code;
  }
  const double seconds = support::seconds_now() - start;
  if (auto r = out->commit(); support::failed(program, r, code)) return code;
  std::string report = std::to_string(lines.size()) + " texts of " + std::to_string(tokens) + " tokens, " +
                       isotope::train::fixed(double(lines.size()) / seconds, 1) + " texts/s; opened in " +
                       isotope::train::fixed(opened - begin, 3) + " s";
  if (cut > 0) report += "; " + std::to_string(cut) + " had more than " + std::to_string(model->limit()) + " tokens and lost their end";
  support::note(program, report);
  return support::success;
}

int guarded_main(int argc, char** argv) {
  const auto c = read_command({argv + 1, argv + argc});
  int code = support::success;
  if (support::failed(program, c, code)) return code;
  if (c->has("--help")) return support::print(help_text()), support::success;
  if (c->has("--version")) return support::print(support::version_text(program, isotope::build_info<isotope::selected>)), support::success;
  return run(*c);
}

}  // namespace embed_program

int main(int argc, char** argv) {
  return support::guarded(embed_program::program, [&] { return embed_program::guarded_main(argc, argv); });
}
