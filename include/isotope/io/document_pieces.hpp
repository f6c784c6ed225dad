#pragma once
/// Documents out of a stream of text, in pieces of bounded size: the ids of the pieces, one after another, are those of the whole document.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/unicode.hpp>

namespace isotope::io {

/// Whether a text may be divided before byte `at` without a change of its ids: before a blank that a letter of ASCII follows, and after a
/// line end that stands alone between characters that are no white space. No pattern of split_rule has a piece that contains such a place
/// or that changes with what stands behind it, WordPiece drops the white space there, and NFC composes nothing with it.
inline bool divisible_at(std::string_view text, std::size_t at) {
  if (at == 0 || at + 1 >= text.size()) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const char before = text[at - 1];
  if (text[at] == ' ') return is_letter(text[at + 1]);
  if (before != '\n' || at < 2) return false;
  const auto is_text = [&](std::size_t first, std::size_t last) {
    const unicode::point p = unicode::decode(text.data() + first, text.data() + last);
    return p.bytes != 0 && (unicode::data::get()[p.code] & (unicode::space | unicode::control)) == 0;
  };
  std::size_t first = at - 2;  // where the character before the line end begins
  while (first > 0 && at - 2 - first < 3 && (static_cast<unsigned char>(text[first]) & 0xc0) == 0x80) --first;
  return is_text(first, at - 1) && is_text(at, std::min(text.size(), at + 4));
}

/// Collects the bytes of a stream. `take(piece, last) -> result<void>` gets every document in one or more pieces, the last of which may be
/// empty. Empty documents are passed over.
class document_pieces {
 public:
  /// @param separator    what stands between two documents and belongs to neither; empty: the stream is one document
  /// @param divisible    whether documents may be divided; not if added tokens of the tokenizer contain white space
  /// @param piece_bytes  longer documents are divided into pieces of about this size, if there is a place for it
  explicit document_pieces(std::string separator, bool divisible = true, std::size_t piece_bytes = 1 << 20)
      : separator_(std::move(separator)), divisible_(divisible), piece_bytes_(piece_bytes) {}

  /// @param where  the file, for failures
  /// @error invalid_argument: a document has most_bytes without a place at which it may be divided; as `take`
  template <class Take> result<void> add(std::string_view bytes, const std::string& where, Take&& take) {
    buffer_ += bytes;
    std::size_t begin = 0;
    const std::string_view text = buffer_;
    for (std::size_t at = 0; !separator_.empty(); begin = searched_ = at + separator_.size()) {
      at = text.find(separator_, searched_);
      if (at == text.npos) break;
      if (auto r = give(text.substr(begin, at - begin), true, take); !r) return r;
      whole_ = 0;
    }
    while (text.size() - begin > 2 * piece_bytes_) {
      const std::size_t at = place_in(text.substr(begin));
      if (at == 0) break;
      if (auto r = give(text.substr(begin, at), false, take); !r) return r;
      begin += at;
      whole_ = 0;
    }
    if (text.size() - begin > most_bytes)
      return fail(
          errc::invalid_argument,
          "a document has " + std::to_string(text.size() - begin) + " bytes without a place between two words or lines to divide it", where,
          "divide it into documents of less than " + std::to_string(most_bytes >> 20) + " MiB");
    buffer_.erase(0, begin);
    // A separator may have begun in the last bytes.
    searched_ = buffer_.size() < separator_.size() ? 0 : buffer_.size() - separator_.size() + 1;
    return {};
  }

  /// Ends the stream, and with it the document. @error as `take`
  template <class Take> result<void> end(Take&& take) {
    const std::string rest = std::exchange(buffer_, {});
    searched_ = whole_ = 0;
    return give(rest, true, take);
  }

  static constexpr std::size_t most_bytes = std::size_t(64) << 20;

 private:
  template <class Take> result<void> give(std::string_view piece, bool last, Take& take) {
    if (last && separator_ == "\n" && piece.ends_with('\r')) piece.remove_suffix(1);
    begun_ = begun_ || !piece.empty();
    if (!begun_) return {};
    begun_ = !last;
    return take(piece, last);
  }

  /// A place near piece_bytes_ at which the text may be divided, or 0. A separator that is not there completely stays in what follows.
  std::size_t place_in(std::string_view text) {
    if (!divisible_ || text.size() < separator_.size() + 8) return 0;
    const std::size_t limit = text.size() - separator_.size() - 4, near = std::min(piece_bytes_, limit);
    for (std::size_t at = near; whole_ == 0 && at > 1; --at)
      if (divisible_at(text, at)) return at;
    for (std::size_t at = std::max(near + 1, whole_); at < limit; ++at)
      if (divisible_at(text, at)) return at;
    whole_ = limit;
    return 0;
  }

  std::string separator_, buffer_;
  bool divisible_, begun_ = false;  // whether a document has begun in an earlier piece
  std::size_t piece_bytes_;
  std::size_t searched_ = 0;  // no separator begins before this byte of the buffer
  std::size_t whole_ = 0;     // before this byte it cannot be divided
};

}  // namespace isotope::io
