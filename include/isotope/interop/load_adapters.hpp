#pragma once
/// Copies saved adapters (nn/lora.hpp) into a session that trains adapters, so that training goes on from them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/interop/adapters.hpp>
#include <isotope/train/mesh_tensors.hpp>

namespace isotope::interop {

/// Which of the two sets of layers a folder's adapters are for: lora_all where some belong to a layer behind attention.
inline std::span<const std::string_view> lora_targets_of(const lora_folder& from) {
  for (const io::tensor_entry& t : from.file.tensors)
    if (t.name.find(".mlp.") != std::string::npos) return lora_all;
  return lora_attention;
}

namespace detail {

/// The adapter of a folder for a part, under one of the names that PEFT gives it, or the number of tensors.
inline std::size_t find_adapter(const lora_folder& from, std::string_view layer, std::string_view which) {
  for (const std::string_view prefix : {"transformer.", "model."}) layer = without_prefix(layer, prefix);
  std::size_t found = from.file.tensors.size();
  for (const std::string_view prefix : {"", "transformer.", "model."})
    found = std::min(found, from.find(std::string(adapter_prefix) + std::string(prefix) + std::string(layer) + std::string(which)));
  return found;
}

/// Writes a whole tensor into a session, of which the session of a rank of a mesh keeps its pieces. @error as its write
template <class Session> result<void> write_own_pieces(Session& session, std::size_t k, std::span<const float> whole) {
  const slot& s = session.parameters()[k];
  if constexpr (train::HasGroups<Session>)
    if (s.pieces.divides()) {
      std::vector<float> here(std::size_t(s.dims.count()));
      train::detail::take_pieces(s, session.groups().position().tensor, whole, here);
      return session.write(tensor_kind::parameter, k, here);
    }
  return session.write(tensor_kind::parameter, k, whole);
}

}  // namespace detail

/// Writes the adapters of a folder into those of a session; a rank of a mesh gets its pieces. The moments of the optimiser stay as they are, at zero in a new session.
///
/// The parts of a weight that is packed here, such as queries, keys and values, have one A: those of the folder must be equal, as
/// save_adapters writes them. Names and shapes are compared before the first tensor is written.
/// @param partial  adapters that the folder lacks keep their values, with which they change nothing, and those of no layer are left alone
/// @return         how many of the folder's tensors were read
/// @error model_mismatch: rank or alpha, names or shapes differ; invalid_model: the A of two parts differ; non_finite; as read_f32 and the
/// session's write
template <class Session>
result<std::size_t> load_adapters(Session& session, const lora_folder& from, const nn::lora& how, const decoder_size& size, bool partial) {
  if (from.rank != how.rank || from.factor != how.factor())
    return fail(errc::model_mismatch,
                "has adapters of rank " + std::to_string(from.rank) + " and alpha " + io::number_text(from.alpha) +
                    ", the model those of rank " + std::to_string(how.rank) + " and alpha " + io::number_text(how.alpha),
                from.path, "give the adapters of this model");
  std::vector<slot> slots;
  for (const slot& s : session.parameters()) {
    slots.push_back(s);
    slots.back().dims = s.pieces.whole(s.dims);
  }
  const std::vector<detail::adapter_part> parts = detail::adapter_parts(slots, size);
  const std::size_t none = from.file.tensors.size();
  std::vector<std::array<std::size_t, 2>> tensors;
  std::vector<std::string> wrong;
  std::vector<bool> used(none, false);
  for (const detail::adapter_part& p : parts) {
    const std::size_t a = detail::find_adapter(from, p.layer, nn::lora_a), b = detail::find_adapter(from, p.layer, nn::lora_b);
    tensors.push_back({a, b});
    const auto compare = [&](std::size_t k, std::string_view which, std::int64_t rows, std::int64_t cols) {
      if (k < none) {
        used[k] = true;
        if (std::string other = detail::other_shape(from.file.tensors[k], rows, cols); !other.empty()) wrong.push_back(std::move(other));
      } else if (!partial || a < none || b < none) {
        wrong.push_back(p.layer + std::string(which) + " " + io::dims_text(std::array{rows, cols}) + " is missing");
      }
    };
    compare(a, nn::lora_a, p.rank, p.in);
    compare(b, nn::lora_b, p.rows, p.rank);
  }
  for (std::size_t k = 0; k < none && !partial; ++k)
    if (!used[k]) wrong.push_back(io::detail::shown(from.file.tensors[k].name) + " belongs to no adapter of the model");
  if (!wrong.empty()) return detail::other_adapters(from, wrong);

  std::vector<float> a, b, again;
  const auto read = [&](std::size_t k, std::span<float> to) -> result<void> {
    if (auto r = from.file.read_f32(from.file.tensors[k], to); !r) return r;
    return detail::all_finite(to, "tensor '" + from.file.tensors[k].name + "' of " + from.path);
  };
  for (std::size_t first = 0, end = 0; first < parts.size(); first = end) {  // the parts of one adapter
    const detail::adapter_part& p = parts[first];
    while (end < parts.size() && parts[end].a == p.a) ++end;
    std::size_t have = none;
    a.resize(std::size_t(slots[p.a].dims.count()));
    b.assign(std::size_t(slots[p.b].dims.count()), 0.0f);
    for (std::size_t k = first; k < end; ++k) {
      if (tensors[k][0] >= none) continue;
      again.resize(a.size());
      if (auto r = read(tensors[k][0], again); !r) return std::move(r).error();
      if (have < none && again != a)
        return fail(errc::invalid_model,
                    "'" + from.file.tensors[have].name + "' and '" + from.file.tensors[tensors[k][0]].name +
                        "' differ, and isotope trains one for both, since it keeps their weights as one",
                    from.path, "apply these adapters to the weights, and train new ones");
      have = tensors[k][0];
      a = again;
      const auto rows = std::span(b).subspan(std::size_t(parts[k].first * p.rank), std::size_t(parts[k].rows * p.rank));
      if (auto r = read(tensors[k][1], rows); !r) return std::move(r).error();
    }
    if (have == none) continue;
    if (auto r = detail::write_own_pieces(session, p.a, a); !r) return std::move(r).error();
    if (auto r = detail::write_own_pieces(session, p.b, b); !r) return std::move(r).error();
  }
  return std::size_t(std::count(used.begin(), used.end(), true));
}

}  // namespace isotope::interop
