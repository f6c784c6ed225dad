#pragma once
/// What a device was measured to do, as figures from which the time of a plan follows: calibrate/estimate.hpp.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isotope {

/// Where a figure comes from. Predictions from anything but measurements are not ranked.
enum class provenance : std::uint8_t { none, architecture_default, measured };
inline constexpr std::array<std::string_view, 3> provenance_names = {"none", "architecture default", "measured"};
constexpr std::string_view name_of(provenance p) { return provenance_names[std::size_t(p)]; }

struct figure {
  double value = 0;
  provenance from = provenance::none;
  friend bool operator==(const figure&, const figure&) = default;
};

/// Rates are per second, times in seconds. `product_*`, `attention*`: floating-point operations; `rows`, `rows_8`: bytes of a weight that one row, or eight, are
/// multiplied by; `stream_*`: bytes that a step reads and writes; `heavy`, `random`: elements of a function such as gelu, and of dropout, besides the time for their bytes.
enum class quantity : std::uint8_t {
  product_small,  // M = N = K = 512, of several that follow each other; of a processor by the rate of `product_large` and the start that 32 rows show
  product_large,  // a product that fills the device
  rows,
  rows_8,
  few_rows,  // seconds that a product of eight rows takes besides its bytes
  attention,
  attention_grad,
  stream_small,  // 1 MiB
  stream_large,  // 64 MiB; of a processor 128 MiB, since its caches may hold 64
  heavy,
  random,
  launch,      // of a step that waits for none
  barrier,     // that a step takes longer if it waits for the one before
  round_trip,  // from the start of a run of one small step to its end
  readback,    // bytes of a tensor that the host reads
};
inline constexpr std::array<std::string_view, 15> quantity_names = {
    "product_small", "product_large", "rows",   "rows_8", "few_rows", "attention",  "attention_grad", "stream_small",
    "stream_large",  "heavy",         "random", "launch", "barrier",  "round_trip", "readback"};
inline constexpr std::size_t quantities = quantity_names.size();
constexpr std::string_view name_of(quantity q) { return quantity_names[std::size_t(q)]; }
constexpr bool is_time(quantity q) {
  return q == quantity::few_rows || q == quantity::launch || q == quantity::barrier || q == quantity::round_trip;
}

/// The figures of one device in one number format. `device` says what they depend on: the device, its driver and the library.
struct calibration {
  std::string device, format;
  std::array<figure, quantities> figures{};

  figure& operator[](quantity q) { return figures[std::size_t(q)]; }
  const figure& operator[](quantity q) const { return figures[std::size_t(q)]; }
  void measured(quantity q, double value) { (*this)[q] = {value, provenance::measured}; }
  /// The weakest provenance of all figures.
  provenance weakest() const {
    provenance p = provenance::measured;
    for (const figure& f : figures) p = f.from < p ? f.from : p;
    return p;
  }
};

}  // namespace isotope
