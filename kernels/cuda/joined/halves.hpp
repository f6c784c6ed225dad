#pragma once
/// Decoding of few tokens with two launches a layer: the five launches of a layer of a GPT whose norms and appends are joined already become an attention half and an MLP
/// half, and the last norm and the logits a third kernel: of one row those of native/decode_hopper.cu, of up to eight those of native/decode_few_hopper.cu. The residual
/// passes from half to half in f32, so results differ from those of separate launches in roundings.
#include <algorithm>

#include <isotope/kernels/cuda/decode/few.h>
#include <isotope/kernels/cuda/portable/embedding.h>
#include <isotope/fatbins/decode_few_hopper.hpp>
#include <isotope/fatbins/decode_hopper.hpp>
#include <isotope/fatbins/embedding.hpp>
#include <isotope/kernels/cuda/body/emitted_body.hpp>
#include <isotope/kernels/cuda/gemm/chain.hpp>
#include <isotope/kernels/cuda/joined/joined.hpp>

namespace isotope::cuda {

class decode_halves {
 public:
  /// Columns of the rows that there are kernels for, and the bytes of scratch memory that all plans of a session share.
  static constexpr int columns = 768;
  static constexpr std::int64_t part_bytes = std::int64_t(4) * gpu::decode_most_parts * gpu::decode_most_rows * columns,
                                scratch_bytes = 2 * part_bytes;

  /// `kept`: bytes that are read after the run.
  decode_halves(std::vector<dispatch>& all, const range& kept, const device_limits& device) : all_(all), kept_(kept), device_(device) {
    if (!there()) return;
    for (std::size_t i = 0; i < all.size() && layers_.empty(); ++i) find(i);
  }
  bool found() const { return !layers_.empty(); }
  std::size_t layers() const { return layers_.size(); }

  /// Replaces the launches by those of the halves, which pass rows on in `scratch`, memory of scratch_bytes.
  void join(std::uint64_t scratch) {
    const std::array<std::uint64_t, 2> parts{scratch, scratch + std::uint64_t(part_bytes)};
    std::vector<dispatch> made;
    for (const layer& l : layers_) {
      made.push_back(attention_half(l, made.empty() ? 0 : parts[0], parts[1]));
      made.push_back(mlp_half(l, parts[1], parts[0]));
    }
    made.push_back(logits(parts[0]));
    replace(std::move(made));
  }

 protected:
  static constexpr std::int64_t C = columns, D = gpu::decode_head, heads = C / D, hidden = 4 * C;
  struct layer {
    std::size_t at;  // of its first launch
    std::uint64_t x, y;
    gpu::gemm qkv, projection, up, down;
    gpu::cached_heads attention;
  };
  std::vector<dispatch>& all_;
  range kept_;
  const device_limits& device_;
  std::vector<layer> layers_;
  std::size_t first_ = 0, end_ = 0;
  gpu::gemm table_{};
  gpu::gemm_norm last_norm_{};
  gpu::decode_rows first_rows_{};  // where the first layer has its rows from

  void replace(std::vector<dispatch> made) {
    const auto first = all_.begin() + std::ptrdiff_t(first_), end = all_.begin() + std::ptrdiff_t(end_);
    all_.insert(all_.erase(first, end), std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  }
  bool there() const {
    return device_.hopper() && fatbins::decode_hopper.there() && fatbins::decode_few_hopper.there() &&
           device_.shared_bytes >= std::max({gpu::decode_logits_bytes(columns, gpu::decode_most_rows), gpu::decode_mlp_bytes(columns),
                                             gpu::decode_attention_bytes(columns), gpu::decode_few_mlp_bytes(columns),
                                             gpu::decode_few_attention_bytes(columns)});
  }
  static std::uint64_t out(const gpu::gemm& g) {
    const int k = g.steps < 1 ? -1 : g.chain[g.steps - 1].store;
    return k < 0 ? 0 : g.out[k];
  }

  /// Whether the product adds a bias and then the residual `x`. With a single row, either may come first.
  static bool adds(gpu::gemm& g, std::uint64_t x) {
    constexpr auto bf16 = std::int32_t(dtype::bf16);
    constexpr std::uint32_t add = std::uint32_t(instruction_number(&info<op::add>));
    bool all = g.finish == gpu::finish_chain && g.steps == 2 && g.product_type == bf16 && g.chain[0].store < 0 && g.chain[1].store >= 0;
    for (int k = 0; k < 2 && all; ++k) {
      const gpu::chain_step& s = g.chain[k];
      all = s.code == add && s.type == bf16 && s.both == 0 && s.operand == k && g.operands[k].type == bf16 && g.operands[k].column != 0;
    }
    if (!all || g.out_type[g.chain[1].store] != bf16) return false;
    if (g.rows == 1 && g.operands[0].at == x) std::swap(g.operands[0], g.operands[1]);
    return g.operands[1].at == x && (g.rows == 1 || (g.operands[0].row == 0 && g.operands[1].row != 0));
  }
  /// A product of whole rows with weights of `N` lines of `K` elements. `fast`: how it ends; case_other: see `adds`.
  std::optional<gpu::gemm> product(std::size_t i, std::int64_t K, std::int64_t N, std::int32_t fast, bool norm) const {
    if (i >= all_.size()) return {};
    const auto g = arguments_in<gpu::gemm>(all_[i], fatbins::matmul_rows_mma);
    constexpr auto bf16 = std::int32_t(dtype::bf16);
    if (!g || g->rows < 1 || g->rows > gpu::decode_most_rows || g->depth != K || g->columns != N || g->parts != 1 || g->batches != 1)
      return {};
    if (g->swapped != 0 || g->a_cross != 0 || g->alpha != 1 || g->beta != 0 || g->accumulate != 0 || g->a.type != bf16 || g->b.type != bf16)
      return {};
    if (g->b.line != K || g->b.at % 16 != 0 || (g->rows > 1 && g->a.line != K) || (g->norm.on != 0) != norm) return {};
    if (fast != gpu::case_other && g->fast != fast) return {};
    if (norm && (g->norm.centered == 0 || g->norm.weight % 16 != 0 || g->norm.bias % 16 != 0)) return {};
    for (int k = 0; k + 1 < g->steps; ++k)
      if (g->chain[k].store >= 0) return {};
    return g;
  }
  std::optional<layer> layer_at(std::size_t i, std::uint64_t x, std::int32_t rows) const {
    const auto qkv = product(i, C, 3 * C, gpu::case_bias, true);
    if (!qkv || i + 5 > all_.size() || (x != 0 && (qkv->a.at != x || qkv->rows != rows))) return {};
    const auto attention = arguments_in<gpu::cached_heads>(all_[i + 1], fatbins::attention_cached_hopper);
    auto projection = product(i + 2, C, C, gpu::case_other, false);
    const auto up = product(i + 3, C, hidden, gpu::case_bias_gelu, true);
    auto down = product(i + 4, hidden, C, gpu::case_other, false);
    if (!attention || !projection || !up || !down) return {};
    const std::int32_t N = qkv->rows;
    const gpu::cached_heads& h = *attention;
    const std::uint64_t y = out(*qkv), to = out(*projection);
    const bool attends = h.N == N && h.q == y && h.k == y + 2 * C && h.v == y + 4 * C && h.D == D && h.G == heads && h.repeats == 1 &&
                         h.window == 0 && h.T <= gpu::decode_most_positions && h.B * heads * h.T < (std::int64_t(1) << 31) &&
                         (N == 1 || (h.q_stride == 3 * C && h.k_stride == 3 * C && h.v_stride == 3 * C && h.y_stride == C));
    const bool follows = projection->rows == N && projection->a.at == h.y && adds(*projection, qkv->a.at) && up->rows == N &&
                         up->a.at == to && down->rows == N && down->a.at == out(*up) && adds(*down, to) && qkv->a.at % 4 == 0;
    if (!attends || !follows) return {};
    return layer{i, qkv->a.at, out(*down), *qkv, *projection, *up, *down, h};
  }
  /// Finds layers from launch i on, and the logits behind them.
  void find(std::size_t i) {
    std::vector<layer> some;
    for (auto l = layer_at(i, 0, 0); l; l = layer_at(i + 5 * some.size(), l->y, l->qkv.rows)) some.push_back(*l);
    if (some.empty()) return;
    const std::size_t behind = i + 5 * some.size(), n = logits_at(behind, some.back());
    if (n == 0) return;
    const std::size_t tables = tables_before(i, some.front());
    const std::size_t first = tables > 0 && unused(i - tables, behind + n, some) ? i - tables : i;
    if (first == i) {
      if (!unused(i, behind + n, some)) return;
      first_rows_ = {};
      first_rows_.x = some.front().x;
    }
    first_ = first, end_ = behind + n;
    layers_ = std::move(some);
  }
  /// Whether nothing but the launches [first, end) reads what these write, apart from caches and the results of the last one.
  bool unused(std::size_t first, std::size_t end, const std::vector<layer>& some) const {
    for (std::size_t k = first; k + 1 < end; ++k)
      for (const range& w : all_[k].writes)
        if (!is_cache(w, some) && (w.overlaps(kept_) || !joined::read_once(all_, end - 1, all_.size(), w))) return false;
    return true;
  }
  /// How many launches before launch i look up the rows of the first layer in two tables and add them: 3, or 0 if these do something else.
  std::size_t tables_before(std::size_t i, const layer& l) {
    if (i < 3) return 0;
    const auto words = arguments_in<gpu::embedding_operands>(all_[i - 3], fatbins::embedding),
               places = arguments_in<gpu::embedding_operands>(all_[i - 2], fatbins::embedding);
    const dispatch& sum = all_[i - 1];
    emitted_arguments a;
    if (!words || !places || all_[i - 3].function != "embedding" || all_[i - 2].function != "embedding" || sum.function != "elementwise" ||
        sum.code == nullptr || sum.code->name != info<op::add>.name || sum.arguments.size() != sizeof a)
      return 0;
    std::memcpy(static_cast<void*>(&a), sum.arguments.data(), sizeof a);
    const std::int64_t N = l.qkv.rows, bytes = 2 * N * C;
    const auto looks_up = [&](const gpu::embedding_operands& e) {
      return std::int64_t(e.per_row) * e.unit == 2 * C && e.units == N * e.per_row && e.V < (std::int64_t(1) << 31) && e.table % 2 == 0;
    };
    const auto whole = [&](const std::vector<range>& all, std::uint64_t at) {
      return std::any_of(all.begin(), all.end(), [&](const range& r) { return r.first == at && r.bytes() == bytes; });
    };
    const bool adds_both = (a.at[0] == words->y && a.at[1] == places->y) || (a.at[0] == places->y && a.at[1] == words->y);
    if (!looks_up(*words) || !looks_up(*places) || words->y == places->y || !adds_both || a.at[max_inputs] != l.x ||
        sum.reads.size() != 2 || sum.writes.size() != 1 || !whole(sum.reads, words->y) || !whole(sum.reads, places->y) ||
        !whole(sum.writes, l.x))
      return 0;
    first_rows_ = {};
    first_rows_.words = words->table, first_rows_.word_ids = words->ids, first_rows_.word_count = std::int32_t(words->V);
    first_rows_.places = places->table, first_rows_.place_ids = places->ids, first_rows_.place_count = std::int32_t(places->V);
    return 3;
  }
  static bool is_cache(const range& w, const std::vector<layer>& some) {
    for (const layer& l : some)
      if (w.first == l.attention.keys || w.first == l.attention.values) return true;
    return false;
  }
  /// How many launches from i on normalise the row and multiply it with the table: 1, 2, or 0 if these do something else.
  std::size_t logits_at(std::size_t i, const layer& last) {
    constexpr auto bf16 = std::int32_t(dtype::bf16);
    const auto table = [&](std::size_t k) {
      const auto g = k < all_.size() ? arguments_in<gpu::gemm>(all_[k], fatbins::matmul_rows_mma) : std::optional<gpu::gemm>();
      const bool takes = g && g->rows == last.qkv.rows && g->depth == C && g->parts == 1 && g->batches == 1 && g->swapped == 0 &&
                         g->a_cross == 0 && g->alpha == 1 && g->beta == 0 && g->accumulate == 0 && g->finish == gpu::finish_store &&
                         g->y_type == bf16 && g->product_type == bf16 && g->a.type == bf16 && g->b.type == bf16 && g->b.line == C &&
                         g->b.at % 16 == 0;
      if (takes) table_ = *g;
      return takes;
    };
    if (table(i) && table_.norm.on != 0 && table_.norm.centered != 0 && table_.a.at == last.y) return last_norm_ = table_.norm, 1;
    const auto norm = i < all_.size() ? arguments_in<gpu::norm_operands>(all_[i], fatbins::norm) : std::optional<gpu::norm_operands>();
    if (!norm || !all_[i].function.ends_with("_bf16") || norm->x != last.y || norm->rows != last.qkv.rows || norm->C != C ||
        norm->centered == 0 || norm->weight_type != bf16 || norm->bias_type != bf16 || norm->weight % 16 != 0 || norm->bias % 16 != 0)
      return 0;
    if (!table(i + 1) || table_.norm.on != 0 || table_.a.at != norm->y || (norm->rows > 1 && table_.a.line != C)) return 0;
    last_norm_ = {norm->weight, norm->bias, 1, 1, norm->epsilon};
    return 2;
  }

  /// The rows of a launch that adds up `parts` parts; those of the first one if `from` is 0.
  gpu::decode_rows rows_of(const gpu::gemm_norm& n, std::uint64_t from, std::int32_t parts, std::int32_t N) const {
    gpu::decode_rows r{};
    if (from == 0) r = first_rows_;
    r.from = from;
    r.norm_weight = n.weight, r.norm_bias = n.bias, r.epsilon = n.epsilon;
    r.parts = parts, r.N = N;
    return r;
  }
  static range parts_range(std::uint64_t at, std::int64_t parts, std::int64_t N) { return {at, 4 * parts * N * C}; }
  /// A launch of one of the kernels, with the steps that the launches [from, to) did.
  template <class Arguments>
  dispatch launch(std::string_view one, const Arguments& a, const grid& count, std::size_t from, std::size_t to,
                  const std::vector<range>& weights) const {
    dispatch d;
    d.code = &fatbins::decode_hopper;
    d.function = one;
    d.arguments.resize(sizeof a);
    std::memcpy(d.arguments.data(), &a, sizeof a);
    d.count = count;
    d.default_threads = count.threads;
    d.set = isotope::kernels::native::name;
    d.matrices = "bf16";
    d.starts_early = true;
    d.step = all_[to - 1].step;
    d.reads = d.early = weights;
    d.reads.emplace_back(a.rows.norm_weight, 2 * C), d.reads.emplace_back(a.rows.norm_bias, 2 * C);
    d.early.emplace_back(a.rows.norm_weight, 2 * C), d.early.emplace_back(a.rows.norm_bias, 2 * C);
    const gpu::decode_rows& r = a.rows;
    if (r.from != 0) d.reads.push_back(parts_range(r.from, r.parts, r.N));
    else if (r.x != 0) d.reads.emplace_back(r.x, 2 * r.N * C);
    else
      for (const range& x : {range(r.words, 2 * r.word_count * C), range(r.places, 2 * r.place_count * C), range(r.word_ids, 4 * r.N),
                             range(r.place_ids, 4 * r.N)})
        d.reads.push_back(x);
    for (std::size_t k = from; k < to; ++k) {
      if (all_[k].joined >= 0) d.also.push_back(all_[k].joined);
      if (k + 1 < to) d.also.push_back(all_[k].step);
    }
    return d;
  }
  static grid clusters(std::int64_t n, int bytes) {
    grid g = per_block(n * gpu::decode_ranks, std::uint32_t(gpu::decode_threads(columns)), bytes);
    g.cluster = gpu::decode_ranks;
    return g;
  }
  /// The kernel of few rows in place of that of one: `Few` has the arguments and the weights as boxes, of rows of K elements and boxes of `box` by `lines`.
  template <class Few, class Half> static void take_few(dispatch& d, std::string_view function, const Half& a) {
    d.code = &fatbins::decode_few_hopper;
    d.function = function;
    Few few{};
    few.half = a;
    d.arguments.resize(sizeof few);
    std::memcpy(d.arguments.data(), &few, sizeof few);
  }
  static tensor_map boxes(std::size_t offset, std::uint64_t at, std::int64_t lines, std::int64_t K, std::uint32_t box,
                          std::uint32_t box_lines) {
    tensor_map m;
    m.argument_offset = std::uint32_t(offset);
    m.address = at;
    m.dims[0] = std::uint64_t(K), m.dims[1] = std::uint64_t(lines);
    m.strides_bytes[0] = std::uint64_t(2 * K);
    m.box[0] = box, m.box[1] = box_lines;
    m.swizzle_bytes = 0;
    return m;
  }
  dispatch attention_half(const layer& l, std::uint64_t from, std::uint64_t to) const {
    const gpu::cached_heads& h = l.attention;
    const std::int32_t N = l.qkv.rows;
    const gpu::decode_attention a{rows_of(l.qkv.norm, from, gpu::decode_groups, N),
                                  l.qkv.b.at,
                                  l.qkv.operands[0].at,
                                  l.projection.b.at,
                                  l.projection.operands[0].at,
                                  h.keys,
                                  h.values,
                                  h.sequence,
                                  h.position,
                                  to,
                                  std::int32_t(h.B),
                                  std::int32_t(h.T),
                                  h.scale};
    const std::int64_t cache = 2 * h.B * h.T * C;
    const std::vector<range> given{{a.weight, 6 * C * C}, {a.bias, 6 * C},   {a.projection, 2 * C * C}, {a.projection_bias, 2 * C},
                                   {a.keys, cache},       {a.values, cache}, {a.sequence, 4 * N},       {a.position, 4 * N}};
    const int bytes = N == 1 ? gpu::decode_attention_bytes(columns) : gpu::decode_few_attention_bytes(columns);
    dispatch d = launch("decode_attention_768", a, clusters(heads, bytes), from == 0 ? first_ : l.at, l.at + 3, given);
    if (N > 1) {
      using few = gpu::decode_few_attention;
      take_few<few>(d, "decode_few_attention_768", a);
      d.maps = {boxes(offsetof(few, boxes.weight), a.weight, 3 * C, C, gpu::decode_box, std::uint32_t(D)),
                boxes(offsetof(few, boxes.projection), a.projection, C, C, gpu::decode_narrow_box, gpu::decode_box)};
    }
    d.writes = {parts_range(to, heads, N), {a.keys, cache}, {a.values, cache}};
    return d;
  }
  dispatch mlp_half(const layer& l, std::uint64_t from, std::uint64_t to) const {
    const std::int32_t N = l.qkv.rows;
    const gpu::decode_mlp a{rows_of(l.up.norm, from, heads, N), l.up.b.at, l.up.operands[0].at, l.down.b.at, l.down.operands[0].at, to};
    const std::vector<range> given{{a.weight, 8 * C * C}, {a.bias, 8 * C}, {a.projection, 8 * C * C}, {a.projection_bias, 2 * C}};
    const int bytes = N == 1 ? gpu::decode_mlp_bytes(columns) : gpu::decode_few_mlp_bytes(columns);
    dispatch d = launch("decode_mlp_768", a, clusters(gpu::decode_groups, bytes), l.at + 3, l.at + 5, given);
    if (N > 1) {
      using few = gpu::decode_few_mlp;
      take_few<few>(d, "decode_few_mlp_768", a);
      d.maps = {boxes(offsetof(few, boxes.weight), a.weight, hidden, C, gpu::decode_box, std::uint32_t(hidden / gpu::decode_groups)),
                boxes(offsetof(few, boxes.projection), a.projection, C, hidden, gpu::decode_box, gpu::decode_box)};
    }
    d.writes = {parts_range(to, gpu::decode_groups, N)};
    return d;
  }
  dispatch logits(std::uint64_t from) const {
    const std::int32_t N = table_.rows;
    const gpu::decode_logits a{rows_of(last_norm_, from, gpu::decode_groups, N), table_.b.at, table_.y, table_.columns};
    grid count = per_block(device_.multiprocessors, gpu::decode_logits_threads,
                           gpu::decode_logits_bytes(columns, N == 1 ? 1 : gpu::decode_most_rows));
    if (N > 1) count.cluster = gpu::decode_few_logits_ranks, count.x -= count.x % count.cluster;
    dispatch d = launch("decode_logits_768", a, count, layers_.back().at + 5, end_, {{a.weight, 2 * C * a.V}});
    if (N > 1) d.code = &fatbins::decode_few_hopper, d.function = "decode_few_logits_768";
    d.writes = {{a.y, 2 * std::int64_t(N) * a.V}};
    return d;
  }
};

}  // namespace isotope::cuda
