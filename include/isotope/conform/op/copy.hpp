#pragma once
#include "../../op/copy.hpp"
#include "../exact_spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::copy> : exact_spec {
  static void reference(const call& c, std::span<answer> y) { same(c.in[0], y[0]); }
  static void gradient(const call&, std::span<const array> dy, std::span<answer> dx) { same(dy[0], dx[0]); }
  static void cases(case_sink& s) {
    s.add({s.x({65536}, 0, 0, &generator_of<generators::all_of_16_bits>)});
    s.add({ordered(s.x({256, 256}, 0, 0, &generator_of<generators::all_of_16_bits>), {1, 0})});
    for (const shape& n : {shape{}, shape{0}, shape{1}, shape{257}, shape{33, 31}}) s.add({s.x(n)}, {}, true);
    s.add({ordered(s.x({17, 12}), {1, 0})}, {}, true);
    s.add({ordered(s.x({3, 4, 5}), {2, 1, 0})}, {}, true);
    s.add({ordered(s.x({2, 3, 4, 5, 2, 3}), {5, 3, 1, 0, 2, 4})}, {}, true);
    s.add({operand_recipe{{37}, dtype::i32, &generator_of<generators::whole>, -1000, 1000, row_major}});
    for (int k = 0; k < s.repeats(); ++k)
      s.add({ordered(s.x({s.size(k, 0, 1, 9), s.size(k, 1, 1, 9), s.size(k, 2, 1, 40)}), {int(k % 3), int((k + 1) % 3), int((k + 2) % 3)})},
            {}, true);
  }
};

}  // namespace isotope::conform
