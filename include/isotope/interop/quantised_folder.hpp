#pragma once
/// Folders whose weights are in blocks (core/quantized.hpp): tensors of U8 with shape (out, K / 32, 34) for q8_0 or (out, K / 32, 18) for q4_0, each row of the
/// weight as the blocks that files have. Rows are outputs, also of layers that the folder's family stores transposed.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/quantized.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/interop/tuned_folder.hpp>
#include <isotope/io/file_writer.hpp>
#include <isotope/plan/weight_storage.hpp>

namespace isotope::interop {

namespace detail {

/// Writes numbers as the blocks of a file. @error as file_writer::write
inline result<void> write_blocks(io::file_writer& file, dtype type, std::span<const float> values) {
  const auto size = std::size_t(quantized::block_bytes(type)), some = io::detail::piece_bytes / size;
  std::vector<std::byte> piece(some * size);
  const std::size_t blocks = values.size() / std::size_t(quantized::block);
  for (std::size_t done = 0, n = 0; done < blocks; done += n) {
    n = std::min(some, blocks - done);
    for (std::size_t i = 0; i < n; ++i)
      quantized::put_in_file(type, quantized::quantize(type, values.data() + (done + i) * std::size_t(quantized::block)),
                             piece.data() + i * size);
    if (auto r = file.write(std::span(piece).first(n * size)); !r) return r;
  }
  return {};
}

}  // namespace detail

/// The storage of the weights of a folder: q8_0 or q4_0, null where none are in blocks. With it, exact arithmetic gives the bits that f32 weights of the same
/// values give, since blocks that were made here are the same when they are made again.
inline weight_storage storage_of(const io::model_folder& folder) {
  for (std::size_t k = 0; k < folder.size(); ++k) {
    const io::tensor_entry& t = folder.tensor(k);
    if (t.dims.size() != 3) continue;
    for (const weight_storage how : {weights::q8_0, weights::q4_0})
      if (detail::in_blocks_of(how({}, {}), t, t.dims[0], t.dims[1] * quantized::block)) return how;
  }
  return nullptr;
}

/// Saves a model with the weights in blocks that a plan stores so, the other weights in F32, the files of the tokenizer, then config.json. Each file is
/// written whole or not at all. Host memory holds one tensor.
///
/// @param slots  of a plan with such weights: their formats decide
/// @param match  of the folder and these slots
/// @error invalid_argument: the folder has weights in blocks already; non_finite: a weight has no block; as make_new_model_folder, read_f32, io::read_file and
/// io::write_file
inline result<void> save_quantised(const std::string& path, const io::model_folder& source, const weight_match& match,
                                   std::span<const slot> slots, const io::file_calls& calls = {}) {
  if (const weight_storage has = storage_of(source); has != nullptr)
    return fail(errc::invalid_argument, "has weights in " + std::string(name_of(has({}, {}))) + " already", source.path,
                "give the folder that it was made of");
  const auto type = [&](const weight_source& s) { return slots[s.slot].type; };
  std::vector<weight_source> all;
  for (const bool blocks : {false, true})  // larger elements come first in a file
    for (const weight_source& s : match.sources)
      if (in_blocks(type(s)) == blocks) all.push_back(s);
  std::vector<io::tensor_entry> entries;
  std::uint64_t bytes = 0;
  std::int64_t most = 0;
  std::string_view format = "f32";
  for (weight_source& s : all) {
    io::tensor_entry e = source.tensor(s.tensor);
    e.begin = 0;
    e.type = io::f32_elements;
    if (in_blocks(type(s))) {
      format = name_of(type(s));
      e.type = io::u8_elements;
      e.dims = {s.rows, s.cols / quantized::block, quantized::block_bytes(type(s))};
    } else {
      s.transposed = false;  // as in the file
    }
    e.bytes = std::uint64_t(e.type.bytes);
    for (const std::int64_t d : e.dims) e.bytes *= std::uint64_t(d);
    bytes += e.bytes;
    most = std::max(most, s.rows * s.cols);
    entries.push_back(std::move(e));
  }
  auto header = io::safetensors_header(entries, {{"format", "pt"}, {"weights", std::string(format)}});
  if (!header) return std::move(header).error();
  if (auto r = make_new_model_folder(path); !r) return r;
  const std::string to = path + "/" + std::string(io::detail::weights_name);
  auto room = detail::room_for(most, to);
  if (!room) return std::move(room).error();
  auto file = io::file_writer::open(to, header->size() + bytes, calls);
  if (!file) return std::move(file).error();
  if (auto r = file->write(std::as_bytes(std::span(*header))); !r) return r;
  for (const weight_source& s : all) {
    const io::safetensors_file& from = source.file_of(s.tensor);
    const io::tensor_entry& t = source.tensor(s.tensor);
    const std::string where = from.source.where() + ": tensor '" + t.name + "'";
    const std::span values(room->get(), std::size_t(s.rows * s.cols));
    if (auto r = detail::read_part(from, t, s, values); !r) return r;
    if (auto r = detail::all_finite(values, where); !r) return r;
    if (!in_blocks(type(s))) {
      if (auto r = file->write(std::as_bytes(values)); !r) return r;
      continue;
    }
    for (const float v : values)
      if (!(std::fabs(v) <= quantized::largest(type(s))))
        return fail(errc::non_finite, std::to_string(v) + " is beyond the range of " + std::string(format), where, "choose f16 or bf16");
    if (auto r = detail::write_blocks(*file, type(s), values); !r) return r;
  }
  if (auto r = file->commit(); !r) return r;
  return save_companions(path, source, calls);
}

}  // namespace isotope::interop
