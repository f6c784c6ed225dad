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

// Rows that a workgroup owns: rows `first` to end - 1 of the tensor are a sequence, or lie before the first or behind the last one; the workgroup owns those from
// first + own on. There may be none.
struct packed_place {
  uint first, end, own;
  bool outside;  // the rows belong to no sequence
};
uint first_row_of(uint64_t starts, uint v, uint rows) { return v == 0 ? 0 : start_of(starts, v - 1, rows); }
// The place of workgroup `index`, where each owns `owned` rows; at most rows / owned + sequences + 2 of them own any. Each sequence has workgroups of its own, which
// begin at its first row, so results do not depend on where it lies. With v counting the rows before the first sequence as 0 and those behind the last one too, the
// workgroups of v begin at first_row_of(v) / owned + v: a sequence needs at most as many as there are up to the next one.
packed_place place_of_packed(uint64_t starts, uint sequences, uint rows, uint owned, uint index) {
  uint low = 0, high = sequences + 2;  // the workgroups of low begin at or before this one, those of high after it
  while (high - low > 1) {
    const uint middle = (low + high) / 2;
    if (first_row_of(starts, middle, rows) / owned + middle <= index) low = middle;
    else high = middle;
  }
  const uint first = first_row_of(starts, low, rows), end = low == sequences + 1 ? rows : first_row_of(starts, low + 1, rows);
  return packed_place(first, end, (index - first / owned - low) * owned, low == 0 || low == sequences + 1);
}
