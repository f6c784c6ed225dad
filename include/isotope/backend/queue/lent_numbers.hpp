#pragma once
/// Numbers for operands that a step reads where its plan has them, while it is timed there.
#include <concepts>
#include <cstdint>

#include "../../core/error.hpp"
#include "operand_places.hpp"

namespace isotope {

/// Copies bytes between addresses of a device.
template <class T>
concept CopiesOnDevice = requires(T& t, std::uint64_t to, std::uint64_t from, std::int64_t bytes) {
  { t.copy(to, from, bytes) } -> std::same_as<result<void>>;
};

/// Calls f(address in the plan, address to keep it at, own address, bytes) for all numbers that a step only reads, until one fails. They are kept from `kept` on, in at most `own.bytes_of(operand_places::area::noise)` bytes.
template <class F> result<void> each_kept(const operand_places& own, std::uint64_t kept, const F& f) {
  constexpr std::uint64_t grain = 256;  // by which addresses keep their remainders
  result<void> r;
  own.each_number([&](const byte_range& there, std::uint64_t numbers) {
    if (r) r = f(there.first, kept + there.first % grain, numbers, there.bytes());
    kept += (std::uint64_t(there.bytes()) + 2 * grain - 1) / grain * grain;
  });
  return r;
}
/// Brings back what was kept. @error device_lost
template <CopiesOnDevice T> result<void> take_numbers_back(T& timer, const operand_places& own, std::uint64_t kept) {
  return each_kept(own, kept, [&](std::uint64_t there, std::uint64_t keep, std::uint64_t, std::int64_t bytes) {
    return timer.copy(there, keep, bytes);
  });
}
/// Keeps what the plan has, which are zeros when it is loaded, and puts the numbers there that are at the operands' own places. With zeros products of a GPU took up to a fifth less time, since they draw less power, and some of them more so than others.
/// @error device_lost
template <CopiesOnDevice T> result<void> lend_numbers(T& timer, const operand_places& own, std::uint64_t kept) {
  auto kept_all = each_kept(own, kept, [&](std::uint64_t there, std::uint64_t keep, std::uint64_t, std::int64_t bytes) {
    return timer.copy(keep, there, bytes);
  });
  if (!kept_all) return kept_all;
  auto lent = each_kept(own, kept, [&](std::uint64_t there, std::uint64_t, std::uint64_t numbers, std::int64_t bytes) {
    return timer.copy(there, numbers, bytes);
  });
  if (!lent) static_cast<void>(take_numbers_back(timer, own, kept));
  return lent;
}

}  // namespace isotope
