// Portable attention reads four elements of a row at a time, 0 outside the tensor.
vec4 piece(uint64_t base, uint type, uint stride, uint row, uint rows, uint column) {
  if (row >= rows || column >= D) return vec4(0.0);
  const uint i = row * stride + column;
  if (WIDE) return load4(base, i / 4u, type);
  vec4 x = vec4(load(base, i, type), 0.0, 0.0, 0.0);
  if (column + 1u < D) x.y = load(base, i + 1u, type);
  if (column + 2u < D) x.z = load(base, i + 2u, type);
  if (column + 3u < D) x.w = load(base, i + 3u, type);
  return x;
}
void store_piece(uint64_t base, uint type, uint stride, uint row, uint rows, uint column, vec4 x) {
  if (row >= rows || column >= D) return;
  const uint i = row * stride + column;
  if (WIDE) {
    store4(base, i / 4u, type, x);
    return;
  }
  store(base, i, type, x.x);
  if (column + 1u < D) store(base, i + 1u, type, x.y);
  if (column + 2u < D) store(base, i + 2u, type, x.z);
  if (column + 3u < D) store(base, i + 3u, type, x.w);
}
