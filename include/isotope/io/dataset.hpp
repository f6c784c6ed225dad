#pragma once
/// Text as token ids, split in two: the last tenth is for validation. Training windows are drawn by a pure function of (seed, cursor, row), so one
/// number is the position in the data; validation reads every window once, in order.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/core/philox.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/hash.hpp>
#include <isotope/io/vocabulary.hpp>

namespace isotope::io {

/// The Philox stream of training windows. Ops number their streams from 0, so data uses the other end.
inline constexpr std::uint32_t data_stream = 0xffff'ffffu;

class dataset {
 public:
  dataset() = default;
  dataset(vocabulary vocab, std::vector<std::uint16_t> tokens) : vocab_(std::move(vocab)), tokens_(std::move(tokens)) {}
  /// Ids of a vocabulary of any size: two bytes each where it has at most 65536, else four. Each is in [0, vocab.size()).
  dataset(vocabulary vocab, std::vector<std::int32_t> ids) : vocab_(std::move(vocab)) {
    if (vocab_.size() > 65536) wide_ = std::move(ids);
    else tokens_.assign(ids.begin(), ids.end());
  }

  const vocabulary& vocab() const { return vocab_; }
  std::size_t size() const { return tokens_.size() + wide_.size(); }
  /// The tokens of a vocabulary of at most 65536.
  std::span<const std::uint16_t> tokens() const { return tokens_; }
  /// A hash over every token: tells apart two texts of one vocabulary.
  std::uint64_t hash() const {
    hasher h;
    h.add(std::as_bytes(tokens()));
    h.add(std::as_bytes(std::span(wide_)));
    return h.value();
  }
  /// train = floor(0.9 n) tokens; validation = the rest.
  std::size_t training_size() const { return size() - size() / 10 - (size() % 10 != 0); }
  std::span<const std::uint16_t> training() const { return tokens().first(std::min(tokens_.size(), training_size())); }
  std::span<const std::uint16_t> validation() const { return tokens().subspan(training().size()); }

  /// Checks that each split has the length + 1 tokens that a window of `length` tokens with its targets takes.
  ///
  /// @error invalid_argument, with both splits' tokens and how many are needed
  result<void> check(std::int64_t length) const {
    const auto train = static_cast<std::int64_t>(training_size()), valid = static_cast<std::int64_t>(size() - training_size());
    if (length >= 1 && train > length && valid > length) return {};
    return fail(errc::invalid_argument,
                "windows of " + std::to_string(length) + " tokens need " + std::to_string(length + 1) + " in each split; training has " +
                    std::to_string(train) + ", validation (the last 10 %) has " + std::to_string(valid),
                "data", "give at least " + std::to_string(10 * (length + 1)) + " tokens of text, or shorten the window");
  }

  /// One training batch: tokens[r, i] = train[start + i], targets[r, i] = train[start + i + 1],
  /// start = floor(u n / 2^64), u = Philox(seed, element r, step cursor), n = train - length valid starts.
  ///
  /// @param cursor   counts micro-batches: step * micro-batches + micro-batch
  /// @param tokens   (B,S)
  /// @param targets  (B,S)
  /// Precondition: check(length) passed; both spans hold rows * length.
  void training_batch(std::uint64_t seed, std::int64_t cursor, std::int64_t length, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const {
    const std::uint64_t starts = training_size() - static_cast<std::uint64_t>(length);
    const auto row = static_cast<std::size_t>(length);
    for (std::size_t r = 0; r < tokens.size() / row; ++r) {
      // The row takes the element's low half; a cursor past 2^32 carries into the upper one.
      const std::uint64_t element = (std::uint64_t(cursor) >> 32 << 32) | r;
      const auto words = philox(seed, element, static_cast<std::uint32_t>(cursor), data_stream);
      const std::uint64_t start = scaled((std::uint64_t(words[0]) << 32) | words[1], starts);
      copy(start, tokens.subspan(r * row, row));
      copy(start + 1, targets.subspan(r * row, row));
    }
  }

  /// Returns how many consecutive, non-overlapping windows the validation split has: floor((tokens - 1) / length).
  std::int64_t validation_windows(std::int64_t length) const { return (static_cast<std::int64_t>(size() - training_size()) - 1) / length; }

  /// Fills the batch's rows with the validation windows first, first + 1, ...; rows past the last window get token 0 and target -1.
  ///
  /// @return  how many rows hold a window, which is the weight of the batch's mean loss
  std::int64_t validation_batch(std::int64_t first, std::int64_t length, std::span<std::int32_t> tokens,
                                std::span<std::int32_t> targets) const {
    const auto row = static_cast<std::size_t>(length), rows = tokens.size() / row;
    const std::int64_t windows = std::clamp(validation_windows(length) - first, std::int64_t(0), static_cast<std::int64_t>(rows));
    const auto used = static_cast<std::size_t>(windows) * row, start = training_size() + static_cast<std::size_t>(first) * row;
    if (used > 0) {
      copy(start, tokens.first(used));
      copy(start + 1, targets.first(used));
    }
    std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(used), tokens.end(), 0);
    std::fill(targets.begin() + static_cast<std::ptrdiff_t>(used), targets.end(), -1);
    return windows;
  }

 private:
  /// Copies the tokens from the first-th on.
  void copy(std::size_t first, std::span<std::int32_t> to) const {
    if (wide_.empty()) std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
    else std::copy_n(wide_.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
  }

  /// floor(u n / 2^64), computed in halves.
  static constexpr std::uint64_t scaled(std::uint64_t u, std::uint64_t n) {
    const std::uint64_t low = (u & 0xffff'ffffu) * (n & 0xffff'ffffu), left = (u >> 32) * (n & 0xffff'ffffu);
    const std::uint64_t right = (u & 0xffff'ffffu) * (n >> 32), middle = (low >> 32) + (left & 0xffff'ffffu) + (right & 0xffff'ffffu);
    return (u >> 32) * (n >> 32) + (left >> 32) + (right >> 32) + (middle >> 32);
  }

  vocabulary vocab_;
  std::vector<std::uint16_t> tokens_;
  std::vector<std::int32_t> wide_;  // of a vocabulary of more than 65536; then `tokens_` is empty
};

/// Makes a dataset of a text's own characters (the vocabulary is the sorted set of its code points) or of its bytes.
///
/// @error invalid_argument: empty text, opaque tokens, more than 65536 characters; bad_format: not UTF-8, with the byte offset
inline result<dataset> text_dataset(std::string_view text, text_unit unit, const std::string& where) {
  if (unit == text_unit::tokens)
    return fail(errc::invalid_argument, "text has no token numbers", where, "use characters or bytes as units");
  if (text.empty()) return fail(errc::invalid_argument, "the text is empty", where, "give some text");
  std::vector<std::uint16_t> tokens;
  if (unit == text_unit::bytes) {
    tokens.resize(text.size());
    std::transform(text.begin(), text.end(), tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
    return dataset(vocabulary::of_bytes(), std::move(tokens));
  }
  constexpr std::size_t all_codes = 0x110000;
  std::vector<std::int32_t> ids(all_codes, -1);
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters) {
    const auto [code, bytes] = decode_utf8(text, at);
    if (bytes == 0)
      return fail(errc::bad_format, "not UTF-8 at byte " + std::to_string(at), where, "convert the text to UTF-8, or use bytes as units");
    ids[code] = 0;
    at += bytes;
  }
  std::vector<std::uint32_t> codes;
  for (std::uint32_t code = 0; code < all_codes; ++code)
    if (ids[code] == 0) {
      ids[code] = static_cast<std::int32_t>(codes.size());
      codes.push_back(code);
    }
  if (codes.size() > 65536)
    return fail(errc::invalid_argument, std::to_string(codes.size()) + " different characters, at most 65536 are supported", where,
                "use bytes as units");
  tokens.reserve(characters);
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = decode_utf8(text, at);
    tokens.push_back(static_cast<std::uint16_t>(ids[code]));
    at += bytes;
  }
  return dataset(vocabulary::of_characters(std::move(codes)), std::move(tokens));
}

/// Makes a dataset of a token file's bytes: u16 little-endian numbers, nothing else.
///
/// @error invalid_argument: empty, a vocabulary outside 1 .. 65536; truncated: an odd byte; bad_format: an id >= vocab, with its position
inline result<dataset> token_dataset(std::span<const std::byte> bytes, std::int32_t vocab, const std::string& where) {
  if (vocab < 1 || vocab > 65536)
    return fail(errc::invalid_argument, "a vocabulary of " + std::to_string(vocab) + " does not fit 16-bit tokens", where,
                "give 1 to 65536");
  if (bytes.empty()) return fail(errc::invalid_argument, "the token file is empty", where, "give some tokens");
  if (bytes.size() % 2 != 0)
    return fail(errc::truncated, std::to_string(bytes.size()) + " bytes are not whole 16-bit tokens", where, "write it again");
  std::vector<std::uint16_t> tokens(bytes.size() / 2);
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  const auto bad = std::find_if(tokens.begin(), tokens.end(), [&](std::uint16_t t) { return t >= vocab; });
  if (bad != tokens.end())
    return fail(
        errc::bad_format,
        "token " + std::to_string(bad - tokens.begin()) + " is " + std::to_string(*bad) + ", the vocabulary has " + std::to_string(vocab),
        where, "give the vocabulary of the tokenizer that wrote the file");
  return dataset(vocabulary::of_tokens(vocab), std::move(tokens));
}

/// Reads a file as characters, bytes or tokens.
///
/// @param vocab  the vocabulary's size, read for tokens only
/// @error as read_file, text_dataset and token_dataset
inline result<dataset> load_dataset(const std::string& path, text_unit unit, std::int32_t vocab = 0) {
  auto file = read_file(path);
  if (!file) return std::move(file).error();
  return unit == text_unit::tokens ? token_dataset(file->view(), vocab, path) : text_dataset(file->text(), unit, path);
}

}  // namespace isotope::io
