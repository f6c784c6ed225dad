#pragma once
/// A step of decoding of one row of a GPT in bf16 as one dispatch (native/decode_step.comp): finds it among dispatches that are recorded already, five a layer and the last
/// norm with the logits. Results have the bits of separate dispatches.
#include <bit>
#include <optional>

#include <isotope/kernels/vulkan/attention/cached.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/kernels/vulkan/gemm/push.hpp>
#include <isotope/shaders/decode_step.hpp>

namespace isotope::vulkan {

/// Mirrors decode/step.glsl.
struct decode_step_push {
  std::uint64_t layers = 0, words = 0, runs = 0, x = 0, norm_weight = 0, norm_bias = 0, table = 0, logits = 0, sequence = 0, position = 0;
  std::uint32_t V = 0, B = 0, T = 0;
  float scale = 0, epsilon = 0;
};

class decode_whole_step {
 public:
  /// `kept`: bytes that are read after the run.
  decode_whole_step(const std::vector<dispatch>& all, const range& kept, const device_limits& device) : all_(all), device_(device) {
    if (device.step_workgroups == 0 || !shaders::decode_step.there()) return;
    for (first_ = 0; first_ < all.size() && layers_.empty(); ++first_)
      if (find(first_) && (!fits() || !alone(kept))) layers_.clear();
    --first_;
  }
  bool found() const { return !layers_.empty(); }
  /// Layers, width, and width of the MLP.
  std::array<std::int64_t, 3> sizes() const { return {std::int64_t(layers_.size()), C(), hidden()}; }
  /// Bytes of memory in which workgroups pass rows on. They are zeros before the first run, and only whole steps of these sizes may use them.
  std::int64_t words_bytes() const { return 4 * (std::int64_t(layers_.size()) * (6 * C() + hidden()) + device_.step_workgroups); }

  /// Replaces the dispatches in `to`, those that were searched. `words`: memory of words_bytes.
  void join(std::vector<dispatch>& to, std::uint64_t words, recording& r) const {
    const std::size_t end = first_ + 5 * layers_.size() + 1;
    const attention_cached_push& a = layers_[0].attention;
    std::vector<std::uint64_t> table;
    for (const layer& l : layers_)
      for (const std::uint64_t at :
           {l.qkv.c, bias_of_norm(l.qkv), l.qkv.b, l.qkv_bias, l.attention.keys, l.attention.values, l.projection.b, l.projection_bias,
            l.up.c, bias_of_norm(l.up), l.up.b, l.up_bias, l.down.b, l.down_bias})
        table.push_back(at);
    decode_step_push push;
    push.layers = r.keep(std::span<const std::uint64_t>(table));
    push.words = words;
    push.runs = words + std::uint64_t(words_bytes() - 4 * std::int64_t(device_.step_workgroups));
    push.x = layers_[0].qkv.a, push.norm_weight = head_.c, push.norm_bias = bias_of_norm(head_), push.table = head_.b,
    push.logits = head_.y;
    push.sequence = a.sequence, push.position = a.position;
    push.V = head_.N, push.B = a.B, push.T = a.T, push.scale = a.scale, push.epsilon = epsilon_;

    std::vector<range> reads{range(push.x, 2 * C())}, writes{range(words, words_bytes()), range(push.logits, 2 * std::int64_t(push.V))};
    for (std::size_t i = first_; i < end; ++i) {
      for (const range& x : all_[i].reads)
        if (!passed_on(x)) reads.push_back(x);
      for (const range& x : all_[i].writes)
        if (is_cache(x)) writes.push_back(x);
    }
    enter_set(r, isotope::kernels::native::name);
    r.step = all_[end - 1].step, r.joined = all_[end - 1].joined;
    dispatch& d = r.add(shaders::decode_step,
                        constants{invocations(), device_.subgroup}
                            .add(C())
                            .add(hidden())
                            .add(std::uint32_t(a.H))
                            .add(std::uint32_t(C() / a.H))
                            .add(std::uint32_t(layers_.size()))
                            .add(device_.step_workgroups)
                            .add(split_),
                        push, {device_.step_workgroups, 1, 1}, std::move(reads), std::move(writes));
    d.subgroup = device_.subgroup;
    to.erase(to.begin() + std::ptrdiff_t(first_), to.begin() + std::ptrdiff_t(end));
    to.insert(to.begin() + std::ptrdiff_t(first_), std::move(d));
    r.dispatches.pop_back();
  }

 private:
  struct layer {
    matmul_push qkv, projection, up, down;
    std::uint64_t qkv_bias, projection_bias, up_bias, down_bias;
    attention_cached_push attention;
  };
  static constexpr std::size_t body = 28;  // the first constant of a product's body
  static constexpr std::uint32_t bf16 = std::uint32_t(dtype::bf16), product = 24;
  static constexpr std::int64_t readers = 256;    // invocations that read keys, and as many values
  static constexpr std::uint32_t most_held = 4;   // pieces of a line of each product that an invocation holds in registers
  static constexpr std::uint32_t subgroups = 24;  // of a workgroup: as many lines as it has of the largest product of GPT-2 124M
  const std::vector<dispatch>& all_;
  const device_limits& device_;
  std::vector<layer> layers_;
  std::size_t first_ = 0;
  matmul_push head_;
  float epsilon_ = 0;
  std::uint32_t split_ = 1;  // subgroups that share a line of the last product of a layer

  std::int64_t C() const { return layers_[0].qkv.K; }
  std::int64_t hidden() const { return layers_[0].up.N; }
  std::uint32_t invocations() const {
    return std::max(std::min(subgroups, device_.invocations / device_.subgroup / 4 * 4) * device_.subgroup, std::uint32_t(2 * readers));
  }
  static std::uint64_t bias_of_norm(const matmul_push& p) { return p.a_outer | std::uint64_t(p.a_inner) << 32; }

  static std::uint32_t constant(const dispatch& d, std::size_t id) {
    return id < d.specialization.words().size() ? d.specialization.words()[id] : 0;
  }
  template <class Push> static Push push_of(const dispatch& d) {
    Push p;
    std::memcpy(static_cast<void*>(&p), d.push.data(), sizeof p);
    return p;
  }
  /// Instruction j of a product's body: whether it is `code` of bf16 numbers, of which `a` is one, and stored if it is the last. Returns the other operand.
  static std::optional<std::uint32_t> instruction(const dispatch& d, std::size_t j, std::uint32_t code, std::uint32_t a, bool last) {
    const std::uint32_t w = constant(d, body + 60 + 2 * j), x = (w >> 15) & 31u, y = (w >> 20) & 31u;
    if ((w & 255u) != code || ((w >> 8) & 15u) != bf16 || ((w >> 12) & 7u) != (last ? 1u : 0u) || (x != a && y != a)) return {};
    return x == a ? y : x;
  }
  /// The address of operand k of a body, a row of bf16; 0 if it is no such row.
  static std::uint64_t row_operand(const dispatch& d, std::uint32_t k) {
    if (k < 2 || k > 4 || ((constant(d, body + 2) >> (4 * k)) & 15u) != bf16 || constant(d, body + 12 + 6 * k) != 1) return 0;
    std::array<std::uint64_t, 3> near{};
    std::memcpy(near.data(), d.push.data() + sizeof(matmul_push), sizeof near);
    return near[k - 2];
  }
  /// A product of one row of `depth` elements, with a norm before it or without; `steps`: the instructions of its body.
  std::optional<matmul_push> product_at(std::size_t i, bool norm, std::uint32_t steps) {
    if (i >= all_.size()) return {};
    const dispatch& d = all_[i];
    const std::string_view name = d.code->name, end = steps == 0 ? "plain" : "few";
    if (name != std::string(norm ? "matmul_rows_norm_" : "matmul_rows_") + std::string(end)) return {};
    const auto is = [&](std::size_t id, std::uint32_t x) { return constant(d, id) == x; };
    const matmul_push p = push_of<matmul_push>(d);
    const bool plain = is(2, bf16) && is(3, bf16) && is(4, 0) && is(5, 0) && is(7, 0) && is(8, bf16) && is(9, bf16) && is(11, 0) &&
                       is(12, std::bit_cast<std::uint32_t>(1.0f)) && is(13, 0) && is(19, 1);
    if (!plain || p.batches != 1 || p.parts != 1 || p.b_line != p.K || d.subgroup != device_.subgroup) return {};
    if (norm && !(is(22, 1) && is(23, bf16) && is(24, 1) && is(27, 0))) return {};
    if (steps > 0 && !(is(body, steps) && is(body + 3, bf16) && is(body + 4, 1) && constant(d, body + 6) <= 1)) return {};
    if (norm && epsilon_ != 0 && !is(26, std::bit_cast<std::uint32_t>(epsilon_))) return {};
    if (norm) epsilon_ = std::bit_cast<float>(constant(d, 26));
    return p;
  }
  /// The bias that a product adds; then it adds the residual x, unless `code` is another instruction.
  std::uint64_t bias_at(std::size_t i, std::uint32_t steps, std::uint32_t code, std::uint64_t x) const {
    const dispatch& d = all_[i];
    const auto first = instruction(d, 0, 0, product, steps == 1);
    if (!first) return 0;
    std::uint64_t bias = row_operand(d, *first);
    if (steps == 1) return bias;
    const auto second = instruction(d, 1, code, 8, true);
    if (!second || code != 0) return second ? bias : 0;
    std::uint64_t residual = row_operand(d, *second);
    if (residual != x) std::swap(residual, bias);
    return residual == x && bias != x ? bias : 0;
  }
  std::optional<layer> layer_at(std::size_t i, std::uint64_t x) {
    constexpr std::uint32_t gelu = instruction_code(&info<op::gelu_tanh>, dtype::bf16);
    const auto qkv = product_at(i, true, 1), projection = product_at(i + 2, false, 2), up = product_at(i + 3, true, 2),
               down = product_at(i + 4, false, 2);
    if (!qkv || !projection || !up || !down || all_[i + 1].code->name != std::string_view("attention_cached")) return {};
    const dispatch& attend = all_[i + 1];
    layer l{*qkv, *projection, *up, *down, bias_at(i, 1, 0, 0), 0, bias_at(i + 3, 2, gelu, 0), 0, push_of<attention_cached_push>(attend)};
    const attention_cached_push& a = l.attention;
    const std::uint32_t C = l.qkv.K, H = l.up.N;
    l.projection_bias = bias_at(i + 2, 2, 0, l.qkv.a);
    l.down_bias = bias_at(i + 4, 2, 0, l.projection.y);
    const bool sizes = l.qkv.N == 3 * C && l.projection.K == C && l.projection.N == C && l.up.K == C && l.down.K == H && l.down.N == C;
    const bool follows = (x == 0 || l.qkv.a == x) && a.q == l.qkv.y && a.new_key == a.q + 2 * C && a.new_value == a.q + 4 * C &&
                         l.projection.a == a.y && l.up.a == l.projection.y && l.down.a == l.up.y;
    const auto is = [&](std::size_t id, std::uint32_t value) { return constant(attend, id) == value; };
    const bool attends = is(0, std::uint32_t(readers)) && is(2, bf16) && is(3, bf16) && is(4, C / std::max(a.H, 1u)) && is(5, 1) &&
                         is(7, 8) && is(8, 1) && is(9, 0) && is(10, 1) && a.N == 1 && a.H == a.G && C % std::max(a.H, 1u) == 0 &&
                         a.window == 0;
    const bool biased = l.qkv_bias != 0 && l.projection_bias != 0 && l.up_bias != 0 && l.down_bias != 0;
    if (!sizes || !follows || !attends || !biased || constant(all_[i + 2], 22) != 1) return {};
    split_ = constant(all_[i + 4], 22);
    return l;
  }
  /// Finds a step that begins with dispatch i.
  bool find(std::size_t i) {
    layers_.clear();
    epsilon_ = 0;
    for (std::size_t at = i; at + 5 < all_.size(); at += 5) {
      const auto l = layer_at(at, layers_.empty() ? 0 : layers_.back().down.y);
      if (!l || (!layers_.empty() && !alike(*l, layers_[0]))) break;
      layers_.push_back(*l);
    }
    if (layers_.empty()) return false;
    const auto head = product_at(i + 5 * layers_.size(), true, 0);
    if (!head || head->K != C() || head->a != layers_.back().down.y) layers_.clear();
    else head_ = *head;
    return found();
  }
  static bool alike(const layer& l, const layer& m) {
    const attention_cached_push &a = l.attention, &b = m.attention;
    return l.qkv.K == m.qkv.K && l.up.N == m.up.N && a.H == b.H && a.T == b.T && a.B == b.B && a.sequence == b.sequence &&
           a.position == b.position && a.scale == b.scale;
  }
  bool fits() const {
    const std::uint32_t c = std::uint32_t(C()), h = std::uint32_t(hidden()), pieces = c / layers_[0].attention.H / 8,
                        step = 8 * device_.subgroup, n = invocations(), teams = n / device_.subgroup;
    const bool divides = c % 8 == 0 && h % 8 == 0 && c <= h && pieces >= 8 && std::has_single_bit(pieces) &&
                         device_.subgroup % pieces == 0 && teams % split_ == 0 && n % device_.subgroup == 0;
    const std::int64_t shared = 4 * c + 4 * h + 4 * teams + std::int64_t(8 * 14 * layers_.size()) + 12 * 8 * pieces + 36 * readers +
                                12 * readers / std::max(pieces, 1u) + 8;
    return divides && n <= device_.invocations && shared <= device_.shared_bytes && (c + step - 1) / step <= most_held &&
           (h + split_ * step - 1) / (split_ * step) <= most_held;
  }
  bool is_cache(const range& x) const {
    return std::any_of(layers_.begin(), layers_.end(),
                       [&](const layer& l) { return x.first == l.attention.keys || x.first == l.attention.values; });
  }
  /// Whether dispatches of the step write these bytes for later ones of it.
  bool passed_on(const range& x) const {
    for (std::size_t i = first_; i < first_ + 5 * layers_.size(); ++i)
      for (const range& w : all_[i].writes)
        if (!is_cache(w) && w.overlaps(x)) return true;
    return false;
  }
  /// Whether nothing but the step reads what its dispatches write, but for the caches and the logits.
  bool alone(const range& kept) const {
    const std::size_t end = first_ + 5 * layers_.size() + 1;
    for (std::size_t i = first_; i + 1 < end; ++i)
      for (const range& w : all_[i].writes) {
        if (is_cache(w)) continue;
        if (w.overlaps(kept)) return false;
        bool overwritten = false;
        for (std::size_t k = end; k < all_.size() && !overwritten; ++k) {
          for (const range& x : all_[k].reads)
            if (x.overlaps(w)) return false;
          for (const range& x : all_[k].writes) overwritten = overwritten || (x.first <= w.first && w.end <= x.end);
        }
      }
    return true;
  }
};

}  // namespace isotope::vulkan
