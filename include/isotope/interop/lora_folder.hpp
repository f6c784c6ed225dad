#pragma once
/// Adapters (nn/lora.hpp) in a folder of PEFT: adapter_config.json and adapter_model.safetensors, added to weights while these are loaded.
/// Source: huggingface/peft, tuners/lora/config.py, utils/save_and_load.py.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/io/json_fields.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/nn/lora.hpp>

namespace isotope::interop {

inline constexpr std::string_view adapter_weights_name = "adapter_model.safetensors", adapter_config_name = "adapter_config.json",
                                  adapter_prefix = "base_model.model.";  // before the name of a layer

struct lora_folder {
  std::string path;
  std::int32_t rank = 0;
  double alpha = 0, factor = 0;  // alpha / r
  io::safetensors_file file;

  /// The index of a tensor, or their number.
  std::size_t find(std::string_view name) const {
    std::size_t k = 0;
    while (k < file.tensors.size() && file.tensors[k].name != name) ++k;
    return k;
  }
};

/// Opens a folder of adapters.
/// @error not_found, unreadable, truncated, bad_format: a file is missing or damaged; invalid_model: adapters of another kind, with the field and its line
inline result<lora_folder> open_lora(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  lora_folder out;
  const std::string config_path = path + "/" + std::string(adapter_config_name);
  const auto config = io::detail::read_object(config_path, io::detail::most_config_bytes);
  if (!config) return config.error();
  io::json_fields f(*config, config_path);
  const auto refuse = [&](std::string_view key, std::string what) {
    f.refuse(key, std::move(what), "give plain LoRA adapters of linear layers", errc::invalid_model);
  };
  if (const std::string type = f.text("peft_type", ""); type != "LORA") refuse("peft_type", "is " + io::json_string(type) + ", not LORA");
  out.rank = f.whole("r", 1, 65536);
  const double alpha = f.number("lora_alpha", 8);
  if (!(alpha > 0)) refuse("lora_alpha", "is " + io::number_text(alpha) + ", not positive");
  if (const std::string bias = f.text("bias", "none"); bias != "none") refuse("bias", "is " + io::json_string(bias) + ", not none");
  for (const std::string_view key : {"use_rslora", "use_dora", "lora_bias"})
    if (f.boolean(key, false)) refuse(key, "is true, which isotope does not compute");
  for (const std::string_view key : {"rank_pattern", "alpha_pattern", "modules_to_save"})
    if (const io::json* v = config->find(key); v != nullptr && (!v->items.empty() || !v->members.empty()))
      refuse(key, "is not empty, which isotope does not compute");
  if (auto r = f.status(); !r) return std::move(r).error();
  auto file = io::detail::open_shard(path + "/" + std::string(adapter_weights_name));
  if (!file) return std::move(file).error();
  out.path = std::move(path);
  out.alpha = alpha;
  out.factor = alpha / out.rank;
  out.file = *std::move(file);
  return out;
}

namespace detail {

/// Says what a folder of adapters has that the model has not, or the other way round: 20 sentences at most.
inline failure other_adapters(const lora_folder& adapters, std::span<const std::string> wrong) {
  std::string line;
  constexpr std::size_t most = 20;
  for (std::size_t k = 0; k < std::min(most, wrong.size()); ++k) line += (k == 0 ? "" : "; ") + wrong[k];
  if (wrong.size() > most) line += "; and " + std::to_string(wrong.size() - most) + " more";
  return fail(errc::model_mismatch, std::move(line), adapters.path, "give the adapters of this model");
}
/// Empty if a tensor has this shape and a type that is read; else a sentence that says what it is.
inline std::string other_shape(const io::tensor_entry& t, std::int64_t rows, std::int64_t cols) {
  const std::array<std::int64_t, 2> dims = {rows, cols};
  if (t.dims == std::vector<std::int64_t>(dims.begin(), dims.end()) && io::detail::to_f32(t.type, {}, {})) return {};
  return t.name + " is " + io::dims_text(t.dims) + " of " + std::string(t.type.name) + ", the model needs " + io::dims_text(dims) +
         " of F32, F16 or BF16";
}

}  // namespace detail

/// The adapters of a folder beside the weights that they belong to.
class matched_lora {
 public:
  /// Compares names and shapes. Each tensor of the adapters must belong to a weight, and each A has a B.
  /// @error model_mismatch, with all names
  static result<matched_lora> match(const lora_folder& adapters, const io::model_folder& folder, const weight_match& weights) {
    matched_lora out(adapters);
    std::vector<bool> used(adapters.file.tensors.size(), false);
    std::vector<std::string> wrong;
    for (const weight_source& s : weights.sources) {
      const std::string& name = folder.tensor(s.tensor).name;
      pair found{used.size(), used.size()};
      for (const std::string_view prefix : {"", "transformer.", "model."}) {
        constexpr std::string_view end = "weight";
        if (!name.ends_with(end)) break;
        const std::string layer = std::string(adapter_prefix) + std::string(prefix) + name.substr(0, name.size() - end.size());
        const std::size_t a = adapters.find(layer + std::string(nn::lora_a)), b = adapters.find(layer + std::string(nn::lora_b));
        if (a == used.size() && b == used.size()) continue;
        for (const auto& [k, which, rows, cols] : {std::tuple{a, nn::lora_a, std::int64_t(adapters.rank), s.cols},
                                                   std::tuple{b, nn::lora_b, s.rows, std::int64_t(adapters.rank)}}) {
          if (k == used.size()) {
            wrong.push_back(layer + std::string(which) + " " + io::dims_text(std::array{rows, cols}) + " is missing");
            continue;
          }
          used[k] = true;
          if (std::string other = detail::other_shape(adapters.file.tensors[k], rows, cols); !other.empty())
            wrong.push_back(std::move(other));
        }
        found = {a, b};
        break;
      }
      out.pairs_.push_back(found);
    }
    for (std::size_t k = 0; k < used.size(); ++k)
      if (!used[k]) wrong.push_back(io::detail::shown(adapters.file.tensors[k].name) + " belongs to no weight of the model");
    if (used.empty()) wrong.emplace_back("it has no adapters");
    if (wrong.empty()) return out;
    return detail::other_adapters(adapters, wrong);
  }

  /// w[o, i] += alpha/r (sum over j of b[o, j] a[j, i]), j ascending, in f32, as without_adapters::read.
  /// @param source  of the match's sources
  /// @error as read_f32
  result<void> add(std::size_t source, const weight_source& s, std::span<float> w) const {
    const auto [ka, kb] = pairs_[source];
    const auto& all = adapters_->file.tensors;
    if (ka >= all.size() || kb >= all.size()) return {};
    const auto rank = std::size_t(adapters_->rank), rows = std::size_t(s.rows), cols = std::size_t(s.cols);
    std::vector<float> a(rank * cols), b(rows * rank), sum(cols);
    if (auto r = adapters_->file.read_f32(all[ka], a); !r) return r;
    if (auto r = adapters_->file.read_f32(all[kb], b); !r) return r;
    for (std::size_t o = 0; o < rows; ++o) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (std::size_t j = 0; j < rank; ++j)
        for (std::size_t i = 0; i < cols; ++i) sum[i] += b[o * rank + j] * a[j * cols + i];
      for (std::size_t i = 0; i < cols; ++i) w[o * cols + i] += float(adapters_->factor) * sum[i];
    }
    return {};
  }

 private:
  struct pair {
    std::size_t a, b;
  };
  explicit matched_lora(const lora_folder& adapters) : adapters_(&adapters) {}
  const lora_folder* adapters_;
  std::vector<pair> pairs_;  // of each source of the match; past the end: it has none
};

}  // namespace isotope::interop
