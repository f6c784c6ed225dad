// Looks up rows of a table by id, and adds rows to them.
#include "embedding.h"

#include "f64.cuh"

namespace isotope::cuda::gpu {

// One element of the result per thread; an id that is not a row of the table gives NaN. Bound by bytes.
extern "C" __global__ void __launch_bounds__(1024) reference_embedding(const __grid_constant__ reference_embedding_arguments a) {
  const std::int64_t i = item();
  if (i >= a.rows * a.C) return;
  const std::int64_t id = pointer<const std::int32_t>(a.ids)[i / a.C];
  const bool known = id >= 0 && id < a.V;
  store(a.y, i, a.y_type, known ? load(a.table, id * a.C + i % a.C, a.table_type) : __uint_as_float(0x7fc00000u));
}

// into[ids[i]] += dy[i] in ascending i: a thread has one row of dy and one column; the first row of an id adds all rows of that id,
// and each sum is rounded as `into` stores it. Bound by reading the ids, rows^2 C / 2 times.
extern "C" __global__ void __launch_bounds__(1024) reference_embedding_grad(const __grid_constant__ reference_embedding_grad_arguments a) {
  const std::int64_t i = item();
  if (i >= a.rows * a.C) return;
  const std::int32_t* const ids = pointer<const std::int32_t>(a.ids);
  const std::int64_t first = i / a.C, c = i % a.C;
  const std::int32_t id = ids[first];
  if (id < 0 || id >= a.V) return;
  for (std::int64_t row = 0; row < first; ++row)
    if (ids[row] == id) return;
  const std::int64_t to = id * a.C + c;
  double sum = load_f64(a.into, to, a.into_type);
  for (std::int64_t row = first; row < a.rows; ++row)
    if (ids[row] == id) sum = double(rounded(float(sum + load_f64(a.dy, row * a.C + c, a.dy_type)), a.into_type));
  store_f64(a.into, to, a.into_type, sum);
}

}  // namespace isotope::cuda::gpu
