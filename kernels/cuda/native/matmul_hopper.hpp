#pragma once
/// The host side of matmul_hopper.cu: which matmuls it takes, and their launches.
///
///   const matmul_hopper h(l, s);   // s: the sizes of the matmul l
///   if (h.obstacle().empty()) h.record(r);
///
/// Where the launch asks for column sums and sums_columns() says so, it records them, too; otherwise they are the caller's.
#include <isotope/kernels/cuda/native/matmul_hopper.h>
#include <isotope/fatbins/matmul_hopper.hpp>
#include <isotope/kernels/cuda/gemm/shape.hpp>
#include <isotope/kernels/cuda/native/matmul_hopper_choice.hpp>
#include <isotope/kernels/cuda/rows/column_sum.hpp>
#include <isotope/op/add.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cuda {

class matmul_hopper {
 public:
  matmul_hopper(const launch& l, const matmul_shape& s) : l_(l), s_(s) {
    why_ = unfit();
    if (why_.empty() && !classify()) why_ = "the kernel for Hopper has no such epilogue";
    if (why_.empty()) choice_ = matmul_hopper_choice::of(problem());
  }

  /// Returns why the kernel cannot take this matmul; empty if it can.
  std::string_view obstacle() const { return why_; }
  const matmul_hopper_choice& choice() const { return choice_; }
  /// Whether the epilogue gives the column sums that the launch asks for: those of a product times GELU's gradient. A second kernel adds the sums
  /// of its row tiles, which are in scratch.
  bool sums_columns() const {
    return l_.column_sums != nullptr && arguments_.epilogue == gpu::hopper_epilogue::gelu_grad &&
           &l_.out[std::size_t(l_.summed)] == results_[0] && row_tiles() <= portable::column_division::most_rows_of_one_pass &&
           l_.scratch % 16 == 0 && l_.scratch_bytes >= tile_sums().bytes;
  }

  void record(recording& r) const { record_as(r, matmul_hopper_choice::of(problem(), r.considered())); }
  /// Records the matmul with the caller's choice.
  void record_as(recording& r, const matmul_hopper_choice& c) const {
    const matmul_hopper_choice::problem p = problem();
    gpu::matmul_hopper g = arguments_;
    g.y = results_[0]->at;
    g.M = std::int32_t(s_.M);
    g.N = std::int32_t(s_.N);
    g.slabs = std::int32_t(c.slabs(p));
    g.parts = std::int32_t(c.parts);
    g.per = std::int32_t(c.per(p));
    g.row_tiles = std::int32_t(c.row_tiles(p));
    g.column_tiles = std::int32_t(c.column_tiles(p));
    g.cluster = c.cluster;
    g.group = 8;
    g.stages = c.stages(p);
    g.sums = c.sums(p);
    g.direct = p.f32;
    g.alpha = s_.alpha;
    g.partial = l_.scratch;
    g.column_sums = p.summed ? l_.scratch : 0;

    const std::int64_t blocks = c.clusters(p) * c.cluster;
    const range partial{l_.scratch, c.partial_bytes(p)};
    std::vector<range> reads{l_.in[0], l_.in[1]}, writes;
    for (const view* x : operands_)
      if (x != nullptr) reads.push_back(*x);
    for (const view* x : results_)
      if (x != nullptr) writes.push_back(*x);
    const std::size_t width = c.columns == 256 ? 0 : c.columns == 192 ? 1 : 2;
    const std::size_t order = s_.a.cross ? 2 : s_.b.cross ? 1 : 0;
    const std::vector<range> result = writes;
    if (c.parts > 1) writes.push_back(partial);
    if (p.summed) writes.push_back(tile_sums());
    grid count = per_block(blocks, std::uint32_t(c.threads()), c.shared_bytes(p));
    count.cluster = std::uint32_t(c.cluster);
    dispatch& d = r.add(fatbins::matmul_hopper, (g.sums == 0 ? direct_functions : functions)[order][width], g, count, reads, writes);
    d.matrices = "bf16";
    d.maps.push_back(map_of(s_.a, s_.M, offsetof(gpu::matmul_hopper, a), s_.a.cross ? 64 : 128, 64));
    d.maps.push_back(map_of(s_.b, s_.N, offsetof(gpu::matmul_hopper, b), std::uint32_t(c.columns / 2), 32));
    if (p.summed) portable::record_column_sum(r, {.rows = row_tiles(), .cols = s_.N, .pitch = s_.N}, tile_sums(), *l_.column_sums, 0);
    if (c.parts == 1) return;
    grid sums = per_block(c.items(p) * c.cluster * 2, 128);
    sums.y = std::uint32_t(c.columns / 8);
    std::vector<range> parts{partial};
    for (const view* x : operands_)
      if (x != nullptr) parts.push_back(*x);
    r.add(fatbins::matmul_hopper, reducers[width], g, sums, std::move(parts), result);
  }

 private:
  using names = std::array<std::array<std::string_view, 3>, 3>;
  static constexpr names functions{{{"matmul_hopper_nt_256", "matmul_hopper_nt_192", "matmul_hopper_nt_128"},
                                    {"matmul_hopper_nn_256", "matmul_hopper_nn_192", "matmul_hopper_nn_128"},
                                    {"matmul_hopper_tn_256", "matmul_hopper_tn_192", "matmul_hopper_tn_128"}}};
  static constexpr names direct_functions{
      {{"matmul_hopper_direct_nt_256", "matmul_hopper_direct_nt_192", "matmul_hopper_direct_nt_128"},
       {"matmul_hopper_direct_nn_256", "matmul_hopper_direct_nn_192", "matmul_hopper_direct_nn_128"},
       {"matmul_hopper_direct_tn_256", "matmul_hopper_direct_tn_192", "matmul_hopper_direct_tn_128"}}};  // sums leave from registers
  static constexpr std::array<std::string_view, 3> reducers{"matmul_hopper_reduce_256", "matmul_hopper_reduce_192",
                                                            "matmul_hopper_reduce_128"};

  const launch& l_;
  const matmul_shape& s_;
  std::string_view why_;
  gpu::matmul_hopper arguments_{};
  std::array<const view*, 2> operands_{}, results_{};  // of the epilogue: what is read, what is written (y first)
  matmul_hopper_choice choice_;

  std::int64_t row_tiles() const { return matmul_hopper_choice::ceiling(s_.M, matmul_hopper_choice::rows); }
  /// The sums of columns of each row tile.
  view tile_sums() const {
    view v{l_.scratch, 4 * row_tiles() * s_.N, {row_tiles(), s_.N}, {}, dtype::f32};
    v.strides[0] = s_.N;
    v.strides[1] = 1;
    return v;
  }
  bool divisible() const { return arguments_.epilogue == gpu::hopper_epilogue::plain || arguments_.accumulate != 0; }
  int formula() const {
    using enum gpu::hopper_epilogue;
    return arguments_.epilogue == bias_gelu_erf ? 2 : arguments_.epilogue == bias_gelu || arguments_.epilogue == gelu_grad ? 1 : 0;
  }
  matmul_hopper_choice::problem problem() const {
    return {s_.M,
            s_.N,
            s_.K,
            l_.device->multiprocessors,
            divisible() && l_.scratch % 16 == 0 && !l_.constants<op::matmul>().batch_invariant ? l_.scratch_bytes : 0,
            results_[0]->type == dtype::f32,
            formula(),
            sums_columns()};
  }
  /// The axes of an operand along its lines, and across; `across` and `along` are the sides of a box where lines run along K and where
  /// they do not.
  tensor_map map_of(const matmul_operand& x, std::int64_t outer, std::size_t offset, std::uint32_t across, std::uint32_t along) const {
    tensor_map m;
    m.argument_offset = std::uint32_t(offset);
    m.address = x.at;
    m.dims[0] = std::uint64_t(x.length);
    m.dims[1] = std::uint64_t(x.cross ? s_.K : outer);
    m.strides_bytes[0] = std::uint64_t(2 * (x.line == 0 ? (x.length + 7) / 8 * 8 : x.line));
    m.box[0] = 64;
    m.box[1] = x.cross ? along : across;
    return m;
  }

  std::string_view unfit() const {
    const device_limits& d = *l_.device;
    if (!d.hopper()) return "the device is no Hopper";
    if (!fatbins::matmul_hopper.there()) return "this build has no code for Hopper";
    if (d.shared_bytes < 232448) return "the device's shared memory is too small";
    if (s_.a.type != dtype::bf16 || s_.b.type != dtype::bf16) return "operands are not bf16";
    if (s_.a.cross && !s_.b.cross) return "the kernel for Hopper has no such memory order";
    if (s_.batches() != 1 || s_.pieces() != 1) return "the kernel for Hopper takes no batches";
    if (s_.beta != 0) return "the kernel for Hopper adds no matrix with a factor";
    if (s_.M < 64 || s_.N < 64 || s_.K < 64) return "the product is too small for the tiles of Hopper";
    if (s_.N % 8 != 0 || s_.M >= 1 << 30 || s_.N >= 1 << 30 || s_.K >= 1 << 30) return "rows are not whole groups of eight columns";
    if (s_.overlapping()) return "lines of an operand share elements";
    for (const matmul_operand* x : {&s_.a, &s_.b})
      if (x->at % 16 != 0 || x->line % 8 != 0) return "lines of an operand are not aligned to 16 bytes";
    for (const view& y : l_.out)
      if (y.at % 16 != 0) return "the result is not aligned to 16 bytes";
    return {};
  }
  bool row_vector(const view& x) const { return broadcasts(x, true); }
  bool whole_matrix(const view& x) const { return broadcasts(x, false); }
  /// Whether x is bf16 and either the same row for all rows of the result (`row`) or dense like it.
  bool broadcasts(const view& x, bool row) const {
    if (x.type != dtype::bf16 || x.at % 16 != 0) return false;
    const shape& y = l_.out[0].dims;
    std::int64_t step = 1;
    for (int i = y.rank; i-- > 0;) {
      const int k = i - (y.rank - x.dims.rank);
      const std::int64_t stride = k < 0 || x.dims[k] == 1 ? 0 : x.strides[std::size_t(k)];
      const std::int64_t wanted = row && i != y.rank - 1 ? 0 : step;
      if (y[i] != 1 && stride != wanted) return false;
      step *= y[i];
    }
    return true;
  }
  const view* input(std::int8_t k) const { return k >= 0 && std::size_t(k) < l_.in.size() ? &l_.in[std::size_t(k)] : nullptr; }

  /// Finds the epilogue, its operands and its results.
  bool classify() {
    using gpu::hopper_epilogue;
    gpu::matmul_hopper& g = arguments_;
    const dtype product = l_.constants<op::matmul>().format.type();
    results_[0] = &l_.out[0];
    g.epilogue = hopper_epilogue::plain;
    if (l_.body.empty()) {
      if (l_.out[0].type != product || (product != dtype::bf16 && product != dtype::f32)) return false;
      g.accumulate = (l_.accumulate & 1u) != 0;
      if (g.accumulate != 0) {
        operands_[0] = &l_.out[0];
        g.other = l_.out[0].at;
        if (product == dtype::bf16) g.epilogue = hopper_epilogue::add;
      }
      return true;
    }
    if (product != dtype::bf16 || l_.accumulate != 0 || l_.body.size() > 2) return false;
    for (const micro_op& m : l_.body)
      if (m.type != dtype::bf16) return false;
    for (const view& y : l_.out)
      if (y.type != dtype::bf16) return false;
    const micro_op &first = l_.body.front(), &last = l_.body.back();
    const auto before = [](std::int8_t k, const micro_op& m) {
      return m.arg[0] == k ? m.arg[1] : m.arg[0];
    };  // the operand of an addition that is not k
    const auto adds = [](std::int8_t k, const micro_op& m) { return m.op == &info<op::add> && (m.arg[0] == k) != (m.arg[1] == k); };
    if (last.store < 0) return false;
    results_[0] = &l_.out[std::size_t(last.store)];
    if (l_.body.size() == 1 && first.op == &info<op::gelu_tanh_grad>) {
      const view* x = input(first.arg[0]);
      if (x == nullptr || first.arg[1] != gemm_result || !whole_matrix(*x)) return false;
      operands_[0] = x;
      g.other = x->at;
      g.epilogue = hopper_epilogue::gelu_grad;
      return true;
    }
    if (!adds(gemm_result, first)) return false;
    const view* x = input(before(gemm_result, first));
    if (x == nullptr) return false;
    operands_[0] = x;
    if (l_.body.size() == 1) {
      if (row_vector(*x)) {
        g.bias = x->at;
        g.epilogue = hopper_epilogue::bias;
      } else {
        g.other = x->at;
        g.epilogue = hopper_epilogue::add;
        return whole_matrix(*x);
      }
      return true;
    }
    constexpr std::int8_t sum = max_inputs;  // the result of the first instruction
    if (!row_vector(*x)) return false;
    g.bias = x->at;
    if ((last.op == &info<op::gelu_tanh> || last.op == &info<op::gelu_erf>) && last.arg[0] == sum) {
      g.epilogue = last.op == &info<op::gelu_tanh> ? hopper_epilogue::bias_gelu : hopper_epilogue::bias_gelu_erf;
      if (first.store >= 0) {
        results_[1] = &l_.out[std::size_t(first.store)];
        g.before = results_[1]->at;
      }
      return true;
    }
    if (first.store >= 0 || !adds(sum, last)) return false;
    operands_[1] = input(before(sum, last));
    if (operands_[1] == nullptr || !whole_matrix(*operands_[1])) return false;
    g.other = operands_[1]->at;
    g.epilogue = hopper_epilogue::bias_residual;
    return true;
  }
};

}  // namespace isotope::cuda
