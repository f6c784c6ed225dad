#pragma once
/// The text that is built into a program: this library's own headers but its kernels, one after another.
#include <cstddef>
#include <string_view>

extern const char isotope_corpus[];
extern const std::size_t isotope_corpus_size;

namespace support {

inline std::string_view embedded_corpus() { return {isotope_corpus, isotope_corpus_size}; }

}  // namespace support
