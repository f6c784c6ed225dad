#pragma once
/// Times variants of kernels on a CUDA device: several runs of a step as one graph, between two events.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../queue/tuner.hpp"
#include "early_starts.hpp"
#include "graph_edges.hpp"
#include "memory.hpp"
#include "step_graph.hpp"

namespace isotope::cuda {

/// A VariantTimer. `Record` lists the dispatches of a plan.
template <class Record> class variant_timer {
 public:
  using dispatch = cuda::dispatch;
  using memory = cuda::memory;
  struct run {
    std::unique_ptr<step_graph> graph, before = {};  // before: runs before the clock starts; null: `graph` does
    int times = 1, launches = 1;                     // runs in the graph, and launches of the graph that are timed
  };

  variant_timer(std::shared_ptr<context> c, loaded_functions& functions, const Record& record)
      : context_(std::move(c)), functions_(functions), record_(record) {}
  variant_timer(const variant_timer&) = delete;
  variant_timer& operator=(const variant_timer&) = delete;
  ~variant_timer() {
    if (events_[0] == nullptr || context_->lost()) return;
    const auto here = context_->current();
    for (const auto e : events_)
      if (e != nullptr) context_->f()->destroy_event(e);
  }

  static constexpr int recordings = 8;  // the same dispatches took times up to 2 % apart

  std::vector<dispatch> record(const step_recording& how) { return record_(how); }
  /// @error missing_feature, out_of_memory
  result<void> compile(const std::vector<dispatch>& all, std::span<const dispatch>) {
    for (const dispatch& d : all)
      if (d.product.batches == 0)
        if (auto f = functions_.code.of(d); !f) return f.error();
    return {};
  }
  result<void> ready(const std::vector<dispatch>&) const { return {}; }
  /// Copies between addresses of the device.
  result<void> copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes) const {
    return done(context_->submitted("copying numbers for timing",
                                    [&] { return context_->f()->copy_on_device(to, from, std::size_t(bytes), context_->stream()); }));
  }
  /// @error out_of_memory
  result<memory> allocate(std::int64_t bytes) const {
    return memory::allocate(context_, bytes, memory_use::device, "operands of timed kernels");
  }
  result<void> clear(const memory& m, std::int64_t at, std::int64_t bytes) const {
    return done(context_->submitted("clearing memory", [&] {
      return context_->f()->fill_words(m.address() + std::uint64_t(at), 0, std::size_t(bytes / 4), context_->stream());
    }));
  }
  result<void> upload(const memory& m, std::int64_t at, std::span<const std::byte> from) const {
    return done(context_->submitted("copying to the device", [&] {
      return context_->f()->copy_to_device(m.address() + std::uint64_t(at), from.data(), from.size(), context_->stream());
    }));
  }
  result<void> download(const memory& m, std::span<const memory_piece> all) const {
    return done(context_->submitted("copying to the host", [&] {
      for (const memory_piece& p : all)
        if (const auto s = context_->f()->copy_to_host(p.to.data(), m.address() + std::uint64_t(p.at), p.to.size(), context_->stream());
            s != status::success)
          return s;
      return status::success;
    }));
  }
  result<run> prepare(const std::vector<dispatch>& all, int times) {
    auto graph = repeated(all, times);
    if (!graph) return graph.error();
    return run{.graph = *std::move(graph), .times = times};
  }
  /// Each run is a launch of its own, as a plan is. A graph of `before` runs goes before them: while it runs, the host launches those that are timed, so that they follow each other
  /// at once however slow the host is.
  result<run> prepare_alone(const std::vector<dispatch>& all, int before) {
    auto graph = repeated(all, 1), longer = repeated(all, before);
    if (!graph) return graph.error();
    if (!longer) return longer.error();
    return run{.graph = *std::move(graph), .before = *std::move(longer), .launches = std::clamp(before, 1, 4)};
  }
  /// The graph is launched once before the first event, so that the time that the host takes to launch the second one does not count.
  result<double> seconds(const run& r) {
    const auto& f = context_->f();
    const auto stream = context_->stream();
    {
      const auto here = context_->current();
      for (auto& e : events_)
        if (e == nullptr)
          if (const auto s = f->create_event(&e, 0); s != status::success) return context_->failed(s, "an event");
      auto s = r.before == nullptr ? status::success : f->launch_graph(r.before->handle(), stream);
      if (s == status::success) s = f->launch_graph(r.graph->handle(), stream);
      if (s == status::success) s = f->record_event(events_[0], stream);
      for (int k = 0; k < r.launches && s == status::success; ++k) s = f->launch_graph(r.graph->handle(), stream);
      if (s == status::success) s = f->record_event(events_[1], stream);
      if (s != status::success) return context_->failed(s, "timing variants of a kernel");
    }
    if (auto ended = context_->wait_for(events_[1], "timing variants of a kernel"); !ended) return ended.error();
    const auto here = context_->current();
    float milliseconds = 0;
    if (const auto s = f->elapsed_milliseconds(&milliseconds, events_[0], events_[1]); s != status::success)
      return context_->failed(s, "reading the time of a kernel");
    return 1e-3 * double(milliseconds) / (r.times * r.launches);
  }

 private:
  std::shared_ptr<context> context_;
  loaded_functions& functions_;
  const Record& record_;
  std::array<event_handle, 2> events_{};

  /// A graph of several runs. Kernels start early where those of a plan do.
  result<std::unique_ptr<step_graph>> repeated(const std::vector<dispatch>& all, int times) {
    std::vector<dispatch> several;
    for (int k = 0; k < times; ++k) several.insert(several.end(), all.begin(), all.end());
    auto graph = std::make_unique<step_graph>(context_);
    const auto waits = graph_edges(several);
    const auto early = context_->options.diagnose.no_early_start ? std::vector<std::uint8_t>(several.size(), 0)
                                                                 : early_starts(several, waits, context_->physical().limits);
    if (auto built = graph->build(functions_, several, waits, early); !built) return built.error();
    return graph;
  }
  result<void> done(const result<std::uint64_t>& submitted) const {
    if (!submitted) return submitted.error();
    return context_->wait(*submitted);
  }
};

}  // namespace isotope::cuda
