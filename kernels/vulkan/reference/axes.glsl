// Returns the offset, in elements, of item i, in row-major order over the axes from `first` to before `end`, in a tensor.
uint offset_of(uint i, const uint dims[6], const uint strides[6], uint first, uint end) {
  uint at = 0;
  for (uint k = end; k > first; --k) {
    at += i % dims[k - 1] * strides[k - 1];
    i /= dims[k - 1];
  }
  return at;
}
