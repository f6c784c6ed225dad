#pragma once
/// The part of the processor that one of several ranks of a process works with.
#include <sched.h>

#include <algorithm>

namespace support {

/// Binds the calling thread, and those that it starts, to its part of the cpus that the process may use, where there is at least one for each rank. Returns the number
/// of threads for the rank, at least 1.
///
/// @param threads  of all ranks together; 0: as many as there are cpus
inline int take_processor_share(int rank, int ranks, int threads) {
  cpu_set_t mask;
  const bool known = ::sched_getaffinity(0, sizeof mask, &mask) == 0;
  const int cpus = known ? std::max(1, CPU_COUNT(&mask)) : 1, wanted = threads > 0 ? threads : cpus;
  const int mine = std::max(1, wanted * (rank + 1) / ranks - wanted * rank / ranks);
  if (!known || cpus < ranks || wanted > cpus) return mine;
  const int first = cpus * rank / ranks, end = cpus * (rank + 1) / ranks;
  if (mine > end - first) return mine;
  cpu_set_t part;
  CPU_ZERO(&part);
  for (int cpu = 0, k = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    if (k >= first && k < end) CPU_SET(cpu, &part);
    ++k;
  }
  ::sched_setaffinity(0, sizeof part, &part);
  return mine;
}

}  // namespace support
