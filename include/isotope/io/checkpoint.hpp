#pragma once
/// A training checkpoint: a safetensors file whose metadata holds all that the next step depends on, and a hash of everything else.
/// It holds no clock, path or flag: two runs that reach the same step write the same bytes.
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/hash.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/safetensors.hpp>
#include <isotope/io/vocabulary.hpp>

namespace isotope::io {

/// What stands before a parameter's name in the names of its optimizer state.
inline constexpr std::string_view adam_m = "adam.m.", adam_v = "adam.v.", sgd_momentum = "sgd.momentum.";

struct training_state {
  std::string model;                // canonical JSON of the model's configuration
  std::string run;                  // canonical JSON of the run's configuration
  std::int64_t step = 0;            // steps done
  std::int64_t optimizer_step = 0;  // updates applied: a skipped step is none
  std::uint64_t seed = 0;
  std::int64_t cursor = 0;  // micro-batches drawn from the data
  double best_validation_loss = std::numeric_limits<double>::infinity();
  vocabulary vocab = vocabulary::of_bytes();
  text_pairs extra;  // the trainer's own counters, kept as they are
  friend bool operator==(const training_state&, const training_state&) = default;
};

/// What to save. The tensors' bytes belong to the caller.
struct checkpoint_view {
  training_state state;
  std::vector<stored_tensor> tensors;
};

/// A view of f32 values for checkpoint_view::tensors.
inline stored_tensor f32_tensor(std::string tensor, std::vector<std::int64_t> dims, std::span<const float> values) {
  return {std::move(tensor), f32_elements, std::move(dims), std::as_bytes(values)};
}

/// What was saved, in memory.
struct checkpoint {
  training_state state;
  safetensors contents;

  /// Copies a tensor. @error model_mismatch: none of this name, or of another number of elements
  result<void> read(std::string_view tensor, std::span<float> out) const {
    const stored_tensor* t = contents.find(tensor);
    const std::string in = "tensor '" + std::string(tensor) + "'";
    if (t == nullptr) return fail(errc::model_mismatch, "the checkpoint does not have it", in, "resume with the model that was trained");
    if (t->elems() != static_cast<std::int64_t>(out.size()))
      return fail(errc::model_mismatch,
                  "the checkpoint has " + std::to_string(t->elems()) + " elements, the model " + std::to_string(out.size()), in,
                  "resume with the model that was trained");
    return copy_f32(*t, out);
  }
};

namespace detail {

inline constexpr std::string_view checkpoint_opening = "{\"__metadata__\":{\"hash\":\"";
inline constexpr std::string_view blank_hash = "0000000000000000";
inline constexpr std::size_t hash_at = 8 + checkpoint_opening.size();
inline constexpr std::string_view checkpoint_format = "isotope training checkpoint";
inline constexpr int checkpoint_version = 1;

inline std::string hash_digits(std::uint64_t hash) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += hex[(hash >> shift) & 15];
  return out;
}

/// The hash of a file image whose own 16 digits read as zeros.
inline std::string hash_of_image(std::span<const std::byte> all) {
  hasher h;
  h.add(all.first(hash_at));
  h.add(std::as_bytes(std::span(blank_hash)));
  h.add(all.subspan(hash_at + blank_hash.size()));
  return hash_digits(h.value());
}

inline text_pairs notes_of(const training_state& s) {
  text_pairs notes = {{"hash", std::string(blank_hash)},
                      {"format", std::string(checkpoint_format)},
                      {"version", std::to_string(checkpoint_version)},
                      {"model", s.model},
                      {"run", s.run},
                      {"step", std::to_string(s.step)},
                      {"optimizer_step", std::to_string(s.optimizer_step)},
                      {"seed", std::to_string(s.seed)},
                      {"cursor", std::to_string(s.cursor)},
                      {"best_validation_loss", number_text(s.best_validation_loss)},
                      {"vocabulary", s.vocab.to_json()}};
  for (const auto& [key, value] : s.extra) notes.emplace_back("extra." + key, value);
  return notes;
}

template <class T> bool parse_note(const safetensors& file, std::string_view key, T& out) {
  const std::string* text = file.note(key);
  if (text == nullptr) return false;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  return error == std::errc() && end == text->data() + text->size();
}

inline result<training_state> state_of(const safetensors& file, const std::string& where) {
  training_state s;
  const std::string *format = file.note("format"), *model = file.note("model"), *run = file.note("run"), *vocab = file.note("vocabulary");
  if (format == nullptr || *format != checkpoint_format)
    return fail(errc::bad_format, "not an isotope checkpoint", where, "give a checkpoint that isotope-train wrote");
  int version = 0;
  if (!parse_note(file, "version", version) || version != checkpoint_version)
    return fail(errc::version_mismatch,
                "checkpoint version " + std::to_string(version) + "; this program reads version " + std::to_string(checkpoint_version),
                where, "use the program that wrote it");
  if (model == nullptr || run == nullptr || vocab == nullptr || !parse_note(file, "step", s.step) ||
      !parse_note(file, "optimizer_step", s.optimizer_step) || !parse_note(file, "seed", s.seed) || !parse_note(file, "cursor", s.cursor) ||
      !parse_note(file, "best_validation_loss", s.best_validation_loss))
    return fail(errc::bad_format, "the checkpoint's state is not complete", where, "take an older checkpoint of the folder");
  auto words = vocabulary::from_json(*vocab, where);
  if (!words) return std::move(words).error();
  s.model = *model;
  s.run = *run;
  s.vocab = *std::move(words);
  for (const auto& [key, value] : file.metadata)
    if (key.starts_with("extra.")) s.extra.emplace_back(key.substr(6), value);
  return s;
}

}  // namespace detail

/// Writes a checkpoint, whole or not at all.
///
/// @error write_failed: the previous file is unchanged; invalid_argument: a tensor's dims or name
inline result<void> save_checkpoint(const std::string& path, const checkpoint_view& view, const file_calls& calls = {}) {
  auto header = safetensors_header(view.tensors, detail::notes_of(view.state));
  if (!header) return std::move(header).error();
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(*header))};
  for (const auto& t : view.tensors) parts.push_back(t.bytes);
  hasher h;
  for (const auto part : parts) h.add(part);  // the header's digits still read as zeros
  header->replace(detail::hash_at, detail::blank_hash.size(), detail::hash_digits(h.value()));
  return write_file(path, parts, calls);
}

/// Reads a checkpoint's image. `where` names it in failures.
///
/// @error truncated, corrupt (any bit flipped), bad_format (not a checkpoint), version_mismatch
inline result<checkpoint> parse_checkpoint(file_bytes file, const std::string& where) {
  const std::size_t size = file.size(), shortest = detail::hash_at + detail::blank_hash.size();
  const char* fix = "use an older checkpoint";
  if (size < shortest) return fail(errc::truncated, "has " + std::to_string(size) + " bytes, too few for a checkpoint", where, fix);
  const std::string_view image = file.text();
  const bool opens = image.substr(8, detail::checkpoint_opening.size()) == detail::checkpoint_opening;
  const bool whole = opens && image.substr(detail::hash_at, detail::blank_hash.size()) == detail::hash_of_image(file.view());
  auto contents = parse_safetensors(std::move(file), where);
  if (!contents && contents.error().code == errc::truncated) {
    contents = fail(errc::truncated, "the checkpoint is cut short: " + contents.error().what, contents.error().where, fix);
    return std::move(contents).error();
  }
  if (!opens) return fail(errc::bad_format, "not an isotope checkpoint, or its first bytes are damaged", where, fix);
  if (!whole) return fail(errc::corrupt, "the checkpoint's hash differs: its " + std::to_string(size) + " bytes are damaged", where, fix);
  if (!contents) return std::move(contents).error();
  auto state = detail::state_of(*contents, where);
  if (!state) return std::move(state).error();
  return checkpoint{*std::move(state), *std::move(contents)};
}

/// Reads a checkpoint. @error as read_file and parse_checkpoint
inline result<checkpoint> load_checkpoint(const std::string& path) {
  // Nobody may ever write into a pipe of this name: opening it would wait for that.
  if (struct stat status{}; ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return fail(errc::unreadable, "is not a regular file", path, "name a checkpoint file or its folder");
  auto file = read_file(path);
  if (!file) return std::move(file).error();
  return parse_checkpoint(*std::move(file), path);
}

}  // namespace isotope::io
