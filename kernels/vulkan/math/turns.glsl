// Angles as integers in turns, which lose nothing at any position, so that sine and cosine need no f64. Drivers' own are too coarse: Vulkan asks for 2^-11.

// Cosine and sine of an angle, and the sine times the direction; turn: the angle of one position in 2^-64 of a turn, low word first.
vec2 rotation(uvec2 turn, int position, float direction) {
  uint high, low;
  umulExtended(uint(position), turn.x, high, low);
  const uint angle = high + uint(position) * turn.y - (position < 0 ? turn.x : 0u);  // in 2^-32 of a turn
  const uint quarter = (angle + 0x20000000u) >> 30;
  const int rest = int(angle - (quarter << 30)), upper = rest & ~0xffff;  // rest: at most an eighth of a turn
  // 2 pi = 6.28125 + 0.0019353...; the first has 8 bits, so its product with `upper` is exact.
  const float scale = 1.0 / 4294967296.0, two_pi = 6.28318531;
  const float r = float(upper) * (6.28125 * scale) + (float(upper) * (0.00193530718 * scale) + float(rest - upper) * (two_pi * scale)), z = r * r;
  // Taylor series: the first terms left out are below 2^-29 for |r| <= pi / 4.
  const float sine = r + r * z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0))));
  const float cosine = 1.0 - z * (0.5 - z * (1.0 / 24.0 - z * (1.0 / 720.0 - z * (1.0 / 40320.0 - z * (1.0 / 3628800.0)))));
  const bool swapped = (quarter & 1u) != 0u;
  const float c = swapped ? sine : cosine, s = swapped ? cosine : sine;
  return vec2(((quarter + 1u) & 2u) != 0u ? -c : c, direction * ((quarter & 2u) != 0u ? -s : s));
}
