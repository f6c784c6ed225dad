# The processor itself: own thread pool, no device and no driver. Always usable, and the lowest rank.
isotope_backend(
  RANK 0
  PRECISIONS f32 bf16
  DEFAULT_PRECISION f32
  REASON "no other backend is usable on this machine")
