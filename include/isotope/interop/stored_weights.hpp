#pragma once
/// Moves weights between a folder of another program and a session, by a table of names (model/stored_names.hpp). All names and shapes
/// are compared before the first weight is written.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/core/quantized.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/model/stored_names.hpp>
#include <isotope/plan/local_plan.hpp>
#include <isotope/train/mesh_tensors.hpp>
#include <isotope/train/session.hpp>

namespace isotope::interop {

/// A stored tensor and the rows of a parameter that it holds.
struct weight_source {
  std::size_t slot = 0, tensor = 0;  // of the session, of the folder
  std::int64_t first = 0, rows = 0, cols = 1;
  bool transposed = false;
  dtype blocks = dtype::f32;  // q8_0 or q4_0: the tensor is U8 with rows of blocks, as interop/quantised_folder.hpp says
};

/// How the tensors of a folder and the parameters of a model match.
struct weight_match {
  std::vector<weight_source> sources;  // in the order of slots
  std::size_t complete = 0;            // slots that the folder holds whole
  // Sentences by name: a tensor that a parameter needs and the folder lacks; a tensor that belongs to nothing; one of another shape or
  // type.
  std::vector<std::string> missing, unused, misshapen;
  std::vector<std::string> left_out;  // tensors of heads that the model does not have: no reason to refuse the folder
  bool whole() const { return missing.empty() && unused.empty() && misshapen.empty(); }
};

namespace detail {

/// The shape of a parameter as all devices of a tensor group have it together.
inline shape whole_dims(const slot& s) { return s.pieces.whole(s.dims); }
/// The rows and columns of a parameter: a vector is one column, further axes count as columns.
inline std::pair<std::int64_t, std::int64_t> rows_and_cols(const shape& dims) {
  const std::int64_t rows = dims.rank > 0 ? dims[0] : 1;
  return {rows, rows > 0 ? dims.count() / rows : 1};
}
/// The shape in which a part of a parameter is stored.
inline std::vector<std::int64_t> stored_dims(const slot& s, const model::stored_name& n) {
  std::vector<std::int64_t> dims;
  const shape all = whole_dims(s);
  for (int d = 0; d < all.rank; ++d) dims.push_back(all[d]);
  if (!dims.empty()) dims[0] = dims[0] / n.whole * n.count;
  if (n.transposed && dims.size() == 2) std::swap(dims[0], dims[1]);
  return dims;
}
/// Whether a tensor holds (rows, cols) in blocks of this format.
inline bool in_blocks_of(dtype type, const io::tensor_entry& t, std::int64_t rows, std::int64_t cols) {
  return t.type == io::u8_elements && t.dims.size() == 3 && cols % quantized::block == 0 && t.dims[0] == rows &&
         t.dims[1] == cols / quantized::block && t.dims[2] == quantized::block_bytes(type);
}
inline std::string_view without_prefix(std::string_view name, std::string_view prefix) {
  return !prefix.empty() && name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}
/// Finds a tensor by its name with or without the prefix. @error bad_format: the folder has both
inline result<std::size_t> find_either(const io::model_folder& folder, const std::string& name, std::string_view prefix) {
  const std::size_t bare = folder.find(name), long_one = prefix.empty() ? folder.size() : folder.find(std::string(prefix) + name);
  if (bare < folder.size() && long_one < folder.size())
    return fail(errc::bad_format, "has both '" + name + "' and '" + std::string(prefix) + name + "'", folder.path,
                "remove one of the two from the folder's files");
  return std::min(bare, long_one);
}
/// As find_either, also by the ending that the name has in older files. @error as find_either
inline result<std::size_t> find_stored(const io::model_folder& folder, const std::string& name, const model::stored_names& names) {
  auto found = find_either(folder, name, names.prefix);
  for (const model::stored_ending& e : names.endings)
    if (found && *found == folder.size() && name.ends_with(e.usual))
      found = find_either(folder, name.substr(0, name.size() - e.usual.size()) + std::string(e.older), names.prefix);
  return found;
}

/// Whether two tensors hold the same bytes. @error as byte_source::read
inline result<bool> same_bytes(const io::model_folder& folder, std::size_t a, std::size_t b) {
  const io::tensor_entry &x = folder.tensor(a), &y = folder.tensor(b);
  if (x.type != y.type || x.dims != y.dims) return false;
  std::vector<std::byte> p(std::min<std::size_t>(io::detail::piece_bytes, x.bytes)), q(p.size());
  for (std::uint64_t done = 0; done < x.bytes; done += p.size()) {
    const auto n = std::min<std::size_t>(p.size(), x.bytes - done);
    if (auto r = folder.file_of(a).source.read(folder.file_of(a).data_at + x.begin + done, std::span(p).first(n)); !r) return r.error();
    if (auto r = folder.file_of(b).source.read(folder.file_of(b).data_at + y.begin + done, std::span(q).first(n)); !r) return r.error();
    if (std::memcmp(p.data(), q.data(), n) != 0) return false;
  }
  return true;
}

}  // namespace detail

/// Compares the tensors of a folder with the parameters of a model, by name and shape.
///
/// @error bad_format: a tensor is there with and without the prefix; invalid_model: a stored copy differs from its original, such as an
/// output layer that is not tied to the token table; as byte_source::read
inline result<weight_match> match_weights(const io::model_folder& folder, const model::stored_names& names, std::span<const slot> slots) {
  weight_match out;
  std::vector<bool> known(folder.size(), false);
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const auto [rows, cols] = detail::rows_and_cols(detail::whole_dims(slots[k]));
    bool named = false, complete = true;
    for (const model::stored_name& n : names.weights) {
      const std::int64_t block = model::block_of(n.ours, slots[k].path.view());
      if (block < 0) continue;
      named = true;
      const std::string theirs = model::in_block(n.theirs, block);
      const auto dims = detail::stored_dims(slots[k], n);
      const auto found = detail::find_stored(folder, theirs, names);
      if (!found) return found.error();
      if (*found == folder.size()) {
        out.missing.push_back(theirs + " " + io::dims_text(dims));
        complete = false;
        continue;
      }
      known[*found] = true;
      const io::tensor_entry& t = folder.tensor(*found);
      const bool divides = rows % n.whole == 0;
      weight_source source{k, *found, rows / n.whole * n.first, rows / n.whole * n.count, cols, n.transposed};
      for (const dtype type : {dtype::q8_0, dtype::q4_0})
        if (divides && slots[k].dims.rank == 2 && detail::in_blocks_of(type, t, source.rows, cols)) source.blocks = type;
      if (in_blocks(source.blocks)) {
        out.sources.push_back(source);
        continue;
      }
      if (t.dims != dims || !divides || !io::detail::to_f32(t.type, {}, {})) {
        out.misshapen.push_back(t.name + " is " + io::dims_text(t.dims) + " of " + std::string(t.type.name) + ", the model needs " +
                                io::dims_text(dims) + " of F32, F16 or BF16" +
                                (t.type == io::u8_elements ? ", or U8 " + io::dims_text(std::array{source.rows, cols / 32}) +
                                                                 " blocks of 34 (q8_0) or 18 bytes (q4_0)"
                                                           : ""));
        complete = false;
        continue;
      }
      out.sources.push_back(source);
    }
    if (!named) out.missing.push_back("a name for the parameter " + std::string(slots[k].path.view()));
    out.complete += named && complete ? 1 : 0;
  }
  for (std::size_t k = 0; k < folder.size(); ++k) {
    const std::string_view name = detail::without_prefix(folder.tensor(k).name, names.prefix);
    if (known[k] || std::any_of(names.ignored.begin(), names.ignored.end(), [&](auto p) { return model::block_of(p, name) >= 0; }))
      continue;
    const auto copy = std::find_if(names.copies.begin(), names.copies.end(), [&](const auto& c) { return c.copy == name; });
    if (copy == names.copies.end()) {
      const bool of_a_head = std::any_of(names.heads.begin(), names.heads.end(), [&](auto p) { return name.starts_with(p); });
      (of_a_head ? out.left_out : out.unused)
          .push_back(io::detail::shown(folder.tensor(k).name) + " " + io::dims_text(folder.tensor(k).dims));
      continue;
    }
    const auto original = detail::find_either(folder, std::string(copy->original), names.prefix);
    if (!original) return original.error();
    if (*original == folder.size()) continue;  // its absence is reported above
    const auto same = detail::same_bytes(folder, k, *original);
    if (!same) return same.error();
    if (!*same)
      return fail(errc::invalid_model, "differs from '" + folder.tensor(*original).name + "', and isotope ties the two",
                  folder.file_of(k).source.where() + ": tensor '" + folder.tensor(k).name + "'", "give a model whose two tables are tied");
  }
  return out;
}

/// What differs, in one line: every name, or the first 20 of a kind and the number of the others.
inline std::string text_of(const weight_match& m) {
  std::string line;
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    constexpr std::size_t most = 20;
    line += (line.empty() ? "" : "; ") + std::to_string(names.size()) + " " + std::string(what) + ": ";
    for (std::size_t i = 0; i < std::min(names.size(), most); ++i) line += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > most) line += " and " + std::to_string(names.size() - most) + " more";
  };
  add("missing", m.missing);
  add("misshapen", m.misshapen);
  add("unused", m.unused);
  return line;
}

/// Whether the weights of a folder may be loaded.
/// @param partial  parameters that the folder lacks keep their values, and tensors of no parameter are left alone; another shape is
/// always refused
/// @error model_mismatch, with all names
inline result<void> accept(const io::model_folder& folder, const weight_match& m, bool partial) {
  if (m.whole() || (partial && m.misshapen.empty() && !m.sources.empty())) return {};
  return fail(errc::model_mismatch, text_of(m), folder.path,
              m.misshapen.empty() && !m.sources.empty() ? "give the folder of the whole model, or load what is there with --partial"
                                                        : "give the folder of a model of these sizes");
}

namespace detail {

/// to[j pitch + i] = from[i cols + j] for i < rows and j < cols, in tiles of 16 x 16: a cache line of each row on both sides.
inline void transpose(const float* from, std::int64_t rows, std::int64_t cols, float* to, std::int64_t pitch) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t i = 0; i < rows; i += tile)
    for (std::int64_t j = 0; j < cols; j += tile)
      for (std::int64_t y = j; y < std::min(j + tile, cols); ++y)
        for (std::int64_t x = i; x < std::min(i + tile, rows); ++x) to[y * pitch + x] = from[x * cols + y];
}
/// to[r cols + c] = element (r, c) of a part in blocks. Reads some blocks at a time. @error as byte_source::read
inline result<void> read_blocks(const io::safetensors_file& file, const io::tensor_entry& t, dtype type, std::span<float> to) {
  const auto size = std::size_t(quantized::block_bytes(type));
  std::vector<std::byte> piece(std::min<std::size_t>(io::detail::piece_bytes / size * size, t.bytes));
  for (std::size_t done = 0, n = 0; done < t.bytes; done += n) {
    n = std::min<std::size_t>(piece.size(), t.bytes - done);
    if (auto r = file.source.read(file.data_at + t.begin + done, std::span(piece).first(n)); !r) return r;
    for (std::size_t at = 0; at < n; at += size) {
      const quantized::values b = quantized::get_from_file(type, piece.data() + at);
      float* y = to.data() + (done + at) / size * std::size_t(quantized::block);
      for (std::int64_t j = 0; j < quantized::block; ++j) y[j] = b[j];
    }
  }
  return {};
}
/// to[r cols + c] = element (r, c) of a stored part, which is at [c, r] in the file if it is transposed. Reads some of the file's rows at
/// a time.
/// @error as read_f32
inline result<void> read_part(const io::safetensors_file& file, const io::tensor_entry& t, const weight_source& s, std::span<float> to) {
  if (in_blocks(s.blocks)) return read_blocks(file, t, s.blocks, to);
  if (!s.transposed) return file.read_f32(t, 0, to);
  const std::int64_t some = std::clamp<std::int64_t>(std::int64_t(io::detail::piece_bytes / sizeof(float)) / s.rows, 1, s.cols);
  std::vector<float> piece(std::size_t(some * s.rows));
  for (std::int64_t at = 0; at < s.cols; at += some) {
    const std::int64_t n = std::min(some, s.cols - at);
    if (auto r = file.read_f32(t, at * s.rows, std::span(piece).first(std::size_t(n * s.rows))); !r) return r;
    transpose(piece.data(), n, s.rows, to.data() + at, s.cols);
  }
  return {};
}
/// @error non_finite, with the element
inline result<void> all_finite(std::span<const float> values, const std::string& where) {
  const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (bad == values.end()) return {};
  return fail(errc::non_finite, "element " + std::to_string(bad - values.begin()) + " is not finite", where, "give finite weights");
}
inline result<std::unique_ptr<float[]>> room_for(std::int64_t elems, const std::string& where) {
  std::unique_ptr<float[]> room(new (std::nothrow) float[std::size_t(elems)]);
  if (room != nullptr) return room;
  return fail(errc::out_of_memory, "no memory for the " + std::to_string(std::size_t(elems) * sizeof(float)) + " bytes of a tensor", where,
              "free memory, or take a smaller model");
}

/// The run of a parameter that a rank and a part of the parameter have in common: its elements follow one another on the rank and in the whole parameter.
inline piece_run within_part(const piece_run& r, const weight_source& s) {
  const std::int64_t from = std::max(r.whole, s.first * s.cols), to = std::min(r.whole + r.count, (s.first + s.rows) * s.cols);
  return {r.here + from - r.whole, from, std::max(to - from, std::int64_t(0))};
}
/// here[i] = the elements of a part that rank `tensor` has of a divided parameter p. Reads no others, unless the part is in blocks.
/// @error as read_part
inline result<void> read_pieces(const io::safetensors_file& file, const io::tensor_entry& t, const weight_source& s, const slot& p,
                                int tensor, std::span<float> here) {
  const std::int64_t before = s.first * s.cols, pitch = p.pieces.along.axis == 1 ? p.dims[1] : s.cols;
  std::vector<float> piece;
  result<void> r;
  for_piece_runs(p, tensor, [&](const piece_run& all) {
    const piece_run own = within_part(all, s);
    if (own.count == 0 || !r) return;
    if (!s.transposed) {
      r = file.read_f32(t, own.whole - before, here.subspan(std::size_t(own.here), std::size_t(own.count)));
      return;
    }
    // A rank has the same columns of all rows, or whole rows: element (row, col) of the part is at [col, row] in the file.
    const bool columns = p.pieces.along.axis == 1;
    if (columns && own.whole - before >= s.cols) return;  // read with the first row
    const std::int64_t row = (own.whole - before) / s.cols, col = (own.whole - before) % s.cols;
    const std::int64_t rows = columns ? s.rows : own.count / s.cols, cols = columns ? own.count : s.cols;
    const std::int64_t some = std::clamp<std::int64_t>(std::int64_t(io::detail::piece_bytes / sizeof(float)) / rows, 1, cols);
    piece.resize(std::size_t(some * rows));
    for (std::int64_t at = 0; at < cols && r; at += some) {
      const std::int64_t n = std::min(some, cols - at);
      if (rows == s.rows) r = file.read_f32(t, (col + at) * s.rows, std::span(piece).first(std::size_t(n * rows)));
      for (std::int64_t c = 0; rows != s.rows && c < n && r; ++c)
        r = file.read_f32(t, (col + at + c) * s.rows + row, std::span(piece).subspan(std::size_t(c * rows), std::size_t(rows)));
      transpose(piece.data(), n, rows, here.data() + own.here + at, pitch);
    }
  });
  return r;
}

/// The tensor index of a session's rank. @error invalid_argument: it has divided parameters and does not say which rank it is
template <class Session> result<int> tensor_index_of(const Session& session) {
  if constexpr (train::HasGroups<Session>) {
    return session.groups().position().tensor;
  } else {
    for (const slot& s : session.parameters())
      if (s.pieces.divides())
        return fail(errc::invalid_argument, "is divided between devices", "parameter '" + std::string(s.path.view()) + "'",
                    "give the session of a device, or one that has its groups()");
    return 0;
  }
}

/// A `change` that changes nothing.
struct unchanged {
  result<void> operator()(std::size_t, const weight_source&, std::span<float>) const { return {}; }
};

}  // namespace detail

/// Copies the matched weights into a session, one parameter at a time, converted and transposed on the way. Only whole parameters are
/// written. Host memory holds one parameter in f32.
///
/// A rank of a mesh reads only its pieces of parameters that a tensor group divides, unless they are to be changed or are in blocks.
///
/// @param change  change(number of the source, source, values) -> result<void> may change values on the way
/// @error non_finite: a weight is NaN or infinite; out_of_memory; as read_f32, `change` and the session's write; each with the tensor's name
template <class Session, class Change> requires train::CanWrite<Session> && train::HasParameters<Session>
result<void> load_weights(Session& session, const io::model_folder& folder, const weight_match& m, const Change& change) {
  constexpr bool changes = !std::is_same_v<Change, detail::unchanged>;
  const auto tensor = detail::tensor_index_of(session);
  if (!tensor) return tensor.error();
  std::int64_t most = 0, most_of_part = 0;  // of parts that are read whole for a rank that has pieces
  const auto slots = session.parameters();
  for (const weight_source& s : m.sources) {
    most = std::max(most, slots[s.slot].dims.count());
    if (slots[s.slot].pieces.divides() && (changes || in_blocks(s.blocks))) most_of_part = std::max(most_of_part, s.rows * s.cols);
  }
  auto room = detail::room_for(most, folder.path), other = detail::room_for(most_of_part, folder.path);
  if (!room) return std::move(room).error();
  if (!other) return std::move(other).error();
  for (std::size_t i = 0, next = 0; i < m.sources.size(); i = next) {
    const std::size_t slot = m.sources[i].slot;
    const isotope::slot& p = slots[slot];
    const std::span values(room->get(), std::size_t(p.dims.count()));
    std::int64_t filled = 0;
    for (next = i; next < m.sources.size() && m.sources[next].slot == slot; ++next) filled += m.sources[next].rows * m.sources[next].cols;
    if (filled != detail::whole_dims(p).count()) continue;
    const bool divided = p.pieces.divides();
    if (divided) std::fill(values.begin(), values.end(), 0.0f);  // rows of padding, too
    for (std::size_t k = i; k < next; ++k) {
      const weight_source& s = m.sources[k];
      const io::tensor_entry& t = folder.tensor(s.tensor);
      const auto& file = folder.file_of(s.tensor);
      const auto elems = std::size_t(s.rows * s.cols);
      const bool pieces = divided && !changes && !in_blocks(s.blocks);
      const auto part = pieces ? values : divided ? std::span(other->get(), elems) : values.subspan(std::size_t(s.first * s.cols), elems);
      if (auto r = pieces ? detail::read_pieces(file, t, s, p, *tensor, part) : detail::read_part(file, t, s, part); !r) return r;
      if (auto r = change(k, s, part); !r) return r;
      if (auto r = detail::all_finite(part, file.source.where() + ": tensor '" + t.name + "'"); !r) return r;
      if (divided && !pieces)
        for_piece_runs(p, *tensor, [&](const piece_run& all) {
          const piece_run own = detail::within_part(all, s);
          if (own.count > 0) std::copy_n(part.begin() + (own.whole - s.first * s.cols), own.count, values.begin() + own.here);
        });
    }
    if (auto r = session.write(tensor_kind::parameter, slot, values); !r) {
      failure f = std::move(r).error();
      f.where = folder.path + ": " + f.where;
      return f;
    }
  }
  return {};
}

/// The same, unchanged.
template <class Session> result<void> load_weights(Session& session, const io::model_folder& folder, const weight_match& m) {
  return load_weights(session, folder, m, detail::unchanged{});
}

}  // namespace isotope::interop
