#pragma once
/// A graph of expressions in which equal expressions share a node, and their PTX instructions.
///
/// Instructions are put in order by what the results need, so equal formulas give equal text: C++ does not specify the order in which a
/// call's arguments are evaluated.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace isotope::cuda::ptx {

using node_index = std::uint32_t;
inline constexpr node_index no_node = ~0u;

enum class operation : std::uint8_t {
  literal,  // the bits of a number or word
  given,    // a register that is there already
  add,
  subtract,
  multiply,
  inverse,
  negate,
  fma,
  square_root,
  exp2,
  converted,     // a word as a number
  through_bf16,  // a number rounded to bf16
  through_f16,
  add_words,
  subtract_words,
  multiply_words,
  both,
  either,
  differing,
  shift_left,
  shift_right,
  less,
  greater,
  words_less,
  words_greater,
  words_equal,
  choose,
};

/// How an operation is written: the instruction, a letter for each operand (n: number, w: word, b: the bits of either, p: predicate) and
/// whether the result is a predicate. Numbers and words share registers of type .b32.
struct spelling {
  std::string_view instruction, operands;
  bool predicate = false;
};
constexpr spelling spelling_of(operation o) {
  switch (o) {
    case operation::add: return {"add.rn.f32", "nn"};
    case operation::subtract: return {"sub.rn.f32", "nn"};
    case operation::multiply: return {"mul.rn.f32", "nn"};
    case operation::inverse: return {"rcp.approx.ftz.f32", "n"};
    case operation::negate: return {"neg.f32", "n"};
    case operation::fma: return {"fma.rn.f32", "nnn"};
    case operation::square_root: return {"sqrt.approx.ftz.f32", "n"};
    case operation::exp2: return {"ex2.approx.ftz.f32", "n"};
    case operation::converted: return {"cvt.rn.f32.u32", "w"};
    case operation::add_words: return {"add.u32", "ww"};
    case operation::subtract_words: return {"sub.u32", "ww"};
    case operation::multiply_words: return {"mul.lo.u32", "ww"};
    case operation::both: return {"and.b32", "ww"};
    case operation::either: return {"or.b32", "ww"};
    case operation::differing: return {"xor.b32", "ww"};
    case operation::shift_left: return {"shl.b32", "ww"};
    case operation::shift_right: return {"shr.u32", "ww"};
    case operation::less: return {"setp.lt.f32", "nn", true};
    case operation::greater: return {"setp.gt.f32", "nn", true};
    case operation::words_less: return {"setp.lt.u32", "ww", true};
    case operation::words_greater: return {"setp.gt.u32", "ww", true};
    case operation::words_equal: return {"setp.eq.u32", "ww", true};
    case operation::choose: return {"selp.b32", "bbp"};
    default: return {};  // more than one instruction, or none
  }
}

struct node {
  operation how = operation::literal;
  std::array<std::uint32_t, 3> of{no_node, no_node, no_node};  // nodes; the bits of a literal; the number of a given register
  constexpr bool operator==(const node&) const = default;
};

class graph {
 public:
  constexpr graph() { first_.fill(no_node); }

  constexpr node_index literal(std::uint32_t bits) { return add({operation::literal, {bits, no_node, no_node}}); }
  constexpr node_index given(std::uint32_t number) { return add({operation::given, {number, no_node, no_node}}); }
  constexpr node_index apply(operation o, node_index a, node_index b = no_node, node_index c = no_node) { return add({o, {a, b, c}}); }

  constexpr const node& at(node_index n) const { return nodes_[n]; }
  constexpr std::size_t size() const { return nodes_.size(); }
  constexpr bool computed(node_index n) const { return nodes_[n].how != operation::literal && nodes_[n].how != operation::given; }

  /// Appends to `order` the nodes that n needs and that are not `placed`, operands first.
  constexpr void place(node_index n, std::vector<std::uint32_t>& placed, std::vector<node_index>& order) const {
    std::vector<node_index> waiting{n};
    while (!waiting.empty()) {
      const node_index top = waiting.back();
      bool ready = true;
      if (computed(top) && placed[top] == 0)
        for (std::size_t i = 3; i > 0; --i)
          if (const node_index a = nodes_[top].of[i - 1]; a != no_node && computed(a) && placed[a] == 0) {
            waiting.push_back(a);
            ready = false;
          }
      if (!ready) continue;
      waiting.pop_back();
      if (!computed(top) || placed[top] != 0) continue;
      placed[top] = 1;
      order.push_back(top);
    }
  }

 private:
  static constexpr std::size_t buckets = 512;
  std::vector<node> nodes_;
  std::array<node_index, buckets> first_{};  // chains of nodes with the same hash
  std::vector<node_index> next_;

  constexpr node_index add(const node& x) {
    std::uint32_t hash = std::uint32_t(x.how);
    for (const auto a : x.of) hash = (hash ^ a) * 0x9e3779b1u ^ (hash >> 15);
    node_index& bucket = first_[hash % buckets];
    for (node_index i = bucket; i != no_node; i = next_[i])
      if (nodes_[i] == x) return i;
    nodes_.push_back(x);
    next_.push_back(bucket);
    return bucket = node_index(nodes_.size() - 1);
  }
};

}  // namespace isotope::cuda::ptx
