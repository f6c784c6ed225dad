#pragma once
/// Writes the weights of a session as a model.safetensors that another program reads, by a table of names, and makes the folder for it.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/io/file_writer.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/io/safetensors_index.hpp>

namespace isotope::interop {

/// Writes a file of F32 tensors, whole or not at all. Host memory holds one parameter and its transpose.
///
/// @param prefix  stands before every name
/// @error invalid_argument: a tensor group divides a parameter; invalid_model: a parameter has no name in the table; non_finite: a weight is NaN or infinite; write_failed; out_of_memory; as
/// the session's read
template <class Session> requires train::CanRead<Session> && train::HasParameters<Session>
result<void> save_weights(const std::string& path, Session& session, const model::stored_names& names, std::string_view prefix,
                          const io::file_calls& calls = {}) {
  struct target {
    std::size_t slot;
    const model::stored_name* name;
  };
  const auto slots = session.parameters();
  std::vector<target> targets;
  std::vector<io::tensor_entry> entries;
  std::uint64_t bytes = 0;
  std::int64_t most = 0;
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const std::string_view ours = slots[k].path.view();
    if (slots[k].pieces.divides())
      return fail(errc::invalid_argument, "is divided between " + std::to_string(slots[k].pieces.parts) + " devices",
                  "parameter '" + std::string(ours) + "'", "save a checkpoint, and restore it on one device");
    const std::size_t before = targets.size();
    for (const model::stored_name& n : names.weights) {
      const std::int64_t block = model::block_of(n.ours, ours);
      if (block < 0) continue;
      io::tensor_entry e{std::string(prefix) + model::in_block(n.theirs, block), io::f32_elements, detail::stored_dims(slots[k], n)};
      e.bytes = sizeof(float);
      for (const std::int64_t d : e.dims) e.bytes *= std::uint64_t(d);
      bytes += e.bytes;
      targets.push_back({k, &n});
      entries.push_back(std::move(e));
    }
    if (targets.size() == before)
      return fail(errc::invalid_model, "has no name in the format of the folder", "parameter '" + std::string(ours) + "'",
                  "add it to the model's table of names");
    most = std::max(most, slots[k].dims.count());
  }
  auto header = io::safetensors_header(entries, {{"format", "pt"}});
  if (!header) return std::move(header).error();
  auto room = detail::room_for(most, path), other = detail::room_for(most, path);
  if (!room) return std::move(room).error();
  if (!other) return std::move(other).error();

  auto file = io::file_writer::open(path, header->size() + bytes, calls);
  if (!file) return std::move(file).error();
  if (auto r = file->write(std::as_bytes(std::span(*header))); !r) return r;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const slot& s = slots[targets[i].slot];
    const std::span values(room->get(), std::size_t(s.dims.count()));
    if (i == 0 || targets[i - 1].slot != targets[i].slot) {
      if (auto r = session.read(tensor_kind::parameter, targets[i].slot, values); !r) return r;
      if (auto r = detail::all_finite(values, "parameter '" + std::string(s.path.view()) + "'"); !r) return r;
    }
    const model::stored_name& n = *targets[i].name;
    const auto [all, cols] = detail::rows_and_cols(s.dims);
    const std::int64_t rows = all / n.whole * n.count;
    auto part = values.subspan(std::size_t(all / n.whole * n.first * cols), std::size_t(rows * cols));
    if (n.transposed) {
      detail::transpose(part.data(), rows, cols, other->get(), rows);
      part = std::span(other->get(), part.size());
    }
    if (auto r = file->write(std::as_bytes(part)); !r) return r;
  }
  return file->commit();
}

/// Makes the folder in which a model is to be saved. A folder that holds shards is refused, since readers would find two models in it.
/// @error write_failed: it cannot be made; invalid_argument: it holds a model in shards
inline result<void> make_model_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path, error))
    return fail(errc::write_failed, "cannot make the folder: " + (error ? error.message() : "a file has its name"), path,
                "check the path and its permissions");
  if (io::detail::kind_of_file(path + "/" + std::string(io::detail::index_name)) != io::detail::file_kind::none)
    return fail(errc::invalid_argument, "holds a model in shards (" + std::string(io::detail::index_name) + ")", path,
                "name another folder");
  return {};
}

}  // namespace isotope::interop
