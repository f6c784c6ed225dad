#pragma once
/// The launches of a Fourier transform: one for rows that fit in shared memory, otherwise one for every pass over their columns.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <isotope/fatbins/fft.hpp>
#include <isotope/kernels/cuda/fourier/size.hpp>
#include <isotope/kernels/cuda/fourier/tables.hpp>

namespace isotope::cuda {

/// The complex transform that computes an op.
struct fourier_task {
  gpu::fft_source from = gpu::from_pairs;
  gpu::fft_target to = gpu::to_pairs;
  bool inverse = false;
  std::int64_t points = 0;                                    // half of the real numbers if they are even
  std::int64_t rows = 0, in_row = 0, out_row = 0, kept = 0;   // pairs or numbers of a row; points of the result that are written
  double x_inner = 1, x_outer = 1, y_inner = 1, y_outer = 1;  // factors of inner and outer bins, or of all (inner)

  constexpr fourier_size size() const { return {points, rows, to == gpu::to_half_bins}; }
};

class fourier {
 public:
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
    gpu::fft_source from = gpu::from_pairs;
    gpu::fft_target to = gpu::to_pairs;
    std::int64_t number = 0, given = 0, kept = 0;
    bool swap_in = false, swap_out = false, chirp_in = false, chirp_out = false, convolve = false;
    double x_inner = 1, x_outer = 1, y_inner = 1, y_outer = 1;
  };
  const fourier_task& task_;
  const launch& l_;
  recording& r_;
  fourier_size size_;
  fourier_tables::kept_table roots_, circle_, twiddles_, spectrum_;

  fourier(const fourier_task& t, const launch& l, recording& r) : task_(t), l_(l), r_(r), size_(t.size()) {
    roots_ = fourier_tables::circle(r, std::int64_t(1) << fourier_size::log_most);
    const bool bins = task_.to == gpu::to_half_bins || task_.from == gpu::from_half_bins;
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
      return add(p, in, out, task_.rows);
    }
    if (size_.convolved()) {
      const place spectrum = scratch(0, size_.row_bytes());
      auto chirp = all_passes();
      chirp.front().from = gpu::from_chirp;
      chirp.back().y_inner = 1 / double(size_.M());
      run(chirp, {}, spectrum, 1);
      spectrum_ = {{spectrum.at, 0}, size_.row_bytes()};
    }
    for (std::int64_t start = 0; start < task_.rows; start += size_.slab_rows())
      slab(from_row(in, start, task_.from != gpu::from_numbers), from_row(out, start, task_.to != gpu::to_numbers),
           std::min(size_.slab_rows(), task_.rows - start));
  }

  void slab(const place& x, const place& y, std::int64_t rows) {
    auto chain = all_passes();
    begin(chain.front());
    if (size_.convolved()) {
      chain.back().to = gpu::to_spectrum;
      const auto back = all_passes();
      chain.insert(chain.end(), back.begin(), back.end());
      chain[back.size()].swap_in = true;
    }
    end(chain.back());
    if (task_.to != gpu::to_half_bins) return run(chain, x, y, rows);
    chain.back().to = gpu::to_pairs;
    chain.back().y_inner = 1;
    place halves = buffer(chain.size() - 1);
    halves.row = task_.points;
    run(chain, x, halves, rows);
    const gpu::fft_bins_operands a{
        halves.at, y.at, circle_.table, rows, float(task_.y_inner), float(task_.y_outer), std::int32_t(task_.points), std::int32_t(y.type),
        aligned(y)};
    r_.add(fatbins::fft, "fft_bins", a, per_item(rows * (task_.points + 1)), {halves.all, circle_}, {y.all});
  }

  /// The passes of a forward transform from scratch to scratch.
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
  static bool aligned(const place& p) { return p.at % std::uint64_t(2 * size_of(p.type)) == 0; }

  void add(const pass& p, const place& x, const place& y, std::int64_t rows) {
    const bool columns = !size_.at_once();
    const std::int64_t log_r = columns ? size_.log_radix(p.number) : size_.log_m;
    const std::int64_t log_all = columns ? fourier_size::log_most : std::max<std::int64_t>(log_r, 9);  // 512: 64 threads
    std::int64_t log_c = log_all - log_r, log_s = 0;
    for (std::int64_t k = 0; k < p.number; ++k) log_s += size_.log_radix(k);
    const auto blocks = [&] { return columns ? rows << (size_.log_m - log_r - log_c) : (rows + (std::int64_t(1) << log_c) - 1) >> log_c; };
    // Four columns are 32 bytes, the smallest memory access.
    while (columns && log_c > 2 && log_r + log_c > 9 && blocks() < std::int64_t(l_.device->multiprocessors)) --log_c;

    gpu::fft_operands a{};
    a.x = x.at, a.y = y.at;
    a.roots = roots_.table.at, a.spectrum = spectrum_.table.at;
    a.circle = circle_.table, a.twiddles = twiddles_.table;
    a.x_inner = float(p.x_inner), a.x_outer = float(p.x_outer), a.y_inner = float(p.y_inner), a.y_outer = float(p.y_outer);
    a.rows = rows, a.in_row = x.row, a.out_row = y.row;
    a.points = std::int32_t(task_.points), a.given = std::int32_t(p.given), a.kept = std::int32_t(p.kept);
    a.log_m = std::int32_t(size_.log_m), a.log_s = std::int32_t(log_s), a.log_r = std::int32_t(log_r), a.log_c = std::int32_t(log_c);
    a.source = p.from, a.target = p.to;
    a.x_type = std::int32_t(x.type), a.y_type = std::int32_t(y.type);
    a.x_aligned = aligned(x), a.y_aligned = aligned(y);
    a.swap_in = p.swap_in, a.swap_out = p.swap_out;
    a.chirp_in = p.chirp_in, a.chirp_out = p.chirp_out, a.convolve = p.convolve;
    std::vector<range> reads;
    for (const range& read : {x.all, range(roots_), range(circle_), range(twiddles_), range(spectrum_)})
      if (read.bytes() > 0) reads.push_back(read);
    const std::int64_t points = std::int64_t(1) << (log_r + log_c);
    r_.add(fatbins::fft, columns ? "fft_columns" : "fft_rows", a, per_block(blocks(), std::uint32_t(points / 8), 8 * points),
           std::move(reads), {y.all});
  }
};

}  // namespace isotope::cuda
