#pragma once
/// Writes vectors as a .npy matrix or as JSON lines.
#include <isotope/core/error.hpp>
#include <isotope/generate/embedder.hpp>
#include <isotope/io/file_writer.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/npy.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace embed_program {

class vector_writer {
 public:
  /// @param path  *.npy: a matrix; any other: JSON lines; empty: JSON lines on stdout
  /// @error write_failed
  static isotope::result<vector_writer> open(const std::string& path, std::size_t rows, std::size_t cols) {
    static const isotope::io::file_calls calls;
    const bool matrix = path.ends_with(".npy");
    auto file = isotope::io::file_writer::open(path.empty() ? "/dev/stdout" : path, matrix ? rows * cols * sizeof(float) : 0, calls);
    if (!file) return std::move(file).error();
    vector_writer w(*std::move(file), matrix);
    if (matrix)
      if (auto r = w.put(isotope::io::npy_header(rows, cols)); !r) return std::move(r).error();
    return w;
  }
  /// Appends vectors. @param first  the index of the first one
  isotope::result<void> write(const isotope::embeddings& all, std::size_t first) {
    if (matrix_) return file_.write(std::as_bytes(std::span(all.values)));
    for (std::size_t k = 0; k < all.size(); ++k)
      if (auto r = put(line_of(all, k, first + k)); !r) return r;
    return {};
  }
  isotope::result<void> commit() { return file_.commit(); }

 private:
  isotope::io::file_writer file_;
  bool matrix_;

  vector_writer(isotope::io::file_writer file, bool matrix) : file_(std::move(file)), matrix_(matrix) {}
  isotope::result<void> put(std::string_view text) { return file_.write(std::as_bytes(std::span(text))); }

  static std::string line_of(const isotope::embeddings& all, std::size_t k, std::size_t index) {
    using isotope::io::number_text;
    std::string line = "{\"index\":" + number_text(index) + ",\"tokens\":" + number_text(all.texts[k].used) +
                       ",\"cut\":" + number_text(all.texts[k].cut) + ",\"embedding\":[";
    for (const float x : all.row(k)) {
      if (line.back() != '[') line += ',';
      line += number_text(x);
    }
    return line + "]}\n";
  }
};

}  // namespace embed_program
