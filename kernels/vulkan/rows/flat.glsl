// Four elements of a dense tensor are one invocation's share; the last share may be smaller. Tensors are aligned to four elements.
vec4 load_flat(uint64_t base, uint i, uint count, uint t) {
  if (4 * i + 3 < count) return load4(base, i, t);
  vec4 x = vec4(0.0);
  for (uint j = 0; 4 * i + j < count; ++j) x[j] = load(base, 4 * i + j, t);
  return x;
}
void store_flat(uint64_t base, uint i, uint count, uint t, vec4 x) {
  if (4 * i + 3 < count) store4(base, i, t, x);
  else
    for (uint j = 0; 4 * i + j < count; ++j) store(base, 4 * i + j, t, x[j]);
}
