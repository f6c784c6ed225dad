#pragma once
/// Opens the model that is served, and reads what goes with it.
#include "../support/weight_storage.hpp"
#include "settings.hpp"

#include <isotope/io/file.hpp>
#include <isotope/serve/embed_service.hpp>
#include <isotope/serve/text_service.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace serve_program {

/// Opens a decoder or an embedding model, as the folder says, on a device worker. The settings must outlive it.
inline isotope::result<std::unique_ptr<isotope::serve::service>> open_service(const settings& s, isotope::serve::metrics& counts) {
  using support::target;
  auto opened = isotope::io::open_model(s.model);
  if (!opened) return std::move(opened).error();
  const auto folder = std::make_shared<isotope::io::model_folder>(*std::move(opened));
  const auto run = [&s] { return support::run_options{program, s.machine, s.diagnose}; };
  const isotope::worker::worker_options worker{.device = support::options_of(s.machine, s.diagnose), .index = -1};
  if (folder->family.type == "bert") {
    if (!s.diagnose.ir_dump.empty() || !s.diagnose.fusion_report.empty())
      return isotope::fail(isotope::errc::invalid_argument, "reports on the plan of a decoder, and this is an embedding model",
                           s.diagnose.ir_dump.empty() ? "flag --fusion-report" : "flag --ir-dump", "leave it out");
    const auto open = [folder, run](const isotope::device<target>& device) -> isotope::result<isotope::embedder<target>> {
      isotope::embedder_options options;
      options.budget = run().budget();
      options.decompose_all = run().diagnose.decompose_all();
      options.stored = support::storage_for(*folder, run());
      options.a8 = run().diagnose.a8;
      options.special = isotope::io::specials::plain;
      auto made = isotope::embedder<target>::open(device, *folder, options);
      if (!made) return made;
      support::describe_load(program, run().diagnose, device, made->loaded());
      if (auto r = support::write_plan_reports(program, run().diagnose, made->loaded()); !r) return std::move(r).error();
      return made;
    };
    return isotope::serve::embed_service<target>::start(open, std::size_t(s.queue), std::size_t(s.batch_tokens), counts, worker);
  }
  const auto config = isotope::interop::read_decoder_config(*folder);
  if (!config) return config.error();
  constexpr bool host = isotope::batcher<target>::session::host_memory;
  const isotope::batcher_options options{.slots = s.slots,
                                         .tokens_per_submit = s.tokens_per_submit != 0 ? s.tokens_per_submit
                                                              : host                   ? 1
                                                                                       : 8,
                                         .budget = run().budget(),
                                         .decompose_all = run().diagnose.decompose_all(),
                                         .stored = support::storage_for(*folder, run()),
                                         .a8 = run().diagnose.a8};
  auto planned =
      std::visit([&](const auto& c) { return isotope::batcher<target>::plans(isotope::interop::inference_size(c), options); }, *config);
  if (!planned) return std::move(planned).error();
  const auto traced = [&](const auto& c) {
    const auto model = isotope::batcher<target>::decoding(isotope::interop::inference_size(c), options);
    return isotope::traced_inference<target>(model, true, options.decompose_all, options.stored, options.a8);
  };
  if (auto r = support::write_trace_reports<target>(run().diagnose, [&] { return std::visit(traced, *config); }); !r)
    return std::move(r).error();
  const auto plans = std::make_shared<std::vector<isotope::owned_plan>>(*std::move(planned));
  const auto open = [folder, run, config = *config, options,
                     plans](const isotope::device<target>& device) -> isotope::result<isotope::text_generator<target>> {
    auto made = isotope::text_generator<target>::open(device, *folder, config, options, std::move(*plans));
    if (!made) return made;
    support::describe_load(program, run().diagnose, device, made->batch().loaded());
    if (auto r = support::write_plan_reports(program, run().diagnose, made->batch().loaded()); !r) return std::move(r).error();
    return made;
  };
  return isotope::serve::text_service<target>::start(open, folder->path, std::size_t(s.queue), counts, worker);
}

/// The keys of a file: its lines, without blanks around them. @error as io::read_file; bad_format: the file has no key
inline isotope::result<std::vector<std::string>> read_keys(const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) return keys;
  const auto bytes = isotope::io::read_file(path);
  if (!bytes) return bytes.error();
  for (const std::string_view line : isotope::io::detail::lines_of(bytes->text())) {
    const std::string_view key = isotope::serve::detail::stripped(line);
    if (!key.empty()) keys.emplace_back(key);
  }
  if (keys.empty()) return isotope::fail(isotope::errc::bad_format, "has no key", path, "write one on each line");
  return keys;
}

}  // namespace serve_program
