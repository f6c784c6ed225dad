#pragma once
/// Attention by products of warpgroups: whether a step runs so, and its launches.
#include <string_view>

#include <isotope/fatbins/attention_grad_hopper.hpp>
#include <isotope/fatbins/attention_hopper.hpp>
#include <isotope/kernels/cuda/attention/heads.hpp>

#include "attention_tiles.h"

namespace isotope::cuda {

/// For steps that the kernels of attention_mma.hpp take.
struct attention_hopper {
  static constexpr gpu::attention_hopper_tile forward = gpu::hopper_forward_tile, queries = gpu::hopper_queries_tile,
                                              keys = gpu::hopper_keys_tile;

  static bool takes(const attention_heads& h, const launch& l) {
    return h.D == gpu::attention_hopper_tile::D && l.device->hopper() && fatbins::attention_hopper.there() &&
           fatbins::attention_grad_hopper.there();
  }
  static dispatch& record_forward(const attention_heads& h, const launch& l, recording& r) {
    return r.add(fatbins::attention_hopper, h.dropped() ? "attention_hopper_64_dropout" : "attention_hopper_64", h.arguments,
                 per_block(h.query_blocks(forward.rows()), std::uint32_t(forward.threads()), forward.forward_bytes()), h.reads(l),
                 {l.out[0], l.out[1]});
  }
  static dispatch& record_queries(const attention_heads& h, recording& r, std::vector<range> reads, std::vector<range> writes) {
    return r.add(fatbins::attention_grad_hopper,
                 h.dropped() ? "attention_grad_queries_hopper_64_dropout" : "attention_grad_queries_hopper_64", h.arguments,
                 per_block(h.query_blocks(queries.rows()), std::uint32_t(queries.threads()), queries.gradient_bytes()), std::move(reads),
                 std::move(writes));
  }
  static dispatch& record_keys(const attention_heads& h, recording& r, std::vector<range> reads, std::vector<range> writes) {
    return r.add(fatbins::attention_grad_hopper, h.dropped() ? "attention_grad_keys_hopper_64_dropout" : "attention_grad_keys_hopper_64",
                 h.arguments, per_block(h.key_blocks(keys.rows()), std::uint32_t(keys.threads()), keys.gradient_bytes()), std::move(reads),
                 std::move(writes));
  }
};

}  // namespace isotope::cuda
