// Where the rows of packed sequences lie.

// Returns starts[b], or the nearest number in [0, rows].
uint start_of(uint64_t starts, uint b, uint rows) {
  const int row = load_int(starts, b);
  return row < 0 ? 0 : min(uint(row), rows);
}
// Returns one more than the last of `sequences` sequences that starts at or before a row; 0 if there is none.
uint sequences_up_to(uint64_t starts, uint sequences, uint rows, uint row) {
  uint low = 0, high = sequences;
  while (low < high) {
    const uint middle = (low + high) / 2;
    if (start_of(starts, middle, rows) <= row) low = middle + 1;
    else high = middle;
  }
  return low;
}
