#pragma once
/// Predicts how long the algorithms of a native gemm take, up to what they have in common: from the cells and panels that they divide a product into, the words
/// that each thread moves, and the share of the thread that has most to do.
#include <isotope/backend/cpu/processor_rates.hpp>
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/weight_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// A product and how its operands are multiplied: in f32, in pairs of bf16, or by a matrix unit.
struct product_problem {
  const portable::matmul_shape* s;
  std::int64_t bytes;        // of an element of the right operand
  bool batch_invariant;      // a row is to have the same bits however many there are
  bool in_place = true;      // sums are stored as they are
  bool in_panels = false;    // both operands are f32, which gemm_by_panels takes
  bool copies_rows = false;  // gemm_by_columns copies the left operand
  bool any_order = false;    // variants that add up in another order than the one that sizes choose may be asked for by name
  std::int64_t threads = 1;  // of the device
  processor_rates rates = {};
  bool strides_cost = true;  // panels read where they lie wait for memory: of Intel's processors; Zen 5 fetches them in time

  constexpr bool columns_lie() const { return s->b_k == 1 && s->b_col != 1; }  // in one piece each, those of the right operand
};

/// Nanoseconds for a word of 32 bits: an f32, or a pair of bf16. They were fitted to the ratios of some 600 measured pairs of variants on a Xeon with AMX at 1, 4 and
/// 16 threads, f32 and bf16 (bench/CPU.md). Up to blocking::copies threads pack for themselves, and words come from caches of their own core; beyond that, from those of others.
template <class Operands> class product_time {
 public:
  explicit constexpr product_time(const product_problem& p)
      : p_(p),
        s_(*p.s),
        far_(p.threads > blocking::copies),
        multiply_(p.rates.multiply > 0 ? double(Operands::per_step) * 1e9 / p.rates.multiply : (far_ ? 1.5 : 1) * usual_multiply),
        shared_(p.rates.copy > 0 ? 8e9 / p.rates.copy : usual_shared),
        barrier_(p.rates.barrier > 0 ? 1e9 * p.rates.barrier : usual_barrier) {}

  /// In seconds.
  /// @param left  the left operand is packed
  constexpr double by_rows(bool left) const {
    const std::int64_t V = left ? s_.M : s_.N, R = left ? s_.N : s_.M, r_k = left ? s_.b_k : s_.a_k;
    const gemm_partition cut(V, R, s_.K, Operands::per_step, Operands::k_unit, Operands::v_unit);
    double nsec = 0;
    cut.chunks(s_.batches, V, R, s_.K, [&](const gemm_chunk& c) {
      const auto cells = gemm_cells::of_rows<Operands>(c.vs, c.rs, c.batches, cut.depth, !left && p_.in_place, Operands::transposes(r_k));
      const std::int64_t tasks = cells.count() * c.batches, parts = parts_of(c, tasks);
      const double deep = double(Operands::packed_steps(c.ks)), width = double(whole(c.vs, lanes)), rows = double(c.rs);
      const double whole_rows = double(cells.rows() * whole(divide_up(c.rs, cells.rows()), Operands::tile_rows));
      const std::int64_t packs = c.batches * divide_up(c.ks, cut.depth) * vector_panels(c.vs).count();
      const double packed = double(c.batches) * width * deep;
      nsec += barrier_ + (far_ ? 1 : 0) * barrier_;
      nsec +=
          far_ ? share(packs, parts) * packed * pack_far * shared_ : packed * ((left ? s_.a_k : s_.b_k) == 1 ? pack_along : pack_across);
      double cell = whole_rows * width * deep * multiply_;
      if (far_) cell += width * deep * double(cells.rows()) * shared_;
      cell += rows * deep * double(cells.columns()) * (r_k == 1 ? streamed() : strided);
      if (left) cell += rows * width * transposed;
      nsec += share(tasks, parts) * (double(c.batches) * cell + double(tasks) * task);
    });
    return 1e-9 * nsec;
  }
  constexpr double by_columns() const {
    const gemm_partition cut(s_.M, s_.N, s_.K, Operands::per_step, Operands::k_unit, Operands::v_unit);
    const bool reads_in_place = Operands::per_step == 1 && s_.b_k % 1024 != 0;
    const double left = s_.a_k == 1 || p_.copies_rows || far_ || !p_.strides_cost ? streamed() : strided_in_place;
    double nsec = 0;
    cut.chunks(s_.batches, s_.M, s_.N, s_.K, [&](const gemm_chunk& c) {
      const auto cells = gemm_cells::of_columns<Operands>(c.vs, c.rs, c.batches, p_.in_place);
      const std::int64_t tasks = cells.count() * c.batches, parts = parts_of(c, tasks);
      const double deep = double(Operands::packed_steps(c.ks)), width = double(whole(c.rs, lanes)), rows = double(c.vs);
      const double whole_rows = double(cells.rows() * whole(divide_up(c.vs, cells.rows()), Operands::tile_rows));
      nsec += barrier_;
      if (p_.copies_rows) nsec += double(c.batches) * rows * deep * (far_ ? pack_far * shared_ / double(parts) : copy);
      double cell = whole_rows * width * deep * multiply_ + rows * deep * double(cells.columns()) * left;
      cell += double(cells.rows()) * width * deep * (reads_in_place ? in_place_once() : far_ ? pack_far * shared_ : pack_once);
      if (reads_in_place) cell += whole_rows / double(Operands::tile_rows) * width * deep * in_place_again;
      nsec += share(tasks, parts) * (double(c.batches) * cell + double(tasks) * task);
    });
    return 1e-9 * nsec;
  }
  /// Each task packs its panels, from lines that are prefetched while many rows meet those before. A narrow panel counts as a whole one, and fewer tasks than the
  /// eight of other gemms gain nothing.
  constexpr double by_panels() const {
    const auto cells = panel_cells::of(s_.M, s_.N, 1, p_.threads, panel_cells::most_rows);
    const std::int64_t tasks = cells.count();
    const std::int64_t parts = parts_of(product_nsec(1, s_.M, s_.N, s_.K), tasks);
    const double deep = double(s_.K), width = double(whole(s_.N, weight_panels::cols)), rows = double(s_.M);
    const double whole_rows = double(cells.rows() * whole(divide_up(s_.M, larger_of(1, cells.rows())), weight_panels::rows));
    const double pack = far_ ? pack_far * shared_ : cells.down >= 128 ? pack_along / 2 : pack_along;
    const double cell = whole_rows * width * deep * multiply_ + width * deep * double(cells.rows()) * pack +
                        rows * deep * double(cells.columns()) * (far_ ? shared_ : streamed());
    return 1e-9 * (barrier_ + share(tasks, parts) * (cell + double(larger_of(8, tasks)) * task));
  }
  /// How many times as long as an even share the longest thread takes that divides so many tasks; 1 / parts where they divide evenly.
  static constexpr double share(std::int64_t tasks, std::int64_t parts) {
    return tasks <= 0 ? 0 : double(divide_up(tasks, parts)) / double(tasks);
  }

 private:
  static constexpr bool single = Operands::per_step == 1;
  static constexpr double usual_multiply = Operands::k_unit > 2 ? 0.0065 : 0.022, usual_shared = 0.93, usual_barrier = 2000, task = 4000;
  // Columns that lie in one piece are turned; a panel that one task packs for itself stays in L1.
  static constexpr double pack_along = 0.51, pack_across = single ? 0.55 : 0.37, pack_once = 0.20, copy = 0.53;
  static constexpr double pack_far = 2;  // times `shared_`: a word comes from another core's cache and goes to one
  static constexpr double strided = single ? 0.6 : 0.76, transposed = single ? 1.02 : 0.75;
  static constexpr double strided_in_place = 0.35;  // of the left operand, whose columns share L1 with a panel
  static constexpr double in_place_again = 0.003;   // of panels in memory, for each register tile of rows
  /// Of panels in memory, each word the first time: less if the caches of a core may hold the operand from the last run.
  constexpr double in_place_once() const { return !p_.strides_cost ? 0.2 : s_.N * s_.K <= 640000 ? 0.15 : 1.1; }
  constexpr double streamed() const { return far_ ? shared_ : 0.085; }

  const product_problem& p_;
  const portable::matmul_shape& s_;
  bool far_;
  double multiply_, shared_, barrier_;

  /// The threads that take part, as for_uneven_tasks lets them.
  constexpr std::int64_t parts_of(const gemm_chunk& c, std::int64_t tasks) const {
    return parts_of(product_nsec(c.batches, c.vs, c.rs, c.ks / Operands::per_step), tasks);
  }
  constexpr std::int64_t parts_of(double nsec, std::int64_t tasks) const {
    if (nsec < 2 * portable::worth_nsec) return 1;
    const double each = nsec / double(larger_of(1, tasks));
    const std::int64_t grain = each >= portable::worth_nsec ? 1 : std::int64_t(portable::worth_nsec / each) + 1;
    return larger_of(1, smaller(p_.threads, tasks / grain));
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
