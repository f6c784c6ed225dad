#pragma once
/// Reads the settings of this process from all layers; a resumed run starts from those of its checkpoint.
#include "../support/command_line.hpp"
#include "check.hpp"
#include "model_source.hpp"
#include "replay.hpp"
#include "settings.hpp"
#include "sizes.hpp"

#include <isotope/config/canonical.hpp>
#include <isotope/config/load.hpp>
#include <isotope/config/table.hpp>
#include <isotope/core/error.hpp>
#include <isotope/io/checkpoint_writer.hpp>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace train_program {

/// The settings of a run, and what it begins from.
struct configuration {
  isotope::config::loaded<settings> loaded;
  std::optional<model_source> source;  // the folder of --from
  std::optional<isotope::io::checkpoint_writer> folder;
  std::optional<isotope::io::checkpoint_folder::found> from;
  std::string changes;  // how a resumed run differs from the run that wrote the checkpoint; empty: not at all
};

/// Returns the settings that a checkpoint keeps, as text.
inline std::string kept_text(const isotope::config::loaded<settings>& s) {
  const mesh_settings& m = s.value.mesh;
  return isotope::config::to_json(kept_settings{s.size, s.value.model, s.value.training, {support::mesh_of(m).ranks(), m.tensor, m.zero}});
}

/// Whether two texts denote the same value, as 1e-3 and 0.001 do.
inline bool same_value(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text, double& x) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    return error == std::errc() && end == text.data() + text.size();
  };
  double x = 0, y = 0;
  return a == b || (number(a, x) && number(b, y) && x == y);
}

/// Whether a layer sets a field.
inline bool is_given(const isotope::config::loaded<settings>& s, std::string_view key) {
  for (const isotope::config::setting& set : s.settings)
    if (set.key == key) return set.origin != "default";
  return false;
}

/// Becomes the writer of the folder of checkpoints.
///
/// @error invalid_argument: a fresh run in a folder that holds another's checkpoints; as checkpoint_writer
inline isotope::result<void> open_folder(configuration& c, const checkpoint_settings& s) {
  if (const auto old = isotope::io::checkpoint_folder(s.dir).list(); !s.resume && !old.empty())
    return isotope::fail(isotope::errc::invalid_argument, "already holds a checkpoint of step " + std::to_string(old.back().step), s.dir,
                         "add --resume to go on from it, or name another folder");
  auto folder = isotope::io::checkpoint_writer::open(s.dir, s.keep);
  if (!folder) return std::move(folder).error();
  c.folder = *std::move(folder);
  return {};
}

/// Reads the newest checkpoint. A run that continues from it becomes the folder's writer first, so that no checkpoint is added meanwhile.
///
/// @error as checkpoint_folder::latest and open_folder
inline isotope::result<void> read_newest(configuration& c, const checkpoint_settings& s, bool to_train) {
  const isotope::io::checkpoint_folder folder(s.dir);
  if (to_train && !folder.list().empty())
    if (auto r = open_folder(c, s); !r) return std::move(r).error();
  auto latest = folder.latest();
  if (!latest) return std::move(latest).error();
  c.from = *std::move(latest);
  return {};
}

/// Reads every layer and checks the result. --help, --version and --print-config open nothing except a checkpoint to resume from and the
/// folder of --from.
///
/// @error as config::load, open_source, check_source, check, check_replay, open_folder and read_newest; model_mismatch: another size than
/// the checkpoint's
inline isotope::result<configuration> configure(isotope::config::sources given) {
  const auto sizes = named_sizes();
  configuration c;
  if (auto r = support::check_variables(given); !r) return std::move(r).error();
  // The first pass has no default size: only an explicit request can contradict a checkpoint.
  auto first = isotope::config::load<settings>(given, sizes, support::rules_for(switches));
  if (!first) return std::move(first).error();
  if (first->has_switch("help") || first->has_switch("version")) {
    c.loaded = *std::move(first);
    return c;
  }
  if (first->value.trace.asked()) {
    if (auto r = check_replay(*first); !r) return std::move(r).error();
    if (auto r = check(*first); !r) return std::move(r).error();
    c.loaded = *std::move(first);
    return c;
  }
  if (!first->value.folder.from.empty()) {
    if (!first->size.empty())
      return isotope::fail(isotope::errc::invalid_argument, "contradicts --from, whose folder has the sizes", "--size " + first->size,
                           "leave it out");
    auto source = open_source(first->value.folder);
    if (!source) return std::move(source).error();
    c.source = *std::move(source);
    given.base = layer_of(*c.source, *first);
  }
  const checkpoint_settings& checkpoint = first->value.checkpoint;
  isotope::config::layer kept;
  const bool resumes = checkpoint.resume && !checkpoint.dir.empty();
  if (resumes) {
    if (checkpoint.keep < 1)
      if (auto r = check(*first); !r) return std::move(r).error();
    const bool writes = !first->has_switch("print-config") && first->value.mesh.writes();
    if (auto r = read_newest(c, checkpoint, writes); !r) return std::move(r).error();
    auto base = isotope::config::parse_file(c.from->contents.state.run, "checkpoint.json");
    if (!base) return std::move(base).error();
    for (auto& entry : *base) {
      if (entry.key == "size" && !first->size.empty() && entry.value != first->size)
        return isotope::fail(isotope::errc::model_mismatch,
                             "was trained as size '" + entry.value + "', this run asks for '" + first->size + "'", c.from->path,
                             "leave --size out, or resume from another folder");
      entry.where = "checkpoint " + c.from->path;
    }
    kept = *std::move(base);
    // A mesh is given as a whole: that of the checkpoint does not complete another.
    const bool other_mesh = is_given(*first, "mesh.devices") || is_given(*first, "mesh.ranks");
    for (const isotope::config::entry& entry : kept)
      if (!other_mesh || !entry.key.starts_with("mesh.")) given.base.push_back(entry);
  }
  auto loaded = isotope::config::load<settings>(given, sizes, support::rules_for(switches, std::string(default_size)));
  if (!loaded) return std::move(loaded).error();
  if (c.source) {
    if (auto r = check_source(*c.source, *loaded); !r) return std::move(r).error();
    loaded->size.clear();
  }
  if (auto r = check(*loaded); !r) return std::move(r).error();
  c.loaded = *std::move(loaded);
  for (const isotope::config::entry& was : kept)
    for (const isotope::config::setting& is : c.loaded.settings)
      if (is.key == was.key && is.key != "training.steps" && !is.origin.starts_with("checkpoint ") && !same_value(is.value, was.value))
        c.changes += (c.changes.empty() ? "" : ", ") + is.key + " is " + is.value + ", was " + was.value;
  if (!resumes && !checkpoint.dir.empty() && !c.loaded.has_switch("print-config") && c.loaded.value.mesh.writes())
    if (auto r = open_folder(c, c.loaded.value.checkpoint); !r) return std::move(r).error();
  return c;
}

}  // namespace train_program
