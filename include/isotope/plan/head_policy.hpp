#pragma once
/// Chooses in how many chunks of rows a training program computes the head of a model and its loss.
#include <cstdint>
#include <string_view>

#include "../core/trace.hpp"

namespace isotope {

/// For loss = cross_entropy(x w, targets) with R rows of x (R, C) and w (C, V), of which n count, chunk by chunk of rows r:
///   logits = x[r] w                                          (rows of a chunk, V), the only logits that exist
///   dlogits = (softmax(logits) - onehot(targets[r])) / n     in place of the logits
///   dx[r] = dlogits w^T,   dw += x[r]^T dlogits              dw in accumulation format, chunks in ascending order
///   loss += cross_entropy(logits, targets[r]) n[r] / n       n[r]: the rows of the chunk that count
/// The sums over rows in dw and the loss are split, so their last bits may differ: both ways of adding round each row's term and sum at most once.
/// All else has the bits of the undivided head where kernels round a row of a product alike among fewer rows: those of reference do, those of the
/// processor if the rows of a chunk are whole tiles (of 96 rows); others may take another tile, or divide the sums otherwise.
///
/// Memory falls by the logits of all chunks but one, R V (1 - 1 / chunks) numbers, as long as the step needs most memory at its head. In return each
/// chunk but the first reads and writes dw once more (8 bytes an element), products have fewer rows, and each chunk has some ten launches.
///
/// It applies if the program returns the cross-entropy of a matmul; plan_totals::obstacle says what is in the way. No model or backend knows of it.
/// Source: Hsu et al. 2024, arXiv:2410.10989 (Liger Kernel, whose fused linear cross-entropy takes rows in chunks).
struct head_policy {
  std::int64_t chunks = 1;  // 1: the head is not divided
  std::int64_t budget = 0;  // bytes: the fewest chunks with which the plan fits or, if it never does, is smallest; 0: `chunks`
};
namespace head {
inline constexpr head_policy whole{};
constexpr head_policy in_chunks(std::int64_t n) { return {n, 0}; }
constexpr head_policy within(std::int64_t bytes) { return {1, bytes}; }
}  // namespace head

constexpr std::string_view text_of(head_obstacle o) {
  switch (o) {
    case head_obstacle::none: return "";
    case head_obstacle::no_cross_entropy: return "the program does not return a cross-entropy";
    case head_obstacle::loss_is_read: return "another op reads the loss";
    case head_obstacle::no_product: return "its logits are not the result of one matmul with a matrix, which nothing else reads";
    case head_obstacle::columns: return "the features are stored by columns";
    case head_obstacle::recomputed: return "it is part of a block that is recomputed";
    case head_obstacle::one_row: return "it has fewer than two rows";
  }
  return "";
}

}  // namespace isotope
