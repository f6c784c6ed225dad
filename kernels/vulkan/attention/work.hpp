#pragma once
/// What the choice among the tiles of an attention kernel depends on.
#include <algorithm>
#include <string>
#include <string_view>

#include <isotope/kernels/vulkan/attention/heads.hpp>

namespace isotope::vulkan {

/// The three kernels of attention; each has variants of its own.
enum class attention_part : std::uint8_t { y, keys, queries };
/// What precedes the name of a variant, so that each kernel can be asked for its own.
constexpr std::string_view prefix_of(attention_part p) {
  return p == attention_part::y ? "attention: " : p == attention_part::keys ? "dk and dv: " : "dq: ";
}

/// Of a batch-invariant plan `heads` is 0, and the number of sequences only scales predicted times: it does not change the choice, and so the bits of a sequence do
/// not depend on the others.
struct attention_work {
  double flops = 0;              // of the products that causal attention and windows need
  std::int64_t rows = 0, D = 0;  // rows of a head that workgroups own
  std::int64_t side = 0;         // of the device's square matrices; 0: there are none
  const device_limits* device = nullptr;
  std::int64_t heads = 0;  // of all sequences, whose rows workgroups own; 0: the choice must be the same for any number of sequences

  static attention_work of(const attention_heads& h, const launch& l, attention_part part) {
    const double products = part == attention_part::y ? 2 : part == attention_part::keys ? 4 : 3;
    const bool keys = part == attention_part::keys;
    attention_work w{products * 2 * double(h.B * h.H * h.D) * double(std::max<std::int64_t>(h.seen.pairs(), 1)), keys ? h.T : h.S, h.D, 0,
                     l.device};
    if (!l.constants<op::attention>().batch_invariant) w.heads = h.B * (keys ? h.G : h.H);
    return w;
  }
  /// Packed sequences, as if each had `rows` rows: their lengths are known only on the device.
  static attention_work of_packed(const attention_heads& h, const launch& l, std::int64_t rows) {
    return {4 * double(h.H * h.S * h.D) * double(rows), rows, h.D, 0, l.device};
  }
  /// @param rate  TFLOP/s of a full H200, which has 132 multiprocessors
  constexpr double seconds(double owned_rows, double rate) const {
    return rows == 0 ? 0 : flops * (owned_rows / double(rows)) / (rate * 1e12 * double(device->multiprocessors) / 132);
  }
};

struct attention_cost {
  double seconds = 0;
};

}  // namespace isotope::vulkan
