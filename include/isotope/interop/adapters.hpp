#pragma once
/// Adapters of a session (nn/lora.hpp): the model without them, with their products in its weights, and the files in which PEFT keeps them.
/// Source: huggingface/peft, utils/save_and_load.py, tuners/lora/config.py.
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
#include <isotope/interop/decoder_folder.hpp>
#include <isotope/interop/lora_folder.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/file_writer.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/safetensors_index.hpp>
#include <isotope/nn/lora.hpp>

namespace isotope::interop {

/// Which layers of the decoders are adapted: those of attention, as Hu et al. do, or all linear layers of a block. What the models pack
/// into one weight, such as queries, keys and values, has one adapter, whose A is common to the parts.
inline constexpr std::array<std::string_view, 8> lora_layers = {{"attn.c_attn", "attn.c_proj", "self_attn.qkv_proj", "self_attn.o_proj",
                                                                 "mlp.c_fc", "mlp.c_proj", "mlp.gate_up_proj", "mlp.down_proj"}};
inline constexpr std::span<const std::string_view> lora_attention = std::span(lora_layers).first(4), lora_all = lora_layers;

namespace detail {

/// The index of a parameter by its path, or the number of parameters.
inline std::size_t slot_of(std::span<const slot> slots, std::string_view path) {
  std::size_t k = 0;
  while (k < slots.size() && slots[k].path.view() != path) ++k;
  return k;
}
/// The path of a layer, whose weight has this path.
inline std::string layer_of(std::string_view weight) {
  constexpr std::string_view end = "weight";
  return std::string(weight.substr(0, weight.ends_with(end) ? weight.size() - end.size() : 0));
}

}  // namespace detail

/// A session as the model without adapters: what load_weights and save_weights take. A weight is read with the product of its adapter
/// added, and written alone.
/// Sessions without adapters are read and written as they are.
template <class Session> class without_adapters {
 public:
  without_adapters(Session& session, const nn::lora& how) : session_(session), factor_(how.rank > 0 ? how.factor() : 0) {
    const std::span<const slot> all = session.parameters();
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::string_view path = all[k].path.view();
      if (nn::is_adapter(path)) continue;
      const std::string layer = detail::layer_of(path);
      slots_.push_back(all[k]);
      places_.push_back({k, layer.empty() ? all.size() : detail::slot_of(all, layer + std::string(nn::lora_a)),
                         layer.empty() ? all.size() : detail::slot_of(all, layer + std::string(nn::lora_b))});
    }
  }

  std::span<const slot> parameters() const { return slots_; }
  rank_groups groups() const requires train::HasGroups<Session> { return session_.groups(); }
  result<void> write(tensor_kind what, std::size_t k, std::span<const float> in) { return session_.write(what, places_[k].weight, in); }

  /// w[o, i] + alpha/r (sum over j of b[o, j] a[j, i]), j ascending, in f32. @error as the session's read
  result<void> read(tensor_kind what, std::size_t k, std::span<float> out) {
    const place& at = places_[k];
    if (auto r = session_.read(what, at.weight, out); !r) return r;
    const std::span<const slot> all = session_.parameters();
    if (what != tensor_kind::parameter || at.a >= all.size() || at.b >= all.size()) return {};
    const auto [rank, cols] = detail::rows_and_cols(all[at.a].dims);
    const std::int64_t rows = all[at.b].dims[0];
    std::vector<float> a(std::size_t(rank * cols)), b(std::size_t(rows * rank)), sum(static_cast<std::size_t>(cols));
    if (auto r = session_.read(what, at.a, a); !r) return r;
    if (auto r = session_.read(what, at.b, b); !r) return r;
    for (std::int64_t o = 0; o < rows; ++o) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (std::int64_t j = 0; j < rank; ++j) {
        const float x = b[std::size_t(o * rank + j)];
        const float* row = a.data() + j * cols;
        for (std::int64_t i = 0; i < cols; ++i) sum[std::size_t(i)] += x * row[i];
      }
      float* weight = out.data() + o * cols;
      for (std::int64_t i = 0; i < cols; ++i) weight[i] += float(factor_) * sum[std::size_t(i)];
    }
    return {};
  }

 private:
  struct place {
    std::size_t weight, a, b;  // slots of the session
  };
  Session& session_;
  double factor_;
  std::vector<slot> slots_;
  std::vector<place> places_;
};

/// The text of adapter_config.json.
/// @param base     the folder of the model that was adapted
/// @param modules  the layers, by the ends of their names
/// @param conv     whether its linear layers are Conv1D, stored (in, out)
inline std::string adapter_config_text(const nn::lora& how, const std::string& base, std::span<const std::string> modules, bool conv) {
  std::string all;
  for (const std::string& m : modules) all += (all.empty() ? "" : ", ") + io::json_string(m);
  return "{\n  \"base_model_name_or_path\": " + io::json_string(base) +
         ",\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": " + (conv ? "true" : "false") +
         ",\n  \"inference_mode\": true,\n  \"lora_alpha\": " + io::json_number(how.alpha) +
         ",\n  \"lora_dropout\": 0.0,\n  \"peft_type\": \"LORA\",\n  \"r\": " + std::to_string(how.rank) + ",\n  \"target_modules\": [" +
         all + "],\n  \"task_type\": \"CAUSAL_LM\"\n}\n";
}

namespace detail {

/// What PEFT calls an adapter: one of ours, or the part of it that belongs to one of the weights that a model here has packed into one.
struct adapter_part {
  std::size_t a, b;                    // slots of the session
  std::int64_t rank, in, first, rows;  // A (rank, in); rows [first, first + rows) of B (out, rank)
  std::string layer;                   // `transformer.h.0.attn.c_attn.`
  std::string module;                  // `attn.c_attn`: a layer is meant by what follows the number of its block
};

/// The adapters of a session under the names of transformers, by slots.
inline std::vector<adapter_part> adapter_parts(std::span<const slot> slots, const decoder_size& size) {
  std::vector<adapter_part> all;
  with_stored_names(size, [&](const model::stored_names& names, std::string_view prefix) {
    for (std::size_t a = 0; a < slots.size(); ++a) {
      const std::string_view path = slots[a].path.view();
      if (!path.ends_with(nn::lora_a)) continue;
      const std::string layer(path.substr(0, path.size() - nn::lora_a.size()));
      const std::size_t b = slot_of(slots, layer + std::string(nn::lora_b));
      const std::int64_t out = slots[b].dims[0];
      for (const model::stored_name& n : names.weights) {
        const std::int64_t block = model::block_of(n.ours, layer + "weight");
        if (block < 0) continue;
        const std::string_view tail = n.theirs.substr(n.theirs.find('#') + 2);
        all.push_back({a, b, slots[a].dims[0], slots[a].dims[1], out / n.whole * n.first, out / n.whole * n.count,
                       std::string(prefix) + layer_of(model::in_block(n.theirs, block)), std::string(tail.substr(0, tail.rfind('.')))});
      }
    }
  });
  return all;
}

}  // namespace detail

/// Saves the adapters of a decoder as PEFT does: adapter_model.safetensors in F32, then adapter_config.json. Each file is replaced whole or
/// not at all. The parts of a packed weight have their rows of B, and A each. Host memory holds one adapter.
/// @error invalid_model: there are no adapters; non_finite: a number is NaN or infinite; write_failed; as the session's read
template <class Session>
result<void> save_adapters(const std::string& folder, Session& session, const nn::lora& how, const decoder_size& size,
                           const std::string& base, const io::file_calls& calls = {}) {
  const std::span<const slot> slots = session.parameters();
  struct target {
    std::size_t slot;
    std::int64_t first, elems;  // of its values
  };
  std::vector<target> targets;
  std::vector<io::tensor_entry> entries;
  std::vector<std::string> modules;
  std::uint64_t bytes = 0;
  const auto add = [&](std::size_t k, std::string name, std::int64_t first, std::int64_t rows, std::int64_t cols) {
    targets.push_back({k, first * cols, rows * cols});
    entries.push_back({std::move(name), io::f32_elements, {rows, cols}, 0, std::uint64_t(rows * cols) * sizeof(float)});
    bytes += entries.back().bytes;
  };
  for (const detail::adapter_part& p : detail::adapter_parts(slots, size)) {
    add(p.a, std::string(adapter_prefix) + p.layer + std::string(nn::lora_a), 0, p.rank, p.in);
    add(p.b, std::string(adapter_prefix) + p.layer + std::string(nn::lora_b), p.first, p.rows, p.rank);
    if (std::find(modules.begin(), modules.end(), p.module) == modules.end()) modules.push_back(p.module);
  }
  if (targets.empty()) return fail(errc::invalid_model, "the model has no adapters", folder, "train with --lora");
  auto header = io::safetensors_header(entries, {{"format", "pt"}});
  if (!header) return std::move(header).error();
  auto file = io::file_writer::open(folder + "/" + std::string(adapter_weights_name), header->size() + bytes, calls);
  if (!file) return std::move(file).error();
  if (auto r = file->write(std::as_bytes(std::span(*header))); !r) return r;
  std::vector<float> values;
  for (const target& t : targets) {
    values.resize(std::size_t(slots[t.slot].dims.count()));
    if (auto r = session.read(tensor_kind::parameter, t.slot, values); !r) return r;
    if (auto r = detail::all_finite(values, "parameter '" + std::string(slots[t.slot].path.view()) + "'"); !r) return r;
    if (auto r = file->write(std::as_bytes(std::span(values).subspan(std::size_t(t.first), std::size_t(t.elems)))); !r) return r;
  }
  if (auto r = file->commit(); !r) return r;
  const bool conv = std::holds_alternative<model::gpt>(size);
  return io::write_file(folder + "/" + std::string(adapter_config_name), adapter_config_text(how, base, modules, conv), calls);
}

}  // namespace isotope::interop
