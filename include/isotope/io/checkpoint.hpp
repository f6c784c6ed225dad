#pragma once
/// A training checkpoint: a safetensors file whose metadata holds everything that the next step depends on, and a hash of the rest. It holds no
/// clock, path or flag, so two runs that reach the same step write the same bytes. Neither writer nor reader holds it in memory as a whole.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/byte_source.hpp>
#include <isotope/io/file_writer.hpp>
#include <isotope/io/hash.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/safetensors_file.hpp>
#include <isotope/io/vocabulary.hpp>

namespace isotope::io {

/// The prefixes of a parameter's name in the names of its optimizer state.
inline constexpr std::string_view adam_m = "adam.m.", adam_v = "adam.v.", sgd_momentum = "sgd.momentum.";
/// What stands before the label of what a model keeps from run to run.
inline constexpr std::string_view model_state = "state.";

struct training_state {
  std::string model;                // canonical JSON of the model's configuration
  std::string run;                  // canonical JSON of the run's configuration
  std::int64_t step = 0;            // steps done
  std::int64_t optimizer_step = 0;  // updates applied; a skipped step applies none
  std::uint64_t seed = 0;
  std::int64_t cursor = 0;  // micro-batches drawn from the data
  double best_validation_loss = std::numeric_limits<double>::infinity();
  vocabulary vocab = vocabulary::of_bytes();
  text_pairs extra;  // the trainer's own counters, kept as they are
  friend bool operator==(const training_state&, const training_state&) = default;
};

/// What to save. The caller owns the tensors' bytes.
struct checkpoint_view {
  training_state state;
  std::vector<stored_tensor> tensors;
};

/// Returns a view of f32 values for checkpoint_view::tensors.
inline stored_tensor f32_tensor(std::string tensor, std::vector<std::int64_t> dims, std::span<const float> values) {
  return {std::move(tensor), f32_elements, std::move(dims), std::as_bytes(values)};
}

/// What was saved. The tensors stay in the open file until they are read; all of the file was read once and its hash was right.
struct checkpoint {
  training_state state;
  safetensors_file contents;
  std::vector<std::uint64_t> hashes;  // of each tensor's bytes

  /// Returns a tensor's entry. @error model_mismatch: there is none of this name, or it has another number of elements; invalid_argument: it holds
  /// integers
  result<const tensor_entry*> find(std::string_view tensor, std::size_t elems) const {
    const tensor_entry* t = contents.find(tensor);
    const std::string in = "tensor '" + std::string(tensor) + "'";
    if (t == nullptr) return fail(errc::model_mismatch, "the checkpoint does not have it", in, "resume with the model that was trained");
    if (t->elems() != static_cast<std::int64_t>(elems))
      return fail(errc::model_mismatch,
                  "the checkpoint has " + std::to_string(t->elems()) + " elements, the model " + std::to_string(elems), in,
                  "resume with the model that was trained");
    if (auto r = detail::reads_as_f32(t->name, t->type, t->elems(), elems); !r) return std::move(r).error();
    return t;
  }
  /// As with a number of elements; model_mismatch also for another shape, naming both.
  result<const tensor_entry*> find(std::string_view tensor, std::span<const std::int64_t> dims, std::size_t elems) const {
    auto t = find(tensor, elems);
    if (!t || std::equal(dims.begin(), dims.end(), (*t)->dims.begin(), (*t)->dims.end())) return t;
    return fail(errc::model_mismatch, "the checkpoint has the shape " + dims_text((*t)->dims) + ", the model " + dims_text(dims),
                "tensor '" + std::string(tensor) + "'", "resume with the model that was trained");
  }

  /// Copies a tensor.
  ///
  /// @error as find; unreadable; corrupt: its bytes have changed since they were hashed, and `out` must not be used
  result<void> read(std::string_view tensor, std::span<float> out) const {
    const auto t = find(tensor, out.size());
    if (!t) return t.error();
    hasher h;
    if (auto r = contents.read_f32(**t, out, [&](std::span<const std::byte> bytes) { h.add(bytes); }); !r) return r;
    if (h.value() == hashes[static_cast<std::size_t>(*t - contents.tensors.data())]) return {};
    return fail(errc::corrupt, "the file was changed while it was read", contents.source.where() + ": tensor '" + (*t)->name + "'",
                "let nothing write into the file, and read it again");
  }
};

namespace detail {

inline constexpr std::string_view checkpoint_opening = "{\"__metadata__\":{\"hash\":\"";
inline constexpr std::string_view blank_hash = "0000000000000000";
inline constexpr std::size_t hash_at = 8 + checkpoint_opening.size();
inline constexpr std::string_view checkpoint_format = "isotope training checkpoint";
inline constexpr int checkpoint_version = 1;

/// The size of the shortest file that holds a hash.
inline constexpr std::size_t hashed_from = hash_at + blank_hash.size();

/// Hashes a file image, with the 16 digits of its own hash read as zeros.
inline std::string hash_of_image(std::span<const std::byte> all) {
  hasher h;
  h.add(all.first(hash_at));
  h.add(std::as_bytes(std::span(blank_hash)));
  h.add(all.subspan(hashed_from));
  return hash_digits(h.value());
}

/// A file's own hash as it is stated and as it is, and the hash of each of its tensors.
struct file_hashes {
  bool opens = false;  // whether the file begins as checkpoints do
  std::string said, found;
  std::vector<std::uint64_t> tensors;
};

/// Reads all of a file, at least hashed_from bytes, in pieces.
/// @param index  null if the header cannot be read: then no tensor is hashed
/// @error as byte_source::read
inline result<file_hashes> hashes_of(const byte_source& file, const safetensors_index* index) {
  file_hashes out;
  std::array<std::byte, hashed_from> head{};
  if (auto r = file.read(0, head); !r) return std::move(r).error();
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  out.opens = text.substr(8, checkpoint_opening.size()) == checkpoint_opening;
  out.said = text.substr(hash_at);
  hasher whole;
  whole.add(std::span(head).first(hash_at));
  whole.add(std::as_bytes(std::span(blank_hash)));
  std::vector<std::byte> buffer(piece_bytes);
  std::uint64_t at = head.size();
  const auto take_to = [&](std::uint64_t end, hasher* own) -> result<void> {
    for (std::size_t n = 0; at < end; at += n) {
      n = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - at));
      const auto piece = std::span(buffer).first(n);
      if (auto r = file.read(at, piece); !r) return r;
      whole.add(piece);
      if (own != nullptr) own->add(piece);
    }
    return {};
  };
  if (index != nullptr && index->data_at >= head.size()) {
    if (auto r = take_to(index->data_at, nullptr); !r) return std::move(r).error();
    for (const tensor_entry& t : index->tensors) {
      hasher own;
      if (auto r = take_to(index->data_at + t.begin + t.bytes, &own); !r) return std::move(r).error();
      out.tensors.push_back(own.value());
    }
  }
  if (auto r = take_to(file.size(), nullptr); !r) return std::move(r).error();
  out.found = hash_digits(whole.value());
  return out;
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

template <class T> bool parse_note(const safetensors_index& file, std::string_view key, T& out) {
  const std::string* text = file.note(key);
  if (text == nullptr) return false;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  return error == std::errc() && end == text->data() + text->size();
}

inline result<training_state> state_of(const safetensors_index& file, const std::string& where) {
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

/// Writes a checkpoint, whole or not at all, as its tensors' bytes arrive.
///
/// The header contains the hash, which is known only at the end: it is written over zeros in the temporary file before that takes the file's name. If
/// the target is a pipe or a device, which takes each byte once, the tensors are requested twice.
/// @param tensors  in the order of the file; `begin` is ignored
/// @param give     give(put) calls result<void> put(bytes) with the bytes of all tensors, one after another, in pieces of any size; it returns the
/// first
///                 failure, put's or its own
/// @error write_failed: the previous file is unchanged; invalid_argument: a tensor's dims or name, or not as many bytes as they need; as `give`
template <class Give>
result<void> save_checkpoint(const std::string& path, const training_state& state, std::span<const tensor_entry> tensors, const Give& give,
                             const file_calls& calls = {}) {
  auto header = safetensors_header(tensors, detail::notes_of(state));
  if (!header) return std::move(header).error();
  std::uint64_t size = 0;
  for (const tensor_entry& t : tensors) size += t.bytes;
  const auto header_bytes = [&] { return std::as_bytes(std::span(*header)); };
  // The hash of the header, whose digits read as zeros, and of everything given to put(bytes).
  const auto hash_while = [&](const auto& put) -> result<std::string> {
    hasher h;
    h.add(header_bytes());
    std::uint64_t given = 0;
    auto r = give([&](std::span<const std::byte> bytes) -> result<void> {
      h.add(bytes);
      given += bytes.size();
      return put(bytes);
    });
    if (!r) return std::move(r).error();
    if (given == size) return detail::hash_digits(h.value());
    return fail(errc::invalid_argument, "its tensors need " + std::to_string(size) + " bytes, " + std::to_string(given) + " were given",
                path, "give as many bytes as the dimensions need");
  };
  auto file = file_writer::open(path, header->size() + size, calls);
  if (!file) return std::move(file).error();
  if (!file->rewrites()) {
    const auto hash = hash_while([](std::span<const std::byte>) { return result<void>(); });
    if (!hash) return hash.error();
    header->replace(detail::hash_at, hash->size(), *hash);
    if (auto r = file->write(header_bytes()); !r) return r;
    if (auto r = give([&](std::span<const std::byte> bytes) { return file->write(bytes); }); !r) return r;
    return file->commit();
  }
  if (auto r = file->write(header_bytes()); !r) return r;
  const auto hash = hash_while([&](std::span<const std::byte> bytes) { return file->write(bytes); });
  if (!hash) return hash.error();
  if (auto r = file->rewrite(detail::hash_at, std::as_bytes(std::span(*hash))); !r) return r;
  return file->commit();
}

/// The same for tensors in memory.
inline result<void> save_checkpoint(const std::string& path, const checkpoint_view& view, const file_calls& calls = {}) {
  std::vector<tensor_entry> entries;
  for (const stored_tensor& t : view.tensors) entries.push_back({t.name, t.type, t.dims, 0, t.bytes.size()});
  const auto give = [&](const auto& put) -> result<void> {
    for (const stored_tensor& t : view.tensors)
      if (auto r = put(t.bytes); !r) return r;
    return {};
  };
  return save_checkpoint(path, view.state, entries, give, calls);
}

/// Reads a checkpoint's state, and the whole file once to compare its hash. Tensors are read on demand.
///
/// @error truncated, corrupt (any bit flipped), bad_format (not a checkpoint), version_mismatch; as byte_source::read
inline result<checkpoint> open_checkpoint(byte_source file) {
  const std::string where = file.where();
  const std::uint64_t size = file.size();
  const char* fix = "use an older checkpoint";
  if (size < detail::hashed_from)
    return fail(errc::truncated, "has " + std::to_string(size) + " bytes, too few for a checkpoint", where, fix);
  auto index = detail::index_of(file);
  if (!index && index.error().code == errc::truncated)
    return fail(errc::truncated, "the checkpoint is cut short: " + index.error().what, index.error().where, fix);
  auto hashes = detail::hashes_of(file, index ? &*index : nullptr);
  if (!hashes) return std::move(hashes).error();
  if (!hashes->opens) return fail(errc::bad_format, "not an isotope checkpoint, or its first bytes are damaged", where, fix);
  if (hashes->said != hashes->found || (index && hashes->tensors.size() != index->tensors.size()))
    return fail(errc::corrupt, "the checkpoint's hash differs: its " + std::to_string(size) + " bytes are damaged", where, fix);
  if (!index) return std::move(index).error();
  auto state = detail::state_of(*index, where);
  if (!state) return std::move(state).error();
  checkpoint out{*std::move(state), {}, std::move(hashes->tensors)};
  static_cast<safetensors_index&>(out.contents) = *std::move(index);
  out.contents.source = std::move(file);
  return out;
}

/// Reads a checkpoint's image in memory. `where` names it in failures. @error as open_checkpoint
inline result<checkpoint> parse_checkpoint(file_bytes file, const std::string& where) {
  return open_checkpoint(byte_source(std::move(file), where));
}

/// Opens a checkpoint. @error as byte_source::open and open_checkpoint
inline result<checkpoint> load_checkpoint(const std::string& path) {
  // A pipe of this name may never get a writer: opening it would wait for one.
  if (struct stat status{}; ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return fail(errc::unreadable, "is not a regular file", path, "name a checkpoint file or its folder");
  auto file = byte_source::open(path);
  if (!file) return std::move(file).error();
  return open_checkpoint(*std::move(file));
}

}  // namespace isotope::io
