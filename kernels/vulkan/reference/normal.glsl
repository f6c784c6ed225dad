// The operands of the gradients of layer and root-mean-square normalisation.
layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint DY = F32;
layout(constant_id = 4) const bool CENTERED = true;

struct normalised {
  uint64_t x, dy;         // (rows, C)
  uint64_t means, rstds;  // (rows) f32
  uint rows, C;
};
float normal(normalised n, uint row, uint c) {
  const float v = load(n.x, row * n.C + c, X);
  return (CENTERED ? v - f32_ref(n.means).at[row] : v) * f32_ref(n.rstds).at[row];
}
