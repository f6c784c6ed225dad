#pragma once
/// Saves a session and its run state to a folder of checkpoints and restores them.
#include <isotope/core/error.hpp>
#include <isotope/io/checkpoint_writer.hpp>
#include <isotope/train/saved_tensors.hpp>
#include <isotope/train/session.hpp>
#include <isotope/train/state.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::train {

/// What all checkpoints of a run have in common.
struct run_identity {
  std::string model;  // canonical JSON of the model's configuration
  std::string run;    // canonical JSON of the run's
  std::uint64_t seed = 0;
  std::int64_t micro_batches = 1;  // per step
  io::vocabulary vocab = io::vocabulary::of_bytes();
  std::uint64_t data = 0;  // dataset::hash; 0: unknown, neither saved nor compared
};

namespace detail {

inline io::training_state state_to_save(const run_identity& id, const run_state& r) {
  io::training_state s;
  s.model = id.model;
  s.run = id.run;
  s.step = r.step;
  s.optimizer_step = r.step - r.skipped;
  s.seed = id.seed;
  s.cursor = r.step * id.micro_batches;
  s.best_validation_loss = r.best.value;
  s.vocab = id.vocab;
  s.extra = {{"skipped_in_a_row", std::to_string(r.skipped_in_a_row)},
             {"evaluated_at", std::to_string(r.evaluated_at)},
             {"best_step", std::to_string(r.best.step)},
             {"evals_since_best", std::to_string(r.best.evals_since)}};
  if (id.data != 0) s.extra.emplace_back("data", std::to_string(id.data));
  if (r.val_loss) s.extra.emplace_back("val_loss", io::number_text(*r.val_loss));
  return s;
}

inline constexpr std::string_view algorithms_key = "algorithms";

template <class T> bool parse_extra(const io::training_state& s, std::string_view key, T& out) {
  for (const auto& [name, text] : s.extra) {
    if (name != key) continue;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }
  return false;
}

inline result<run_state> state_from(const io::training_state& s, const std::string& where) {
  run_state r;
  r.step = s.step;
  r.skipped = s.step - s.optimizer_step;
  r.best.value = s.best_validation_loss;
  if (!parse_extra(s, "skipped_in_a_row", r.skipped_in_a_row) || !parse_extra(s, "evaluated_at", r.evaluated_at) ||
      !parse_extra(s, "best_step", r.best.step) || !parse_extra(s, "evals_since_best", r.best.evals_since))
    return fail(errc::bad_format, "the trainer's counters are not complete", where, "train from the start");
  if (double loss = 0; parse_extra(s, "val_loss", loss)) r.val_loss = loss;
  return r;
}

/// Runs write(give) on every rank of a mesh: see save_together. @error likewise
template <class S, class Write>
result<void> save_on_mesh(S& session, std::span<const saved_tensor> tensors, std::int64_t step, const Write& write) {
  std::vector<whole_tensor> whole;
  for (const saved_tensor& t : tensors) whole.push_back({t.kind, t.slot, t.name});
  return save_together(session, whole, step, group_elems, write);
}

}  // namespace detail

/// The checkpoint store of a run that keeps its checkpoints in a folder. On a mesh, whose checkpoints hold whole tensors, rank 0 has this one and every other rank a
/// `peer_store`, and all save at the same time.
class folder_store {
 public:
  folder_store(io::checkpoint_writer folder, run_identity identity) : folder_(std::move(folder)), identity_(std::move(identity)) {}

  /// Copies tensor by tensor: memory holds the largest of them, or 4 MiB.
  ///
  /// @error non_finite: a parameter is NaN or infinite; nothing is kept, so the last good checkpoint stays the newest; write_failed, likewise; as the
  ///        session's read, with the tensor's name; out_of_memory; peer_lost: another rank of the mesh could not save
  template <TrainingSession S> result<std::string> save(S& session, const run_state& state, bool best) {
    const auto tensors = detail::saved_tensors(session, detail::saved_kinds);
    if (!tensors) return tensors.error();
    std::vector<io::tensor_entry> entries;
    for (const detail::saved_tensor& t : *tensors) entries.push_back({t.name, io::f32_elements, t.dims, 0, t.elems * sizeof(float)});
    io::training_state kept = detail::state_to_save(identity_, state);
    if (auto chosen = algorithms_of(session); !chosen.empty()) kept.extra.emplace_back(detail::algorithms_key, std::move(chosen));
    const auto write = [&](const auto& give) { return best ? folder_.save_best(kept, entries, give) : folder_.save(kept, entries, give); };
    const auto save_all = [&] {
      if constexpr (HoldsParts<S>)
        if (on_mesh(session)) return detail::save_on_mesh(session, *tensors, state.step, write);
      return write([&](const auto& put) { return detail::give_tensors(session, *tensors, state.step, put); });
    };
    auto saved = save_all();
    if (!saved) return std::move(saved).error();
    return best ? folder_.best_path() : folder_.path_of(state.step);
  }

 private:
  io::checkpoint_writer folder_;
  run_identity identity_;
};

/// The checkpoint store of a rank of a mesh that does not write: it sends its parts to the one that does.
struct peer_store {
  /// Returns an empty path, since nothing is kept here. @error as folder_store::save: every rank fails where one does
  template <TrainingSession S> requires HoldsParts<S> result<std::string> save(S& session, const run_state& state, bool) {
    const auto tensors = detail::saved_tensors(session, detail::saved_kinds);
    if (!tensors) return tensors.error();
    auto sent = detail::save_on_mesh(session, *tensors, state.step,
                                     [](const auto& give) { return give([](std::span<const std::byte>) { return result<void>(); }); });
    if (!sent) return std::move(sent).error();
    return std::string();
  }
};

/// The bytes of the tensors in a checkpoint of this session; of a mesh, whose checkpoints hold whole tensors, the same on all ranks. @error as the session's read
template <class S> result<std::uint64_t> checkpoint_bytes(S& session) {
  const auto tensors = detail::saved_tensors(session, detail::saved_kinds);
  if (!tensors) return tensors.error();
  std::uint64_t bytes = 0;
  for (const detail::saved_tensor& t : *tensors) bytes += t.elems * sizeof(float);
  return bytes;
}

/// Restores only the parameters of a checkpoint: enough to evaluate and to sample. Memory holds one tensor at a time.
///
/// @error model_mismatch: a tensor is missing or has another shape, and nothing is written; what the session's write reports, with the tensor's name,
/// and
///        unreadable, corrupt: some tensors are written, and the text says how many
template <class S> result<void> restore_parameters(S& session, const io::checkpoint& from) {
  const auto tensors = detail::saved_tensors(session, std::span(detail::saved_kinds).first(1));
  if (!tensors) return tensors.error();
  return detail::take_tensors(session, *tensors, from);
}

/// Restores everything that the next step depends on: parameters, moments, counters. On a mesh, which need not be the one that saved, each rank restores its parts.
///
/// @param where  the checkpoint's path, for failures
/// @error model_mismatch: model, vocabulary, text or micro-batches differ from the run's, naming both, or a tensor is missing or has another shape;
///        bad_format: the trainer's counters; then nothing is written. As restore_parameters for later failures
template <TrainingSession S>
result<run_state> restore(S& session, const io::checkpoint& from, const run_identity& identity, const std::string& where) {
  const char* fix = "resume with the options of the run that wrote it, or train from the start in another folder";
  if (from.state.model != identity.model)
    return fail(errc::model_mismatch, "the checkpoint's model is " + from.state.model + ", this run's is " + identity.model, where, fix);
  if (from.state.vocab != identity.vocab)
    return fail(errc::model_mismatch,
                "the checkpoint's vocabulary (" + std::to_string(from.state.vocab.size()) + " " +
                    std::string(io::name_of(from.state.vocab.unit())) + ") is not this text's (" + std::to_string(identity.vocab.size()) +
                    " " + std::string(io::name_of(identity.vocab.unit())) + ")",
                where, "resume with the text that was trained on");
  if (std::uint64_t data = 0; identity.data != 0 && detail::parse_extra(from.state, "data", data) && data != identity.data)
    return fail(errc::model_mismatch,
                "the checkpoint's text (hash " + std::to_string(data) + ") is not this one (hash " + std::to_string(identity.data) +
                    "), though their vocabularies are equal",
                where, "resume with the text that was trained on, or train from the start in another folder");
  if (from.state.cursor != from.state.step * identity.micro_batches)
    return fail(errc::model_mismatch,
                "the checkpoint drew " + std::to_string(from.state.cursor) + " micro-batches in " + std::to_string(from.state.step) +
                    " steps, this run draws " + std::to_string(identity.micro_batches) + " per step",
                where, fix);
  auto state = detail::state_from(from.state, where);
  if (!state) return state;
  const auto tensors = detail::saved_tensors(session, detail::saved_kinds);
  if (!tensors) return tensors.error();
  if (auto r = detail::take_tensors(session, *tensors, from); !r) return std::move(r).error();
  return state;
}

/// How the algorithms that a library runs for a session differ from those of the run that wrote a checkpoint; empty: they do not differ.
template <class S> std::string other_algorithms(const S& session, const io::checkpoint& from) {
  std::string then;
  const std::string now = algorithms_of(session);
  for (const auto& [key, text] : from.state.extra)
    if (key == detail::algorithms_key) then = text;
  if (then == now) return {};
  const auto named = [](const std::string& digest) { return digest.empty() ? std::string("none") : digest; };
  return "the algorithms of library products were " + named(then) + " and are " + named(now) + ", so the last bits of results may differ";
}

}  // namespace isotope::train
