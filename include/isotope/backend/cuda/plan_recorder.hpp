#pragma once
/// Records the plans of a session as graphs, and owns what these plans share on a CUDA device.
#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../queue/loaded_plan.hpp"
#include "constant_pool.hpp"
#include "direct_launches.hpp"
#include "early_starts.hpp"
#include "graph_edges.hpp"
#include "plan_dispatches.hpp"
#include "step_graph.hpp"
#include "variant_timer.hpp"

#include <isotope/kernels/cuda/joined/encoder.hpp>
#include <isotope/kernels/cuda/joined/halves.hpp>
#include <isotope/kernels/cuda/joined/joined.hpp>
#include <isotope/kernels/cuda/joined/row_norms.hpp>
#include <isotope/kernels/cuda/joined/whole_step.hpp>

namespace isotope::cuda {

struct plan_recorder {
  using dispatch = cuda::dispatch;
  using commands = step_graph*;
  using constant_pool = cuda::constant_pool;

  std::shared_ptr<context> device;
  std::shared_ptr<loaded_functions> functions;
  std::unique_ptr<constant_pool> shared_pool;
  kernel_set kernels;
  stream_groups groups;
  std::deque<step_graph> graphs;
  std::vector<library_product> products;  // of the graphs that were recorded while plans were loaded
  bool whole = false;                     // whether all plans of the session are loaded

  plan_recorder(std::shared_ptr<context> c, std::shared_ptr<loaded_functions> loaded, const kernel_set& all, const rank_groups& ranks = {})
      : device(std::move(c)),
        functions(std::move(loaded)),
        shared_pool(std::make_unique<constant_pool>(device)),
        kernels(all),
        groups(ranks) {}

  /// Upload memory whose host part every graph copies to the device. Memory that was freed is forgotten when its addresses are used again.
  void mirror(const memory& m) {
    const range now(m.address(), m.bytes());
    std::erase_if(mirrors_, [&](const mirrored& x) { return x.device.overlaps(now); });
    mirrors_.push_back({now, m.mapped()});
  }

  /// The dispatches of a run: the scalars and the inputs are copied to the device first, and the outputs to readback memory last.
  std::vector<dispatch> list(const bound_plan& p, std::uint8_t active, constant_pool& pool) {
    std::vector<dispatch> all;
    const range scalars(p.base.scalars, std::int64_t(sizeof(gpu::scalars)));
    const range inputs(p.base[value_kind::input], p.plan.totals.region[std::size_t(value_kind::input)]);
    constexpr std::uint64_t near = 4096;  // one copy is cheaper than two if so few bytes lie between
    if (inputs.bytes() > 0 && inputs.first >= scalars.end && inputs.first - scalars.end < near && source_of(scalars) != nullptr) {
      add_copy(all, {scalars.first, std::int64_t(inputs.end - scalars.first)});
    } else {
      add_copy(all, scalars);
      add_copy(all, inputs);
    }
    auto steps = chosen(p, active, pool);
    const auto bytes = p.plan.totals.region[std::size_t(value_kind::output)];
    if (!device->options.diagnose.no_joins && !join_encoder(p, steps)) {
      join_appends(steps);
      join_norms(steps, {p.base[value_kind::output], bytes});
      if (!device->options.diagnose.no_row_norms) row_norms(steps, {p.base[value_kind::output], bytes}, device->physical().limits);
      if (!device->options.diagnose.no_halves) join_halves(steps, {p.base[value_kind::output], bytes});
    }
    all.insert(all.end(), std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
    if (p.readback == 0 || bytes == 0 || device->options.diagnose.no_readback) return all;
    dispatch d = copy_of(reinterpret_cast<std::byte*>(p.readback), p.base[value_kind::output], bytes, false);
    d.reads.push_back({p.base[value_kind::output], bytes});
    d.writes.push_back({p.readback, bytes});
    all.push_back(std::move(d));
    return all;
  }
  /// The dispatches of the steps, with the variants of kernels that are known to be the fastest. Where they are not known, they are timed if that is asked for.
  std::vector<dispatch> chosen(const bound_plan& p, std::uint8_t active, constant_pool& pool) {
    const auto recorded = [&](const step_recording& how) {
      return cuda::record(p.plan, kernels, p.base, p.sizes, device->physical().limits, active, pool, functions->code, how);
    };
    auto& variants = *functions->variants;
    const bool known = variants.level() != tuning::off && device->physical().limits.switches.variant.empty();
    const step_recording all{known ? &variants : nullptr};
    auto steps = recorded(all);
    if (!known) return steps;
    variant_timer timer(device, *functions, recorded);
    if (!tuner(p.plan, variants, timer).settle(steps)) return steps;
    variants.save();
    return recorded(all);
  }
  result<step_graph*> new_commands() { return &graphs.emplace_back(device); }
  /// A graph needs no barriers: its edges are computed from the dispatches. The copies before and after the kernels are not in it: `submit` puts them on the
  /// stream, with other host memory each time, so that one graph serves every frame and the driver's data of it stay in the processor's caches.
  result<void> record(step_graph* to, const std::vector<dispatch>& all, std::span<const std::uint8_t>) {
    const std::vector<dispatch> inner(all.begin() + std::ptrdiff_t(copies_in(all)), all.end() - std::ptrdiff_t(copies_out(all)));
    for (const dispatch& d : inner)
      if (!whole && d.product.batches > 0) products.push_back(d.product);
    auto waits = graph_edges(inner, device->options.diagnose.exchanges_in_order);
    drop_edge(waits, device->options.diagnose.drop_barrier);
    const auto early = device->options.diagnose.no_early_start ? std::vector<std::uint8_t>(inner.size(), 0)
                                                               : early_starts(inner, waits, device->physical().limits);
    if (auto r = to->build(*functions, inner, waits, early, groups); !r || device->options.diagnose.no_direct) return r;
    return to->build_direct(*functions, direct_launches(all), waits, early, groups);
  }
  /// Starts recorded dispatches, `times` runs of them, with the inputs of `upload`, whose first byte belongs at the device's address `inputs`; outputs are copied to
  /// `readback` after the last run. A run on the memory that the dispatches were recorded with needs fewer copies where there is a graph for that. Returns the timeline's value at
  /// the end. @error device_lost, out_of_memory
  result<std::uint64_t> submit(step_graph& of, const std::vector<dispatch>& all, std::uint64_t inputs, const std::byte* upload,
                               std::byte* readback, int times = 1) {
    const driver& f = device->f();
    const stream_handle stream = device->stream();
    const auto source = [&](const host_copy& c) { return upload + (c.device - inputs); };
    const auto copy_inputs = [&] {
      status s = status::success;
      for (std::size_t i = 0, n = copies_in(all); i < n && s == status::success; ++i) {
        const auto& c = all[i].copy;
        s = f->copy_to_device(c.device, source(c), std::size_t(c.bytes), stream);
      }
      return s;
    };
    const auto starts_there = [&] { return copies_in(all) == 0 || source(all[0].copy) == all[0].copy.host; };
    if (of.direct() != nullptr && times == 1 && starts_there() && readback == all.back().copy.host) {
      const auto run = [&] {
        const status s = of.copies_inputs() ? copy_inputs() : status::success;
        return s == status::success ? f->launch_graph(of.direct(), stream) : s;
      };
      return device->submitted("launching a graph", run, of.direct());
    }
    const executable_handle graph = of.handle();
    const auto run = [&] {
      status s = copy_inputs();
      for (int k = 0; k < times && s == status::success; ++k) s = f->launch_graph(graph, stream);
      if (s == status::success && copies_out(all) > 0)
        s = f->copy_to_host(readback, all.back().copy.device, std::size_t(all.back().copy.bytes), stream);
      return s;
    };
    // Several runs are other work than one, whose end the context expects at another time.
    return device->submitted("launching a graph", run, reinterpret_cast<const std::byte*>(graph) + (times - 1));
  }
  std::unique_ptr<constant_pool> new_pool() const { return std::make_unique<constant_pool>(device); }
  constant_pool& pool() const { return *shared_pool; }
  std::int32_t dropped_barrier() const { return -1; }  // record leaves out an edge instead

  /// Runs the dispatches of each plan step separately, waits, and calls after(step). Returns the timeline value of the last one.
  /// @error device_lost, out_of_memory, timeout
  template <class After> result<std::uint64_t> run_one_by_one(std::span<const dispatch> all, const After& after) {
    if (!shared_pool->error().what.empty()) return shared_pool->error();
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i + 1;
      while (end < all.size() && all[end].step == all[i].step) ++end;
      auto value = run(all.subspan(i, end - i));
      if (!value) return value;
      if (auto r = device->wait(*value); !r) return r.error();
      done = *value;
      if (all[i].step >= 0) after(std::size_t(all[i].step));
      i = end;
    }
    return done;
  }
  /// Loads what dispatches need, so that starting them takes no more time than later. @error missing_feature, out_of_memory
  result<void> load(std::span<const dispatch> all) {
    for (const dispatch& d : all) {
      if (d.copy.host != nullptr || exchanges(d)) continue;
      if (d.product.batches > 0) {
        if (auto r = functions->products->choose(d.product); !r) return r.error();
      } else if (auto f = functions->code.of(d); !f) {
        return f.error();
      }
    }
    return {};
  }
  /// Starts dispatches one after the other on the stream. @error device_lost, out_of_memory, missing_feature
  result<std::uint64_t> run(std::span<const dispatch> all) {
    std::vector<function_handle> kernels_of(all.size());
    std::vector<std::vector<std::byte>> arguments(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].copy.host != nullptr || exchanges(all[i])) continue;
      if (all[i].product.batches > 0) {
        if (auto r = functions->products->choose(all[i].product); !r) return r.error();
        continue;
      }
      auto f = functions->code.of(all[i]);
      if (!f) return f.error();
      kernels_of[i] = *f;
      auto a = arguments_of(*device, all[i]);
      if (!a) return a.error();
      arguments[i] = *std::move(a);
    }
    result<void> library;  // says more than a status
    auto value = device->submitted("launching kernels", [&] {
      for (std::size_t i = 0; i < all.size() && library; ++i) {
        if (exchanges(all[i])) {
          library = groups.start(all[i].collective, device->stream());
        } else if (all[i].product.batches > 0) {
          library = functions->products->start(all[i].product, device->stream());
        } else if (const auto s = launch_on_stream(*device, all[i], kernels_of[i], arguments[i]); s != status::success) {
          return s;
        }
      }
      return status::success;
    });
    if (!library) return library.error();
    return value;
  }

 private:
  struct mirrored {
    range device;
    std::byte* host = nullptr;
  };
  std::vector<mirrored> mirrors_;
  /// What decode_halves, decode_whole_step and small_encoder pass on. Plans of a session run one after the other, so they share it.
  memory halves_, words_, encoder_;

  /// Whether the plan is a small encoder, whose launches take the place of all others. One that its kernels take, but not on this device, says why.
  bool join_encoder(const bound_plan& p, std::vector<dispatch>& steps) {
    if (device->options.diagnose.no_encoder || steps.empty()) return false;
    const small_encoder encoder(p.plan, p.base, device->physical().limits);
    const auto refused = [&steps](std::string_view why) {
      for (dispatch& d : steps)
        if (d.function.starts_with("attention_packed") && d.reason.empty()) d.reason = why;
      return false;
    };
    if (!encoder.why().empty()) return encoder.device_refuses() && refused(encoder.why());
    if (encoder_.address() == 0) {
      auto m = memory::allocate(device, small_encoder::scratch_bytes, memory_use::device, "isotope rows of a small encoder");
      if (!m) return false;
      const auto here = device->current();
      const std::uint64_t zeros = m->address() + std::uint64_t(small_encoder::zeros_at);
      if (device->f()->fill_words(zeros, 0, std::size_t(small_encoder::zeros_bytes / 4), device->stream()) != status::success) return false;
      encoder_ = *std::move(m);
    }
    const auto joined = [&](bool together) {
      std::vector<dispatch> all = steps;
      encoder.join(all, encoder_.address(), together);
      return all;
    };
    auto launches = joined(false);
    const auto fit = functions->code.clusters_that_fit(launches.front());
    if (!fit || *fit < 1) return refused(small_encoder::no_room);
    const bool together = encoder.clusters() > 1 && *fit >= encoder.clusters() && !device->options.diagnose.no_together;
    steps = together ? joined(true) : std::move(launches);
    return true;
  }

  /// A step of few rows becomes one launch where its blocks fit the device, other layers two launches each. Without memory for them, layers keep their launches.
  void join_halves(std::vector<dispatch>& steps, const range& kept) {
    decode_whole_step halves(steps, kept, device->physical().limits);
    if (!halves.found()) return;
    if (!device->options.diagnose.no_whole_step && join_whole_step(halves)) return;
    if (halves_.address() == 0) {
      auto m = memory::allocate(device, decode_halves::scratch_bytes, memory_use::device, "isotope halves of layers");
      if (!m) return;
      halves_ = *std::move(m);
    }
    halves.join(halves_.address());
  }
  /// Whether one launch takes the place of all halves: only where its blocks run at the same time.
  bool join_whole_step(decode_whole_step& halves) {
    if (!halves.takes_one_launch()) return false;
    if (words_.address() == 0) {
      auto m = memory::allocate(device, decode_whole_step::words_bytes, memory_use::device, "isotope parts of residual rows");
      if (!m) return false;
      const auto here = device->current();
      if (device->f()->fill_words(m->address(), 0, std::size_t(m->bytes() / 4), device->stream()) != status::success) return false;
      words_ = *std::move(m);
    }
    const dispatch one = halves.whole_step(words_.address());
    const auto fit = functions->code.clusters_that_fit(one);
    if (!fit || *fit < int(one.count.x / one.count.cluster)) return false;
    halves.join(one);
    return true;
  }

  std::byte* source_of(const range& to) const {
    for (const mirrored& m : mirrors_)
      if (to.first >= m.device.first && to.end <= m.device.end) return m.host + (to.first - m.device.first);
    return nullptr;
  }
  static dispatch copy_of(std::byte* host, std::uint64_t at, std::int64_t bytes, bool to_device) {
    dispatch d;
    d.copy = {host, at, bytes, to_device};
    d.function = to_device ? "copy to the device" : "copy to the host";
    d.set = isotope::kernels::portable::name;
    return d;
  }
  void add_copy(std::vector<dispatch>& all, const range& to) const {
    std::byte* const from = to.bytes() > 0 ? source_of(to) : nullptr;
    if (from == nullptr) return;
    all.push_back(copy_of(from, to.first, to.bytes(), true));
    all.back().writes.push_back(to);
  }
  static void drop_edge(dispatch_edges& waits, std::int32_t index) {
    if (index < 0) return;
    for (auto& of : waits)
      for (std::size_t k = 0; k < of.size(); ++k)
        if (index-- == 0) {
          of.erase(of.begin() + std::ptrdiff_t(k));
          return;
        }
  }
};

}  // namespace isotope::cuda
