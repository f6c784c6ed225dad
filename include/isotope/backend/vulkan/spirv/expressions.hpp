#pragma once
/// A graph of expressions in which equal expressions share a node. Instructions are appended to the module only for what a result needs.
///
/// So the order of instructions depends on the results alone. C++ does not specify the order in which a call's arguments are evaluated: a formula that
/// appended instructions while it is evaluated could give other words in a constant expression than at run time.
#include "builder.hpp"

namespace isotope::vulkan::spirv {

enum class lane_kind : std::uint8_t { number, word, flag };
using node_index = std::uint32_t;

class expressions {
 public:
  constexpr explicit expressions(builder& b) : b_(b), first_(buckets, none) { nodes_.reserve(1024); }

  constexpr node_index literal(lane_kind k, std::uint32_t bits) { return add({form::literal, k, 0, 0, {bits}}); }
  /// A value that is in the module already.
  constexpr node_index given(lane_kind k, id value) { return add({form::given, k, 0, 0, {value}}); }
  constexpr node_index apply(std::uint32_t op, lane_kind k, node_index a, node_index b = none, node_index c = none) {
    return add({form::plain, k, op, arguments(b, c), {a, b, c}});
  }
  constexpr node_index arithmetic(std::uint32_t op, node_index a, node_index b = none) {
    return add({form::arithmetic, lane_kind::number, op, arguments(b, none), {a, b, none}});
  }
  constexpr node_index extended(std::uint32_t op, node_index a, node_index b = none, node_index c = none) {
    return add({form::extended, lane_kind::number, op, arguments(b, c), {a, b, c}});
  }

  /// Appends the instructions that node n still needs; returns its id.
  constexpr id value(node_index n) {
    std::vector<node_index> waiting{n};
    while (!waiting.empty()) {
      const node_index top = waiting.back();
      bool ready = true;
      for (std::uint32_t i = nodes_[top].n; i > 0; --i)
        if (const auto a = nodes_[top].argument[i - 1]; nodes_[a].value == 0) {
          waiting.push_back(a);
          ready = false;
        }
      if (!ready) continue;
      waiting.pop_back();
      if (nodes_[top].value == 0) nodes_[top].value = append(nodes_[top]);
    }
    return nodes_[n].value;
  }

 private:
  static constexpr node_index none = ~0u;
  static constexpr std::size_t buckets = 512;
  enum class form : std::uint8_t { literal, given, plain, arithmetic, extended };
  struct node {
    form how = form::literal;
    lane_kind kind = lane_kind::number;
    std::uint32_t op = 0, n = 0;
    std::uint32_t argument[3]{none, none, none};  // nodes; the bits of a literal; the id of a given value
    node_index next = none;                       // the next node with the same hash
    id value = 0;
    constexpr bool same(const node& o) const {
      return how == o.how && kind == o.kind && op == o.op && argument[0] == o.argument[0] && argument[1] == o.argument[1] &&
             argument[2] == o.argument[2];
    }
  };
  builder& b_;
  std::vector<node> nodes_;
  std::vector<node_index> first_;

  static constexpr std::uint32_t arguments(node_index b, node_index c) { return c != none ? 3 : b != none ? 2 : 1; }
  constexpr node_index add(const node& x) {
    std::uint32_t hash = std::uint32_t(x.how) * 7 + std::uint32_t(x.kind) * 3 + x.op;
    for (const auto a : x.argument) hash = (hash ^ a) * 0x9e3779b1u ^ (hash >> 15);
    auto& bucket = first_[hash % buckets];
    for (node_index i = bucket; i != none; i = nodes_[i].next)
      if (nodes_[i].same(x)) return i;
    const auto at = node_index(nodes_.size());
    nodes_.push_back(x);
    nodes_[at].next = bucket;
    bucket = at;
    return at;
  }
  constexpr id append(const node& x) {
    if (x.how == form::given) return x.argument[0];
    const id type = x.kind == lane_kind::number ? b_.lane_number() : x.kind == lane_kind::word ? b_.lane_word() : b_.lane_truth();
    if (x.how == form::literal) return b_.lane_constant(x.kind == lane_kind::number ? b_.number() : b_.word(), x.argument[0]);
    std::array<id, 3> a{};
    for (std::uint32_t i = 0; i < x.n; ++i) a[i] = nodes_[x.argument[i]].value;
    const std::span<const id> operands(a.data(), x.n);
    return x.how == form::plain        ? b_.code(x.op, type, operands)
           : x.how == form::arithmetic ? b_.arithmetic(x.op, type, operands)
                                       : b_.extended(x.op, type, operands);
  }
};

}  // namespace isotope::vulkan::spirv
