# The processor as a backend, with a thread pool and without device or driver. It is always usable and has the lowest rank.
isotope_backend(
  RANK 0
  PRECISIONS f32 bf16
  DEFAULT_PRECISION f32
  REASON "no other backend is usable on this machine")
