#pragma once
/// Says which tensors of a session a checkpoint holds, and copies them out of the session and back: a few at a time, so that host memory holds at
/// most the largest of them, or 4 MiB of smaller ones. A checkpoint of a mesh holds whole tensors (mesh_tensors.hpp).
#include <isotope/core/error.hpp>
#include <isotope/io/checkpoint.hpp>
#include <isotope/train/batch.hpp>
#include <isotope/train/mesh_tensors.hpp>
#include <isotope/train/session.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::train::detail {

struct saved_kind {
  tensor_kind kind;
  std::string_view prefix;
};
inline constexpr saved_kind saved_kinds[] = {{tensor_kind::parameter, ""},
                                             {tensor_kind::moment1, io::adam_m},
                                             {tensor_kind::moment2, io::adam_v},
                                             {tensor_kind::state, io::model_state}};

/// How much is read from a session at a time: as many bytes as a device's staging memory takes in one copy.
inline constexpr std::size_t group_elems = (std::size_t(4) << 20) / sizeof(float);

/// A tensor of a session with its name in a checkpoint, and its size there.
struct saved_tensor {
  tensor_kind kind;
  std::size_t slot = 0, elems = 0;
  std::string name;
  std::vector<std::int64_t> dims;
};

/// Returns memory for numbers that are about to be written. @error out_of_memory, with the bytes
inline result<std::unique_ptr<float[]>> room_for(std::size_t elems) {
  std::unique_ptr<float[]> room(new (std::nothrow) float[elems]);
  if (room != nullptr) return room;
  return fail(errc::out_of_memory, "no memory for the " + std::to_string(elems * sizeof(float)) + " bytes of the largest tensor",
              "checkpoint", "free memory, or train a smaller model");
}
inline std::size_t largest_of(std::span<const saved_tensor> tensors) {
  std::size_t most = 0;
  for (const saved_tensor& t : tensors) most = std::max(most, t.elems);
  return most;
}

/// Whether a session has such a tensor. The optimiser decides how many moments a parameter has; a frozen parameter has none. @error as its read
template <class S> result<bool> has_tensor(S& session, const saved_tensor& t) {
  if constexpr (HoldsParts<S>)
    if (session.divides(t.kind, t.slot)) return true;
  if constexpr (KnowsTensors<S>) {
    return session.keeps(t.kind, t.slot);
  } else {
    auto room = room_for(t.elems);
    if (!room) return std::move(room).error();
    auto r = session.read(t.kind, t.slot, std::span(room->get(), t.elems));
    if (!r && r.error().code != errc::not_found) return std::move(r).error();
    return r.ok();
  }
}

/// The shape of a parameter in a checkpoint.
template <class Slot> auto whole_dims(const Slot& s) {
  if constexpr (requires { s.pieces; }) return s.pieces.whole(s.dims);
  else return s.dims;
}
template <class S> void append_states(const S& session, const saved_kind& k, std::vector<saved_tensor>& out) {
  if constexpr (HasStates<S>)
    for (std::size_t i = 0; i < session.states().size(); ++i) {
      const auto& state = session.states()[i];
      saved_tensor t{k.kind, i, std::size_t(state.where.dims.count()), std::string(k.prefix) + std::string(state.label.view()), {}};
      for (int d = 0; d < state.where.dims.rank; ++d) t.dims.push_back(state.where.dims[d]);
      out.push_back(std::move(t));
    }
}

/// Returns the tensors of these kinds, in the order of a checkpoint's file. Every parameter is included: a session that cannot read it fails then.
/// @error as the session's read
template <class S> result<std::vector<saved_tensor>> saved_tensors(S& session, std::span<const saved_kind> kinds) {
  std::vector<saved_tensor> out;
  const auto& slots = session.parameters();
  for (const saved_kind& k : kinds) {
    if (k.kind == tensor_kind::state) {
      append_states(session, k, out);
      continue;
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto dims = whole_dims(slots[i]);
      saved_tensor t{k.kind, i, std::size_t(dims.count()), std::string(k.prefix) + std::string(std::string_view(slots[i].path)), {}};
      for (int d = 0; d < dims.rank; ++d) t.dims.push_back(dims[d]);
      if constexpr (CanRead<S>) {
        if (k.kind != tensor_kind::parameter) {
          const auto has = has_tensor(session, t);
          if (!has) return has.error();
          if (!*has) continue;
        }
      }
      out.push_back(std::move(t));
    }
  }
  return out;
}

/// Returns a failure about one of these tensors, with its name added.
inline failure named(failure f, std::span<const saved_tensor> tensors) {
  std::string in = "tensor '" + tensors.front().name + "'";
  if (tensors.size() > 1) in = "tensors '" + tensors.front().name + "' to '" + tensors.back().name + "'";
  if (f.where.find("tensor '") == std::string::npos) f.where = f.where.empty() ? in : f.where + ": " + in;
  return f;
}

template <class S> result<void> read_group(S& session, std::span<const tensor_read> group) {
  if constexpr (ReadsTogether<S>) {
    return session.read(group);
  } else {
    for (const tensor_read& t : group)
      if (auto r = session.read(t.what, t.slot, t.out); !r) return r;
    return {};
  }
}

/// Calls put(bytes) with the numbers of all tensors, one after another.
///
/// @error as the session's read and as `put`, with the tensor's name; non_finite: a number is NaN or infinite, with the step; out_of_memory
template <class S, class Put>
result<void> give_tensors(S& session, std::span<const saved_tensor> tensors, std::int64_t step, const Put& put) {
  std::size_t all = 0;
  for (const saved_tensor& t : tensors) all += t.elems;
  auto room = room_for(std::min(all, std::max(largest_of(tensors), group_elems)));
  if (!room) return std::move(room).error();
  std::vector<tensor_read> group;
  for (std::size_t first = 0, last = 0; first < tensors.size(); first = last) {
    group.clear();
    std::size_t used = 0;
    for (; last < tensors.size() && (last == first || used + tensors[last].elems <= group_elems); ++last) {
      group.push_back({tensors[last].kind, tensors[last].slot, {room->get() + used, tensors[last].elems}});
      used += tensors[last].elems;
    }
    const auto these = tensors.subspan(first, last - first);
    if (auto r = read_group(session, group); !r) return named(std::move(r).error(), these);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto values = group[i].out;
      const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
      if (bad != values.end())
        return fail(
            errc::non_finite,
            "element " + std::to_string(bad - values.begin()) + " of '" + these[i].name + "' is not finite: this state is not saved",
            "step " + std::to_string(step), "lower the learning rate; resume from the last checkpoint");
    }
    if (auto r = put(std::as_bytes(std::span(room->get(), used))); !r) return named(std::move(r).error(), these);
  }
  return {};
}

/// Writes a tensor of a checkpoint to a session: the part that its rank has. @error as the session's write; out_of_memory
template <class S> result<void> write_tensor(S& session, const saved_tensor& t, std::span<const float> values) {
  if constexpr (HoldsParts<S>)
    if (t.kind != tensor_kind::state && session.parameters()[t.slot].pieces.divides()) {
      const slot& s = session.parameters()[t.slot];
      auto part = room_for(std::size_t(s.dims.count()));
      if (!part) return std::move(part).error();
      const std::span here(part->get(), std::size_t(s.dims.count()));
      take_pieces(s, session.groups().position().tensor, values, here);
      return session.write(t.kind, t.slot, here);
    }
  return session.write(t.kind, t.slot, values);
}

/// Copies tensors from a checkpoint into a session. All are compared with the checkpoint's names, shapes and types before the first is written.
///
/// @error model_mismatch: a tensor is missing or has another shape, and nothing was written; out_of_memory, likewise; as checkpoint::read and the
///        session's write, with the tensor's name and how many were written before it
template <class S> result<void> take_tensors(S& session, std::span<const saved_tensor> tensors, const io::checkpoint& from) {
  for (const saved_tensor& t : tensors)
    if (const auto found = from.find(t.name, t.dims, t.elems); !found) return found.error();
  auto room = room_for(largest_of(tensors));
  if (!room) return std::move(room).error();
  std::size_t written = 0;
  const auto stopped = [&](failure f, bool begun) {
    if (begun)
      f.what += "; the session holds " + std::to_string(written) + " of the checkpoint's " + std::to_string(tensors.size()) +
                " tensors and is not to be used before it is restored or initialised";
    return named(std::move(f), tensors.subspan(written, 1));
  };
  for (const saved_tensor& t : tensors) {
    const std::span values(room->get(), t.elems);
    if (auto r = from.read(t.name, values); !r) return stopped(std::move(r).error(), written > 0);
    if (auto r = write_tensor(session, t, values); !r) return stopped(std::move(r).error(), true);
    ++written;
  }
  return {};
}

}  // namespace isotope::train::detail
