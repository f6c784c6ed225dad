#pragma once
/// The dispatches of a Fourier transform: fft.comp once for rows that fit in shared memory, otherwise once for every pass over their columns.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <isotope/kernels/vulkan/math/fourier_size.hpp>
#include <isotope/kernels/vulkan/math/fourier_tables.hpp>
#include <isotope/shaders/fft.hpp>
#include <isotope/shaders/fft_bins.hpp>

namespace isotope::vulkan {

enum class fourier_source : std::uint32_t { pairs, numbers, half_bins, bins, chirp };  // as in fft.comp
enum class fourier_target : std::uint32_t { pairs, numbers, half_bins, bins, spectrum };

/// The complex transform that computes an op.
struct fourier_task {
  fourier_source from = fourier_source::pairs;
  fourier_target to = fourier_target::pairs;
  bool inverse = false;
  std::int64_t points = 0;                                    // half of the real numbers if they are even
  std::int64_t rows = 0, in_row = 0, out_row = 0, kept = 0;   // pairs or numbers of a row; points of the result that are written
  double x_inner = 1, x_outer = 1, y_inner = 1, y_outer = 1;  // factors of inner and outer bins, or of all (inner)

  constexpr fourier_size size() const { return {points, rows, to == fourier_target::half_bins}; }
};

class fourier {
 public:
  /// The device must have fourier_size::shared_bytes.
  static void record(const fourier_task& task, const launch& l, recording& r) {
    if (task.rows > 0) fourier(task, l, r).record();
  }

 private:
  /// Rows in memory.
  struct place {
    range all;
    std::uint64_t at = 0;
    dtype type = dtype::f32;
    std::int64_t row = 0;  // in pairs or numbers
  };
  struct pass {
    fourier_source from = fourier_source::pairs;
    fourier_target to = fourier_target::pairs;
    std::int64_t number = 0, given = 0, kept = 0;
    bool swap_in = false, swap_out = false, chirp_in = false, chirp_out = false, convolve = false;
    double x_inner = 1, x_outer = 1, y_inner = 1, y_outer = 1;
  };
  const fourier_task& task_;
  const launch& l_;
  recording& r_;
  fourier_size size_;
  fourier_table roots_, circle_, twiddles_, spectrum_;

  fourier(const fourier_task& t, const launch& l, recording& r) : task_(t), l_(l), r_(r), size_(t.size()) {
    roots_ = fourier_tables::circle(r, std::int64_t(1) << fourier_size::log_most);
    const bool bins = task_.to == fourier_target::half_bins || task_.from == fourier_source::half_bins;
    if (size_.convolved() || bins) circle_ = fourier_tables::circle(r, 2 * task_.points);
    if (!size_.at_once()) twiddles_ = fourier_tables::circle(r, size_.M());
  }

  void record() {
    const view &x = l_.in[0], &y = l_.out[0];
    const place in{x, x.at, x.type, task_.in_row}, out{y, y.at, y.type, task_.out_row};
    if (size_.at_once()) {
      if (size_.convolved()) spectrum_ = fourier_tables::chirp_spectrum(r_, task_.points, size_.M());
      pass p;
      begin(p);
      end(p);
      p.convolve = size_.convolved();
      add(p, in, out, task_.rows);
      return;
    }
    if (size_.convolved()) {
      const place spectrum = scratch(0, size_.row_bytes());
      auto chirp = all_passes();
      chirp.front().from = fourier_source::chirp;
      chirp.back().y_inner = 1 / double(size_.M());
      run(chirp, {}, spectrum, 1);
      spectrum_ = {spectrum.at, size_.row_bytes(), 0};
    }
    for (std::int64_t start = 0; start < task_.rows; start += size_.slab_rows())
      slab(from_row(in, start, task_.from != fourier_source::numbers), from_row(out, start, task_.to != fourier_target::numbers),
           std::min(size_.slab_rows(), task_.rows - start));
  }

  void slab(const place& x, const place& y, std::int64_t rows) {
    auto chain = all_passes();
    begin(chain.front());
    if (size_.convolved()) {
      chain.back().to = fourier_target::spectrum;
      const auto back = all_passes();
      chain.insert(chain.end(), back.begin(), back.end());
      chain[back.size()].swap_in = true;
    }
    end(chain.back());
    if (task_.to != fourier_target::half_bins) return run(chain, x, y, rows);
    chain.back().to = fourier_target::pairs;
    chain.back().y_inner = 1;
    place halves = buffer(chain.size() - 1);
    halves.row = task_.points;
    run(chain, x, halves, rows);
    const struct {
      std::uint64_t x, y, circle;
      float inner, outer;
      std::uint32_t rows, h, circle_bits;
    } push{halves.at, y.at, circle_.at, float(task_.y_inner), float(task_.y_outer), word(rows), word(task_.points), circle_.bits};
    r_.add(shaders::fft_bins, constants{64u, l_.device->subgroup}.add(y.type).add(aligned(y)), push,
           per_invocation(rows * (task_.points + 1), 64), {halves.all, circle_}, {y.all});
  }

  /// Returns the passes of a forward transform from scratch to scratch.
  std::vector<pass> all_passes() const {
    std::vector<pass> chain(std::size_t(size_.passes()));
    for (std::size_t k = 0; k < chain.size(); ++k) {
      chain[k].number = std::int64_t(k);
      chain[k].given = chain[k].kept = size_.M();
    }
    return chain;
  }
  /// Sets up the first pass to read the task's operand.
  void begin(pass& p) const {
    p.from = task_.from;
    p.given = task_.points;
    p.swap_in = task_.inverse;
    p.chirp_in = size_.convolved();
    p.x_inner = task_.x_inner;
    p.x_outer = task_.x_outer;
  }
  void end(pass& p) const {
    p.to = task_.to;
    p.kept = task_.kept;
    p.swap_out = task_.inverse;
    p.chirp_out = size_.convolved();
    p.y_inner = task_.y_inner;
    p.y_outer = task_.y_outer;
  }
  /// Runs the passes one after another, alternating between the two buffers.
  void run(const std::vector<pass>& chain, place x, const place& y, std::int64_t rows) {
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const place to = k + 1 == chain.size() ? y : buffer(k);
      add(chain[k], x, to, rows);
      x = to;
    }
  }

  place scratch(std::int64_t offset, std::int64_t bytes) const {
    const std::uint64_t at = l_.scratch + std::uint64_t(offset);
    return {range(at, bytes), at, dtype::f32, size_.M()};
  }
  place buffer(std::size_t k) const {
    return scratch(size_.spectrum_bytes() + std::int64_t(k % 2) * size_.buffer_bytes(), size_.buffer_bytes());
  }
  static place from_row(place p, std::int64_t row, bool pairs) {
    p.at += std::uint64_t(row * p.row * (pairs ? 2 : 1) * size_of(p.type));
    return p;
  }
  static std::uint32_t word(std::int64_t n) { return std::uint32_t(n); }
  static bool aligned(const place& p) { return p.at % std::uint64_t(2 * size_of(p.type)) == 0; }

  void add(const pass& p, const place& x, const place& y, std::int64_t rows) {
    const bool columns = !size_.at_once();
    const std::int64_t log_r = columns ? size_.log_radix(p.number) : size_.log_m;
    const std::int64_t log_all = std::int64_t(columns ? fourier_size::log_most : std::max<std::int64_t>(log_r, 9));  // 512: 64 invocations
    std::int64_t log_c = log_all - log_r, log_s = 0;
    for (std::int64_t k = 0; k < p.number; ++k) log_s += size_.log_radix(k);
    const auto groups_of = [&] {
      return columns ? rows << (size_.log_m - log_r - log_c) : (rows + (std::int64_t(1) << log_c) - 1) >> log_c;
    };
    // Four columns are 32 bytes, the smallest memory access.
    while (columns && log_c > 2 && log_r + log_c > 9 && groups_of() < std::int64_t(l_.device->multiprocessors)) --log_c;
    const std::uint32_t most = l_.device->invocations >= 256 ? 256 : 128, all = 1u << (log_r + log_c);

    const struct {
      std::uint64_t x, y, roots, circle, twiddles, spectrum;
      float x_inner, x_outer, y_inner, y_outer;
      std::uint32_t groups, rows, in_row, out_row, points, given, kept, swap_in, swap_out, log_m, log_s, circle_bits, twiddle_bits,
          log_twiddles;
    } push{x.at,
           y.at,
           roots_.at,
           circle_.at,
           twiddles_.at,
           spectrum_.at,
           float(p.x_inner),
           float(p.x_outer),
           float(p.y_inner),
           float(p.y_outer),
           word(groups_of()),
           word(rows),
           word(x.row),
           word(y.row),
           word(task_.points),
           word(p.given),
           word(p.kept),
           p.swap_in,
           p.swap_out,
           word(size_.log_m),
           word(log_s),
           circle_.bits,
           twiddles_.bits,
           word(size_.log_m)};
    constants c{std::min(all / 8, most), l_.device->subgroup, word(log_r), word(log_c)};
    c.add(x.type).add(y.type).add(std::uint32_t(p.from)).add(std::uint32_t(p.to)).add(columns);
    c.add(p.chirp_in).add(p.chirp_out).add(p.convolve).add(aligned(x)).add(aligned(y));
    r_.add(shaders::fft, std::move(c), push, cover(groups_of(), 1), {x.all, roots_, circle_, twiddles_, spectrum_}, {y.all});
  }
};

}  // namespace isotope::vulkan
