#pragma once
// The operands of exchange.cu, and what the GPUs of a group write into each other's memory.
#include <cstdint>

namespace isotope::cuda::gpu {

inline constexpr int most_exchange_ranks = 16;

/// What an exchange does with numbers of all ranks.
enum exchange_kind : std::int32_t { exchange_all_reduce, exchange_reduce_scatter, exchange_all_gather, exchange_broadcast };

/// What one rank tells another one. It lies in the memory of the rank that reads it.
struct exchange_message {
  std::uint64_t ready,
      done;                 // the number of the exchange that the sender has begun, and of the one in which it needs no other rank any more
  std::uint64_t from, to;   // the sender's addresses
  std::uint64_t what;       // which exchange the sender means, see exchange_operands
  std::uint64_t unused[3];  // messages of two ranks share no sector of 64 bytes
};
/// The memory by which a rank meets the others. It is zero before the first exchange.
struct exchange_box {
  exchange_message of[most_exchange_ranks];  // by sender
  std::uint64_t count;                       // exchanges that have ended
  std::uint32_t blocks, unused;              // of the running one that have ended
};
/// Page-locked words of the host by which a running exchange is ended, and by which it says what is wrong.
struct exchange_control {
  std::uint32_t stop;     // not 0: exchanges end without waiting for other ranks
  std::uint32_t differs;  // 1 + the rank that means another exchange than this one
};

struct exchange_operands {
  std::uint64_t boxes[most_exchange_ranks];  // exchange_box of each rank
  std::uint64_t control;                     // exchange_control
  std::uint64_t from, to;                    // own numbers, and where own results go; of exchange_all_reduce they may be the same
  std::int64_t count;                        // elements of x, or of a piece; of copies bytes
  std::uint64_t what;                        // equal on all ranks: a hash of kind, type, reduction, root and count
  std::int32_t rank, ranks, kind, maximum;   // maximum: numbers are combined by max instead of sums
  std::int32_t root, unused;
};

}  // namespace isotope::cuda::gpu
