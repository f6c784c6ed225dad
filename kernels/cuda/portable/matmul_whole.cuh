#pragma once
// The tiles of matmul_whole.cu: operands are f32, aligned, and without a remainder along K, so that no load has a condition. A tile that
// would reach beyond the last row or column starts earlier instead, and leaves the rows and columns of its neighbour to it.
//
// Shared memory has two stages of both operands, K-major. An operand whose lines run across K comes by asynchronous copies; another one
// is in registers while a slab is multiplied, and is transposed on the way. Its quads are permuted by xor with the number of the quad
// along K, so that adjacent lines touch all 32 banks. Lanes that differ in bit 0 share columns and those that differ in bit 1 share rows:
// then the reads of 16 bytes of half a warp are served at once. The operands of step k + 1 are read before step k is multiplied, also
// across the barrier between two slabs.
#include "device/mma.cuh"
#include "gemm/epilogue.cuh"

namespace isotope::cuda::gpu {

/// A tile of Rows x Columns sums, of which a thread computes Down x Across, in slabs of Slab steps of K.
template <int Rows, int Columns, int Down, int Across, int Slab> struct whole_tile {
  static constexpr int rows = Rows, columns = Columns, down = Down, across = Across, slab = Slab;
  static constexpr int x_threads = Rows / Down, y_threads = Columns / Across, threads = x_threads * y_threads;
  static constexpr int left = Rows * Slab / 4, right = Columns * Slab / 4;  // quads of a stage of each operand
  static constexpr int band = 4 * x_threads;                                // rows of sums that pass through shared memory at a time
  static constexpr int stages_bytes = 32 * (left + right), band_bytes = 8 * band * Columns;
  static constexpr int shared_bytes = stages_bytes > band_bytes ? stages_bytes : band_bytes;
  static_assert(x_threads % 8 == 0 && y_threads % 8 == 0);  // the permutation works on eight quads
};

/// Moves slabs of Lines rows or columns to shared memory. Cross: lines run across K.
template <bool Cross, int Lines, int Slab, int Threads> struct whole_mover {
  static constexpr int row = Lines / 4, run = Slab / 4;        // quads of a line across K, along K
  static constexpr int turn = 8 / run;                         // the permutation's step from one quad along K to the next
  static constexpr int moves = row * Slab / Threads;           // quads that a thread moves
  static constexpr int apart = Threads / (Cross ? row : run);  // lines between two of them
  static_assert(row * Slab % Threads == 0 && Threads % (Cross ? row : run) == 0 && (Cross || apart % 32 == 0));

  const char* at;                // of the thread's first quad in the next slab
  std::int64_t between, onward;  // bytes to its next quad, to the next slab
  int place;                     // where it goes: quads if Cross, else elements
  float4 next[Cross ? 1 : moves];

  __device__ whole_mover(const gemm_operand& x, std::int64_t offset, int origin, int k) {
    const int t = int(threadIdx.x), line = t / (Cross ? row : run), quad = t % (Cross ? row : run);
    const std::int64_t first =
        Cross ? std::int64_t(k + line) * x.line + origin + 4 * quad : std::int64_t(origin + line) * x.line + k + 4 * quad;
    at = pointer<const char>(x.at) + 4 * (offset + first);
    between = 4 * apart * x.line;
    onward = Cross ? 4 * Slab * x.line : 4 * Slab;
    place = Cross ? t : 4 * quad * Lines + 4 * (line / 4 ^ turn * quad) + line % 4;
  }
  /// Starts asynchronous copies of a slab whose lines run across K. `further`: there is another slab; otherwise this one comes again.
  __device__ void copy(float4* to, bool further) {
    if constexpr (Cross) {
#pragma unroll
      for (int i = 0; i < moves; ++i) copy_async_16(to + place + i * Threads, at + i * between);
      if (further) at += onward;
    }
  }
  /// Loads a slab whose lines run along K into registers.
  __device__ void load(bool further) {
    if constexpr (!Cross) {
#pragma unroll
      for (int i = 0; i < moves; ++i) next[i] = load_here(reinterpret_cast<const float4*>(at + i * between));
      if (further) at += onward;
    }
  }
  /// Stores the slab that is in registers, transposed.
  __device__ void put(float4* to) const {
    if constexpr (!Cross) {
      float* element = reinterpret_cast<float*>(to) + place;
#pragma unroll
      for (int i = 0; i < moves; ++i) {
        element[i * apart] = next[i].x;
        element[i * apart + Lines] = next[i].y;
        element[i * apart + 2 * Lines] = next[i].z;
        element[i * apart + 3 * Lines] = next[i].w;
      }
    }
  }
  /// Reads Count quads of step k of a slab: quad `first`, and those that are Apart, 2 Apart... behind it.
  template <int Count, int Apart> __device__ static void read(float (&to)[4 * Count], const float4* slab, int first, int k) {
    const float4* from = slab + (Cross ? first : first ^ turn * (k / 4));
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const float4 x = from[k * row + i * Apart];
      to[4 * i] = x.x, to[4 * i + 1] = x.y, to[4 * i + 2] = x.z, to[4 * i + 3] = x.w;
    }
  }
};

template <class S> struct whole_sums {
  float of[S::down][S::across];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < S::down; ++i)
#pragma unroll
      for (int j = 0; j < S::across; ++j) of[i][j] = 0.0f;
  }
  /// Adds the products of one step of K, to and fro along the columns: so each multiply-add shares an operand with the one before it, which
  /// need not be read again. Registers have two ports, so a multiply-add with three operands of its own takes two clocks.
  __device__ void add(const float (&rows)[S::down], const float (&columns)[S::across]) {
#pragma unroll
    for (int m = 0; m < S::down; m += 2) {
#pragma unroll
      for (int n = 0; n < S::across; ++n) of[m][n] = fmaf(rows[m], columns[n], of[m][n]);
#pragma unroll
      for (int n = S::across - 1; n >= 0; --n) of[m + 1][n] = fmaf(rows[m + 1], columns[n], of[m + 1][n]);
    }
  }
  /// Four adjacent columns of row m: the quad j.
  __device__ float4 quad(int m, int j) const { return float4{of[m][4 * j], of[m][4 * j + 1], of[m][4 * j + 2], of[m][4 * j + 3]}; }
};

/// The tile of a block, and its part of K.
template <class S> struct whole_place {
  int m0, n0, batch, part, begin, end;
  int x, y;  // the thread's place in the tile
  __device__ explicit whole_place(const gemm& g) {
    tile_at(int(blockIdx.x), (g.rows + S::rows - 1) / S::rows, (g.columns + S::columns - 1) / S::columns, m0, n0);
    m0 *= S::rows, n0 *= S::columns;
    batch = g.first + int(blockIdx.z) / g.parts, part = int(blockIdx.z) % g.parts;
    const std::int64_t first = std::int64_t(part) * g.part_depth;
    begin = int(first < g.depth ? first : g.depth);
    end = int(first + g.part_depth < g.depth ? first + g.part_depth : g.depth);
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, beside = S::y_threads / 8;
    x = warp / beside * 4 + (lane & 1) + (lane >> 4) * 2;
    y = warp % beside * 8 + (lane >> 1 & 7);
  }
  /// The first row and column that are read.
  __device__ int row_read(const gemm& g) const { return m0 < g.rows - S::rows ? m0 : g.rows - S::rows; }
  __device__ int column_read(const gemm& g) const { return n0 < g.columns - S::columns ? n0 : g.columns - S::columns; }
};

template <bool ACross, bool BCross, class S>
__device__ inline void whole_multiply(const gemm& g, const whole_place<S>& p, float4* memory, whole_sums<S>& sums) {
  using left_mover = whole_mover<ACross, S::rows, S::slab, S::threads>;
  using right_mover = whole_mover<BCross, S::columns, S::slab, S::threads>;
  constexpr int stage = S::left + S::right;
  left_mover a(g.a, batch_offset(p.batch, g.inner, g.a.outer, g.a.inner), p.row_read(g), p.begin);
  right_mover b(g.b, batch_offset(p.batch, g.inner, g.b.outer, g.b.inner), p.column_read(g), p.begin);
  float rows[2][S::down], columns[2][S::across];
  const auto read = [&](int to, const float4* from, int k) {
    left_mover::template read<S::down / 4, S::x_threads>(rows[to], from, p.x, k);
    right_mover::template read<S::across / 4, S::y_threads>(columns[to], from + S::left, p.y, k);
  };
  sums.clear();
  if (p.begin >= p.end) return;
  int slabs = (p.end - p.begin) / S::slab;
  a.copy(memory, slabs > 1);
  b.copy(memory + S::left, slabs > 1);
  a.load(slabs > 1);
  b.load(slabs > 1);
  a.put(memory);
  b.put(memory + S::left);
  a.load(slabs > 2);
  b.load(slabs > 2);
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
  read(0, memory, 0);
  float4 *present = memory, *following = memory + stage;
  // The body has no branches, and loads that are a slab ahead stand before its barrier: else ptxas delays them until just before their use.
#pragma unroll 1
  for (; slabs > 0; --slabs) {
    a.copy(following, slabs > 2);
    b.copy(following + S::left, slabs > 2);
    copy_async_commit();
#pragma unroll
    for (int k = 0; k < S::slab; ++k) {
      if (k + 1 < S::slab) {
        read((k + 1) % 2, present, k + 1);
      } else {
        a.put(following);
        b.put(following + S::left);
        a.load(slabs > 3);
        b.load(slabs > 3);
        copy_async_wait<0>();
        __syncthreads();
        read(0, following, 0);
      }
      sums.add(rows[k % 2], columns[k % 2]);
    }
    float4* const other = present;
    present = following;
    following = other;
  }
}

/// The row of sum i of a thread in the tile, and the first column of its quad j.
template <class S> __device__ constexpr int whole_row(int x, int i) { return 4 * (x + S::x_threads * (i / 4)) + i % 4; }
template <class S> __device__ constexpr int whole_column(int y, int j) { return 4 * (y + S::y_threads * j); }

/// Stores sums, or adds them to y, straight from registers.
template <bool Partial, bool Adds, class S>
__device__ inline void whole_store(const gemm& g, const whole_place<S>& p, const whole_sums<S>& sums) {
  const int m0 = p.row_read(g), n0 = p.column_read(g);
  const std::int64_t batch_at = (g.before + p.batch) * std::int64_t(g.rows) * g.columns + (Partial ? p.part * g.elements : 0);
#pragma unroll
  for (int i = 0; i < S::down; i += 4) {
    float4 old[4][S::across / 4];
    const int m = m0 + whole_row<S>(p.x, i);
    float4* const first = pointer<float4>(g.y) + (batch_at + std::int64_t(m) * g.columns + n0) / 4;
    if constexpr (Adds) {
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int j = 0; j < S::across / 4; ++j) old[r][j] = first[(std::int64_t(r) * g.columns + whole_column<S>(p.y, j)) / 4];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int j = 0; j < S::across / 4; ++j) {
        const float4 s = sums.quad(i + r, j);
        float4 v = Partial ? s : float4{times(g.alpha, s.x), times(g.alpha, s.y), times(g.alpha, s.z), times(g.alpha, s.w)};
        if constexpr (Adds) v = float4{plus(v.x, old[r][j].x), plus(v.y, old[r][j].y), plus(v.z, old[r][j].z), plus(v.w, old[r][j].w)};
        if (m + r >= p.m0 && n0 + whole_column<S>(p.y, j) >= p.n0) first[(std::int64_t(r) * g.columns + whole_column<S>(p.y, j)) / 4] = v;
      }
  }
}

/// Passes sums through shared memory in bands of four rows of each thread, (4 x_threads, columns). `finish` takes the first row of a band.
template <class S, class Finish>
__device__ inline void whole_bands(const gemm& g, const whole_place<S>& p, float4* memory, const whole_sums<S>& sums,
                                   const Finish& finish) {
#pragma unroll 1
  for (int block = 0; block < S::down / 4; ++block) {
    __syncthreads();
#pragma unroll
    for (int b = 0; b < S::down / 4; ++b)
      if (b == block)
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < S::across / 4; ++j)
            memory[((4 * p.x + i) * S::columns + whole_column<S>(p.y, j)) / 4] = sums.quad(4 * b + i, j);
    finish(p.row_read(g) + block * S::band);
  }
}

/// Finishes a band by any body, eight columns at a time.
template <class S> struct whole_finish {
  const gemm& g;
  const whole_place<S>& p;
  const float4* memory;
  __device__ whole_finish(const gemm& arguments, const whole_place<S>& place, const float4* shared)
      : g(arguments), p(place), memory(shared) {}

  __device__ void operator()(int m0) const {
    constexpr int eights = S::columns / 8;
    __syncthreads();
    const int n0 = p.column_read(g);
#pragma unroll 1
    for (int e = int(threadIdx.x); e < S::band * eights; e += S::threads) {
      const int r = e / eights, c = e % eights * 8;
      if (m0 + r < p.m0 || n0 + c < p.n0) continue;
      const float4 u = memory[(r * S::columns + c) / 4], v = memory[(r * S::columns + c) / 4 + 1];
      float z[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
      finish_eight(g, p.batch, p.part, m0 + r, n0 + c, z, 8);
    }
  }
};

/// Finishes a band by a chain whose formats are all f32. An operand that is dense like y comes by asynchronous copies, all at once.
template <class S> struct whole_chain {
  static constexpr int quads = S::columns / 4, apart = S::threads / quads;  // of a row; rows between those of a thread
  static_assert(S::threads % quads == 0 && S::band % apart == 0);
  const gemm& g;
  const whole_place<S>& p;
  const float4* sums;
  float4* dense;                // (band, columns), of operand `ahead`
  int ahead;                    // the first dense operand; -1: there is none
  float4 same[chain_operands];  // values of operands that are equal in all rows

  __device__ whole_chain(const gemm& arguments, const whole_place<S>& place, float4* shared)
      : g(arguments),
        p(place),
        sums(shared),
        dense(shared + S::band * quads),
        ahead(g.operands[0].row != 0   ? 0
              : g.operands[1].row != 0 ? 1
                                       : -1) {
#pragma unroll
    for (int k = 0; k < chain_operands; ++k) {
      const chain_operand& o = g.operands[k];
      same[k] = float4{0.0f, 0.0f, 0.0f, 0.0f};
      if (o.at == 0 || o.row != 0) continue;
      const float* x = pointer<const float>(o.at);
      if (o.column != 0) same[k] = *reinterpret_cast<const float4*>(x + column());
      else same[k] = float4{x[0], x[0], x[0], x[0]};
    }
  }
  __device__ int column() const { return p.column_read(g) + int(threadIdx.x) % quads * 4; }

  __device__ void operator()(int m0) const {
    const int first = int(threadIdx.x) / quads, place = int(threadIdx.x) % quads, n = column();
    const std::int64_t at = ((g.before + p.batch) * std::int64_t(g.rows) + m0) * g.columns + n;
    if (ahead >= 0) {
#pragma unroll
      for (int r = first; r < first + S::band; r += apart)
        copy_async_16(dense + r * quads + place, pointer<const float>(g.operands[ahead].at) + at + std::int64_t(r) * g.columns);
      copy_async_commit();
      copy_async_wait<0>();
    }
    __syncthreads();
#pragma unroll 1
    for (int r = first; r < S::band; r += apart)
      if (m0 + r >= p.m0 && n >= p.n0) finish(at + std::int64_t(r) * g.columns, sums[r * quads + place], r * quads + place);
  }
  /// Finishes four sums, the first of which has index `at` in y.
  __device__ void finish(std::int64_t at, const float4& sum, int place) const {
    float x[4] = {times(g.alpha, sum.x), times(g.alpha, sum.y), times(g.alpha, sum.z), times(g.alpha, sum.w)};
    float4 other = same[0], second = same[1];
    if (ahead == 0) other = dense[place];
    if (ahead == 1) second = dense[place];
    if (ahead == 0 && g.operands[1].row != 0) second = pointer<const float4>(g.operands[1].at)[at / 4];
#pragma unroll 1
    for (int j = 0; j < g.steps; ++j) {
      const chain_step& s = g.chain[j];
      const float4 of = s.operand == 0 ? other : second;
      const float o[4] = {s.both != 0 ? x[0] : of.x, s.both != 0 ? x[1] : of.y, s.both != 0 ? x[2] : of.z, s.both != 0 ? x[3] : of.w};
      step(s, x, o);
      if (s.store >= 0) pointer<float4>(g.out[s.store])[at / 4] = float4{x[0], x[1], x[2], x[3]};
    }
  }
  __device__ static void step(const chain_step& s, float (&x)[4], const float (&o)[4]) {
    const bool first = s.operand_first != 0;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float a = first ? o[q] : x[q], b = first ? x[q] : o[q];
      switch (s.code) {
        case 0: x[q] = plus(x[q], o[q]); break;
        case 2: x[q] = times(x[q], o[q]); break;
        case 4: x[q] = times(s.constant, x[q]); break;
        case 18: x[q] = result_of(18u, x[q], 0.0f, 0.0f, 0.0f); break;
        case 19: x[q] = result_of(19u, a, b, 0.0f, 0.0f); break;
        case 22: x[q] = result_of(22u, x[q], 0.0f, 0.0f, 0.0f); break;
        case 23: x[q] = result_of(23u, a, b, 0.0f, 0.0f); break;
        case 24: x[q] = result_of(24u, x[q], 0.0f, 0.0f, 0.0f); break;
        default: break;
      }
    }
  }
};

template <bool ACross, bool BCross, class S> __device__ inline void whole_matmul(const gemm& g) {
  float4* const memory = reinterpret_cast<float4*>(dynamic_shared());  // two stages of both operands, then a band of sums
  const whole_place<S> p(g);
  whole_sums<S> sums;
  whole_multiply<ACross, BCross, S>(g, p, memory, sums);
  if (g.fast == case_partial) return whole_store<true, false>(g, p, sums);
  if (g.fast == case_store_f32) return whole_store<false, false>(g, p, sums);
  if (g.fast == case_add_f32) return whole_store<false, true>(g, p, sums);

  if (g.fast == case_chain_f32) return whole_bands<S>(g, p, memory, sums, whole_chain<S>(g, p, memory));
  whole_bands<S>(g, p, memory, sums, whole_finish<S>(g, p, memory));
}

}  // namespace isotope::cuda::gpu
