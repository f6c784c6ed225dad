#pragma once
/// The memory of a session: one arena for the parameters, moments, states and activations of all its plans, frames for the data that host and device
/// exchange, and access to the state dict.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/initialize.hpp"
#include "../../plan/local_plan.hpp"
#include "../queue/buffer.hpp"
#include "../queue/frame.hpp"
#include "initial_tensor.hpp"
#include "inputs.hpp"
#include "named_plan.hpp"
#include "rank_groups.hpp"
#include "state_dict.hpp"

namespace isotope {

/// The base class of `session`, which adds runs. Nothing here waits for runs in flight; callers do.
template <Queue Q> class session_memory {
 public:
  static constexpr bool host_memory = Q::host_memory;  // whether kernels work in host memory

  /// The state dict, in the order that `read` and `write` count.
  std::span<const slot> parameters() const { return plan().slots; }
  /// The model's states, which persist from run to run, in the order that `read` and `write` count.
  std::span<const port> states() const { return plans_[with_states_].states; }
  const plan_view& plan(std::size_t k = 0) const { return plans_[k]; }
  std::span<const std::string> plans() const { return names_; }
  /// The number of a plan. @error not_found, with the names there are
  result<std::size_t> find(std::string_view label) const { return find_plan(names_, label); }

  /// Whether `read` has such a tensor.
  bool keeps(tensor_kind what, std::size_t k) const {
    return what == tensor_kind::state ? k < states().size() : isotope::keeps(plan(), what, k);
  }
  /// With ZeRO-1: the elements whose masters and moments this rank keeps, in ascending order; `numbers` reads the regions. Empty: it keeps all.
  const std::vector<owned_piece>& owned() const { return pieces_; }
  /// This rank's groups; none on a device that belongs to none.
  rank_groups groups() const {
    if constexpr (BelongsToGroups<Q>) return queue_.groups();
    else return {};
  }
  /// Whether each data index keeps only a part of a tensor (ZeRO-1). `write` takes what all of them have together, and keeps this rank's part.
  bool divides(tensor_kind what, std::size_t k) const { return divided_by_data(plan(), what, k); }
  /// As `read`, also of what `divides`: parts of other data indices read as 0. Frozen parameters without a master are read as kernels have them.
  result<void> read_own(tensor_kind what, std::size_t k, std::span<float> out) const {
    if (!divides(what, k) && !frozen_without_master(plan(), what, k)) return read_all(std::array{tensor_read{what, k, out}});
    if (auto r = has_slot(plan(), k, std::int64_t(out.size())); !r) return r;
    std::fill(out.begin(), out.end(), 0.0f);
    return for_kept_parts(plan(), pieces_, what, k, [&](const kept_part& p) {
      return read_operand(p.where, out.subspan(std::size_t(p.before), std::size_t(p.count)));
    });
  }
  std::int64_t planned_bytes() const { return planned_; }
  /// Bytes of the device's memory that were in use before the session took any: by the driver's context, communicators and other programs. 0 where the queue does not
  /// report them.
  std::int64_t taken_bytes() const { return taken_; }
  /// Bytes of the arena, the frames and the queue's own memory.
  std::int64_t measured_bytes() const {
    std::int64_t n = arena_.bytes() + queue_.bytes();
    for (const auto& f : frames_) n += f.bytes();
    return n;
  }
  Q& queue() { return queue_; }
  const Q& queue() const { return queue_; }
  /// For callers that write to it themselves, when no run is in flight.
  typename Q::memory& arena() { return fresh_ = false, arena_; }
  const arena_layout& layout() const { return layout_; }

 protected:
  static constexpr dtype accum = accum_of(Q::target::precision::type);

  Q queue_;
  std::vector<std::string> names_;
  std::vector<plan_view> plans_;
  typename Q::memory arena_;
  arena_layout layout_;
  std::vector<std::int64_t> readback_;  // offset of each plan's outputs in the frames' readback memory
  std::int64_t readback_bytes_ = 0, planned_ = 0, taken_ = 0;
  std::vector<frame<Q>> frames_;
  inputs inputs_;
  std::size_t with_states_ = 0;                     // the first plan that has states, if there is one
  std::vector<std::unique_ptr<local_plan>> local_;  // of plans of a mesh
  mesh_position position_;
  std::vector<owned_piece> pieces_;  // of ZeRO-1
  bool fresh_ = true;                // whether moments, gradients and states are all zero

  explicit session_memory(Q queue) : queue_(std::move(queue)) {}

  /// Whether runs in frame k have commands of their own.
  static constexpr bool has_commands(std::size_t k) { return k == 0 || !SharesCommands<Q>; }
  typename Q::plan& plan_in(std::size_t frame, std::size_t which) { return frames_[has_commands(frame) ? frame : 0].plans[which]; }
  /// `times`: how many runs, of a queue that repeats them.
  result<submission> submit_in(std::size_t frame, std::size_t which, std::uint8_t active, const std::array<std::int32_t, 16>& sizes,
                               auto... times) {
    isotope::frame<Q>& f = frames_[frame];
    if constexpr (SharesCommands<Q>)
      return queue_.submit(plan_in(frame, which), active, sizes, f.upload.mapped(), f.readback.mapped() + readback_[which], times...);
    else return queue_.submit(f.plans[which], active, sizes, times...);
  }

  /// @error model_mismatch where a plan has other parameters than the first, invalid_argument where it is for another mesh, out_of_memory, missing_feature
  result<void> load(std::span<const named_plan> plans) {
    device_mesh there;
    if constexpr (BelongsToGroups<Q>) there = queue_.groups().mesh(), position_ = queue_.groups().position();
    for (const named_plan& p : plans) {
      if (auto r = same_parameters(plans[0].plan, p.plan, p.name); !r) return r.error();
      if (auto r = fits_mesh(p.plan, there, p.name); !r) return r.error();
      names_.emplace_back(p.name);
      plans_.push_back(p.plan);
      if (!there.single()) {
        local_.push_back(std::make_unique<local_plan>(p.plan, position_));
        plans_.back() = local_.back()->view();
      }
      if (auto r = same_states(states(), p.plan.states, p.name); !r) return r.error();
      if (states().empty()) with_states_ = plans_.size() - 1;
    }
    pieces_ = owned_pieces(plans_[0], position_.data);
    if (auto r = allocate(); !r) return r;
    return bind();
  }
  /// Sets parameters from their initializers, and moments, gradients and states to zero unless they still are. @error device_lost
  result<void> initialize_all(std::uint64_t seed) {
    if (!std::exchange(fresh_, true))
      for (const auto k : {value_kind::moment, value_kind::grad, value_kind::state})
        if (auto r = clear(k); !r) return r;
    if constexpr (Q::host_memory) {
      for (const slot& s : parameters()) initialize_in_place(s, seed);
    } else {
      for (const auto k : {value_kind::param, value_kind::master})
        if (auto r = clear(k); !r) return r;
      worker_team team(worker_team::threads_for(plan().totals.region[std::size_t(value_kind::param)], 1 << 20));
      std::vector<float> x;
      for (const slot& s : parameters()) {
        if (StagesUploads<Q> && s.type != dtype::f16 && !s.pieces.divides() && !plan().totals.shards_updates) {  // whose range is checked
          if (auto r = stage_initial(s, seed, team); !r) return r;
          continue;
        }
        x.resize(std::size_t(s.dims.count()));
        fill_initial(s, position_.tensor, seed, x);
        if (auto r = put_parameter(s, x, s.init.how == initializer::kind::zeros); !r) return r;
      }
      if constexpr (StagesUploads<Q>) return queue_.finish();
    }
    return {};
  }
  /// Reads many tensors in as few copies as the queue can make.
  result<void> read_all(std::span<const tensor_read> all) const {
    std::vector<memory_piece> pieces;
    for (const tensor_read& t : all) {
      if (t.what == tensor_kind::state) {
        if (auto r = read_state(t.slot, t.out); !r) return r;
        continue;
      }
      const auto at = locate(plan(), t.what, t.slot, std::int64_t(t.out.size()));
      if (!at) return at.error();
      const std::int64_t first = layout_[at->region] + at->at;
      if constexpr (accum == dtype::f64) {
        const auto* x = reinterpret_cast<const double*>(arena_.mapped() + first);
        for (std::size_t i = 0; i < t.out.size(); ++i) t.out[i] = float(x[i]);
      } else {
        pieces.push_back({first, std::as_writable_bytes(t.out)});
      }
    }
    return queue_.download(arena_, pieces);
  }
  /// Writes one tensor. @error not_found, invalid_argument (length, or beyond the range of the parameter's format), device_lost
  result<void> write_one(tensor_kind what, std::size_t k, std::span<const float> in) {
    if (what == tensor_kind::state) {
      if (auto r = has_state(states(), k, std::int64_t(in.size())); !r) return r;
      fresh_ = false;
      const operand& o = states()[k].where;
      return store_at(o.type, in, layout_[o.region] + o.at);
    }
    if (auto r = has_slot(plan(), k, std::int64_t(in.size())); !r) return r;
    if (what == tensor_kind::parameter) return put_parameter(parameters()[k], in);  // also in a program without an f32 master to read back
    fresh_ = false;
    if (divides(what, k))
      return for_kept_parts(plan(), pieces_, what, k, [&](const kept_part& p) {
        return store_at(accum, in.subspan(std::size_t(p.before), std::size_t(p.count)), layout_[p.where.region] + p.where.at);
      });
    const auto at = locate(plan(), what, k, std::int64_t(in.size()));
    if (!at) return at.error();
    return store_at(accum, in, layout_[at->region] + at->at);
  }
  /// Zeroes all states.
  result<void> clear_all_states() { return clear(value_kind::state); }
  /// A host pointer to an operand as the last run in a frame left it; null if the host cannot access it.
  std::byte* on_host(const operand& o, std::size_t plan, std::size_t frame) const {
    const isotope::frame<Q>& f = frames_[frame];
    if (o.region == value_kind::output) return f.readback.mapped() + readback_[plan] + o.at;
    if constexpr (!Q::host_memory) return nullptr;
    if (o.region == value_kind::input) return f.upload.mapped() + inputs_.first(plan) + o.at;
    return arena_.mapped() + layout_.of(o, plan);
  }
  /// The elements of an operand of the first plan as f32. @error device_lost; invalid_argument for inputs, unless kernels work in host memory
  result<std::vector<float>> numbers_in(const operand& o) const {
    if constexpr (Q::host_memory) return numbers_of(on_host(o, 0, 0), o);
    if (o.region == value_kind::input) return fail(errc::invalid_argument, "inputs are not read back", "session", "keep what was written");
    std::vector<std::byte> bytes(std::size_t(o.bytes));
    const memory_piece one{layout_.of(o, 0), bytes};
    if (auto r = queue_.download(arena_, {&one, 1}); !r) return r.error();
    return numbers_of(bytes.data(), o);
  }

  /// Fills all memory that the device may write with a byte, for checkers. @error device_lost
  result<void> poison_all(std::byte with) {
    const std::vector<std::byte> piece(std::size_t(std::min<std::int64_t>(arena_.bytes(), 1 << 20)), with);
    for (std::int64_t at = 0; at < layout_.bytes; at += std::int64_t(piece.size())) {
      const auto n = std::min<std::int64_t>(layout_.bytes - at, std::int64_t(piece.size())) / 4 * 4;
      if (auto r = queue_.upload(arena_, at, std::span(piece).first(std::size_t(n))); !r) return r;
    }
    if (Q::host_memory) std::memset(frames_[0].readback.mapped(), int(with), std::size_t(readback_bytes_));
    return {};
  }

 private:
  result<void> allocate() {
    layout_ = arena_layout::of(plans_, !Q::host_memory);
    if constexpr (ReportsMemory<Q>) taken_ = queue_.taken_bytes();
    auto m = queue_.allocate(layout_.bytes, memory_use::device, "isotope arena");
    if (!m) return m.error();
    arena_ = *std::move(m);
    std::int64_t up = frame<Q>::head;
    for (const plan_view& p : plans_) {
      readback_.push_back(readback_bytes_);
      readback_bytes_ += p.totals.region[std::size_t(value_kind::output)];
      up += p.totals.region[std::size_t(value_kind::input)];
    }
    for (std::size_t k = 0; k < Q::frames; ++k) {
      auto f = frame<Q>::allocate(queue_, up, readback_bytes_, has_commands(k));
      if (!f) return f.error();
      frames_.push_back(*std::move(f));
      planned_ += Q::host_memory ? up + readback_bytes_ : frames_.back().upload.bytes() + frames_.back().readback.bytes();
    }
    planned_ += layout_.bytes + queue_.planned_bytes();
    inputs_ = inputs(plans_, frame<Q>::head, Q::host_memory ? frames_[0].upload.mapped() : nullptr, Q::frames);
    return {};
  }
  region_addresses addresses(std::size_t frame, std::size_t plan) const {
    region_addresses r;
    for (std::size_t k = 0; k < r.at.size(); ++k) r.at[k] = arena_.address() + std::uint64_t(layout_.at[k]);
    r.scalars = frames_[has_commands(frame) ? frame : 0].upload.address();
    r.at[std::size_t(value_kind::input)] = r.scalars + std::uint64_t(inputs_.first(plan));
    r.at[std::size_t(value_kind::output)] = Q::host_memory ? frames_[frame].readback.address() + std::uint64_t(readback_[plan])
                                                           : arena_.address() + std::uint64_t(layout_.outputs[plan]);
    return r;
  }
  /// Binds all plans and prepares whole runs in the first frame, which every caller needs. Other frames and phases are prepared at first use.
  result<void> bind() {
    for (std::size_t k = 0; k < frames_.size() && has_commands(k); ++k)
      for (std::size_t p = 0; p < plans_.size(); ++p)
        frames_[k].plans.push_back(queue_.bind(plans_[p], addresses(k, p), frames_[k].readback.address() + std::uint64_t(readback_[p])));
    for (std::size_t p = 0; p < plans_.size(); ++p)
      if (auto& plan = frames_[0].plans[p]; !plan.dynamic())
        if (auto r = queue_.prepare(plan, p == 0 ? phase_first | phase_last : phase_always, {}); !r) return r;
    return queue_.loaded();
  }

  std::byte* region(value_kind k) const { return arena_.mapped() + layout_[k]; }
  result<void> clear(value_kind k) {
    return queue_.clear(arena_, layout_[k], plans_[k == value_kind::state ? with_states_ : 0].totals.region[std::size_t(k)]);
  }
  result<void> read_state(std::size_t k, std::span<float> out) const {
    if (auto r = has_state(states(), k, std::int64_t(out.size())); !r) return r;
    return read_operand(states()[k].where, out);
  }
  result<void> read_operand(const operand& o, std::span<float> out) const {
    auto x = numbers_in(o);
    if (!x) return x.error();
    std::copy(x->begin(), x->end(), out.begin());
    return {};
  }
  bool has_master() const { return plan().totals.region[std::size_t(value_kind::master)] > 0; }
  /// Whether a parameter has an f32 master copy beside the narrower values that kernels read.
  bool wants_master(const slot& s) const { return s.type == Q::target::precision::type && s.type != accum && has_master(); }

  /// Writes n masters from element `first` of the parameters on, where kernels work in host memory.
  template <class E> void store_master(std::int64_t first, const E* x, std::int64_t n) {
    static_cast<void>(for_masters(pieces_, plan(), first, n, [&](std::int64_t at, std::int64_t before, std::int64_t some) -> result<void> {
      store(accum, x + before, some, region(value_kind::master) + at * size_of(accum));
      return {};
    }));
  }

  void initialize_in_place(const slot& s, std::uint64_t seed) {
    if (s.pieces.divides()) return initialize_piece(s, seed);
    constexpr std::int64_t runs = 256;  // in one task
    const std::int64_t n = s.dims.count(), all = (n + initial_run - 1) / initial_run;
    queue_.parallel((all + runs - 1) / runs, [&](std::int64_t task) {
      for_initial_runs(s.init, seed, stream_of(s.path.view()), n, task * runs, (task + 1) * runs,
                       [&](std::int64_t i, const double* x, std::int64_t some) {
                         if (in_blocks(s.type)) return quantized::store(s.type, x, i, some, s.dims[1], region(value_kind::param) + s.at);
                         store(s.type, x, some, region(value_kind::param) + (s.at + i) * size_of(s.type));
                         if (wants_master(s)) store_master(s.at + i, x, some);
                       });
    });
    queue_.stored(s, addresses(0, 0), {});
  }
  /// The same of a parameter of which this rank has a part.
  void initialize_piece(const slot& s, std::uint64_t seed) {
    const auto put = [&](std::int64_t i, const double* x, std::int64_t n) {
      store(s.type, x, n, region(value_kind::param) + (s.at + i) * size_of(s.type));
      if (wants_master(s)) store_master(s.at + i, x, n);
    };
    const double zeros[initial_run]{};
    const std::vector<piece_run> all = initial_pieces(s, position_.tensor);
    if (s.pieces.along.each > 0)  // rows of padding
      for (std::int64_t i = 0; i < s.dims.count(); i += initial_run) put(i, zeros, std::min(initial_run, s.dims.count() - i));
    queue_.parallel(std::int64_t(all.size()), [&](std::int64_t k) { for_initial_piece(s, seed, all[std::size_t(k)], put); });
    queue_.stored(s, addresses(0, 0), {});
  }
  /// Computes a parameter whose memory is zeroed in staging memory: the device copies one piece while threads compute the next.
  result<void> stage_initial(const slot& s, std::uint64_t seed, worker_team& team) {
    if constexpr (StagesUploads<Q>) {
      const bool wide = s.type == accum || wants_master(s), narrow = s.type != accum;
      const std::int64_t n = s.init.how == initializer::kind::zeros ? 0 : s.dims.count(), piece = Q::staging_bytes / size_of(accum);
      const std::int64_t width = size_of(s.type),
                         master_at = layout_[narrow ? value_kind::master : value_kind::param] + s.at * size_of(accum);
      std::size_t turn = 0;
      for (std::int64_t at = 0; at < n; at += piece, turn ^= narrow ? 0 : 1) {
        const std::int64_t some = std::min(piece, n - at);
        auto floats = queue_.staging(turn), others = narrow ? queue_.staging(1) : floats;
        if (!floats || !others) return (floats ? others : floats).error();
        compute_initial(team, s.init, seed, stream_of(s.path.view()), n, at, at + some,
                        [&](std::int64_t i, const double* x, std::int64_t run) {
                          if (wide) store(accum, x, run, *floats + (i - at) * size_of(accum));
                          if (narrow) store(s.type, x, run, *others + (i - at) * width);
                        });
        if (wide)
          if (auto r = queue_.send(turn, arena_, master_at + at * size_of(accum), some * size_of(accum)); !r) return r;
        if (narrow)
          if (auto r = queue_.send(1, arena_, layout_[value_kind::param] + (s.at + at) * width, some * width); !r) return r;
      }
      if (queue_.stored(s, addresses(0, 0), {}))
        for (auto& f : frames_) f.forget();
    }
    return {};
  }
  /// Converts numbers to a format and stores them in the arena.
  result<void> store_at(dtype type, std::span<const float> x, std::int64_t at) {
    if (type == dtype::f32) return queue_.upload(arena_, at, std::as_bytes(x));
    if constexpr (Q::host_memory) {
      store(type, x.data(), std::int64_t(x.size()), arena_.mapped() + at);
      return {};
    } else {
      std::vector<std::byte> bytes(x.size() * std::size_t(size_of(type)));
      store(type, x.data(), std::int64_t(x.size()), bytes.data());
      return queue_.upload(arena_, at, bytes);
    }
  }
  /// Quantises a weight and stores it in the arena.
  result<void> store_blocks(const slot& s, std::span<const float> x) {
    const std::int64_t K = s.dims[1], at = layout_[value_kind::param] + s.at;
    if constexpr (Q::host_memory) {
      constexpr std::int64_t rows = quantized::panel_rows;  // in one task
      queue_.parallel((s.dims[0] + rows - 1) / rows, [&](std::int64_t task) {
        const std::int64_t first = task * rows * K;
        quantized::store(s.type, x.data() + first, first, std::min(rows * K, std::int64_t(x.size()) - first), K, arena_.mapped() + at);
      });
      return {};
    } else {
      std::vector<std::byte> bytes(std::size_t(quantized::bytes_of(s.type, s.dims[0], K)));
      quantized::store(s.type, x.data(), 0, std::int64_t(x.size()), K, bytes.data());
      return queue_.upload(arena_, at, bytes);
    }
  }
  /// `cleared`: x is all zeros and the parameter's memory is zeroed already.
  result<void> put_parameter(const slot& s, std::span<const float> x, bool cleared = false) {
    if (auto r = within_range(s, x); !r) return r;
    if (!cleared) {
      if (auto r = in_blocks(s.type) ? store_blocks(s, x) : store_at(s.type, x, layout_[value_kind::param] + s.at * size_of(s.type)); !r)
        return r;
      if (wants_master(s))
        if (auto r = for_masters(pieces_, plan(), s.at, std::int64_t(x.size()),
                                 [&](std::int64_t at, std::int64_t before, std::int64_t n) {
                                   return store_at(accum, x.subspan(std::size_t(before), std::size_t(n)),
                                                   layout_[value_kind::master] + at * size_of(accum));
                                 });
            !r)
          return r;
    }
    if (queue_.stored(s, addresses(0, 0), x))
      for (auto& f : frames_) f.forget();
    return {};
  }
};

}  // namespace isotope
