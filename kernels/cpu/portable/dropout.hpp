#pragma once
/// Bound by the integer multiplications of Philox: each call serves four elements, and 16 calls run side by side.
#include <cstring>

#include <isotope/core/philox_words.hpp>
#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/op/dropout.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct dropout {
  static constexpr std::uint32_t inplace = 1;
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t task = 1 << 13, piece = 512;

  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count();
    const auto c = l.constants<op::dropout>();
    const double p = c.p;
    const std::int64_t run = c.run == 0 ? n : c.run;  // elements whose numbers follow one another
    const auto keep = float(1.0 / (1.0 - p));
    // word / 2^32 >= p, tested on integer words
    const double least = p * 0x1p32;
    const auto threshold = std::uint64_t(least) + (double(std::uint64_t(least)) < least ? 1u : 0u);
    for_tasks(l, divide_up(n, task), double(n) * 1.5, [&](std::int64_t t, int) {
      alignas(64) float value[piece];
      alignas(64) std::uint32_t words[piece];
      const std::int64_t end = smaller(n, (t + 1) * task);
      for (std::int64_t i = t * task; i < end; i += piece) {
        const std::int64_t some = smaller(piece, end - i);
        for (std::int64_t done = 0; done < some;) {  // one run, unless devices share the rows
          const std::int64_t left = smaller(some - done, run - (i + done) % run), number = c.number(i + done);
          draw(*l.scalars, l.ordinal, number, left, words + done);
          done += left;
        }
        widen_run(x.data, x.type, i, 1, value, some);
        for (std::int64_t j = 0; j < some; ++j) value[j] = words[j] >= threshold ? value[j] * keep : 0.0f;
        narrow_run(value, y.data, y.type, i, some);
      }
    });
  }

 private:
  /// Draws the words of n elements, at most a piece, of which the first has this number.
  static void draw(const step_scalars& s, std::uint32_t stream, std::int64_t number, std::int64_t n, std::uint32_t* words) {
    if (number % 4 == 0 && n == piece) return calls(s, stream, std::uint64_t(number / 4), piece / 4, words);
    alignas(64) std::uint32_t all[piece + 64];
    calls(s, stream, std::uint64_t(number / 4), int((number % 4 + n + 3) / 4), all);
    std::memcpy(words, all + number % 4, std::size_t(n) * sizeof *words);
  }
  /// words[4 c + k] is word k of call first + c, for so many calls, rounded up to whole groups.
  static void calls(const step_scalars& s, std::uint32_t stream, std::uint64_t first, int count, std::uint32_t* words) {
    for (int group = 0; group < count; group += philox_words::width) {
      philox_words w;
      for (int j = 0; j < w.width; ++j) {
        const std::uint64_t at = first + std::uint64_t(group + j);
        w.c0[j] = std::uint32_t(at);
        w.c1[j] = std::uint32_t(at >> 32);
        w.c2[j] = std::uint32_t(s.counter);
        w.c3[j] = stream;
      }
      w.run(s.seed);
      for (int j = 0; j < w.width; ++j) {
        std::uint32_t* to = words + 4 * (group + j);
        to[0] = w.c0[j];
        to[1] = w.c1[j];
        to[2] = w.c2[j];
        to[3] = w.c3[j];
      }
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::dropout, P, kernels::portable> : portable::dropout {};
}  // namespace isotope::cpu
