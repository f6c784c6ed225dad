#pragma once
/// Inference programs that store weights in fewer bits: this saves their bytes. In f32 programs 16, 8 or 4 bits, and activations and sums stay f32; in bf16
/// programs 8 or 4 bits, whose elements are rounded to bf16 when they are multiplied.
#include <string_view>

#include "../core/tape.hpp"
#include "layout.hpp"

namespace isotope {

/// Chooses the format that a weight is stored in: f32, f16, bf16, q8_0 or q4_0, in a bf16 program bf16, q8_0 or q4_0. It is asked for every parameter of two axes that only matmuls (as right
/// operand) and embeddings (as table) read. Session::write and initialize round to it; write refuses a number beyond its range. q8_0 and q4_0 are for weights
/// (N, K) that matmuls read as (K, N), K a multiple of 32; a table that only embeddings read stays in the program's format.
using weight_storage = dtype (*)(std::string_view path, const shape& dims);

namespace weights {
constexpr dtype f16(std::string_view, const shape&) { return dtype::f16; }
constexpr dtype bf16(std::string_view, const shape&) { return dtype::bf16; }
constexpr dtype q8_0(std::string_view, const shape&) { return dtype::q8_0; }
constexpr dtype q4_0(std::string_view, const shape&) { return dtype::q4_0; }

/// The policy of a name: f16, bf16, q8_0 or q4_0; null: the program's own format, for any other name.
constexpr weight_storage named(std::string_view name) {
  for (const weight_storage of : {f16, bf16, q8_0, q4_0})
    if (name == name_of(of({}, {}))) return of;
  return nullptr;
}
}  // namespace weights

namespace plan_detail {

/// Whether every reader of a parameter accepts it in another format than that of its own result.
constexpr bool storable(const trace& g, std::int32_t param) {
  if (g.values[std::size_t(param)].dims.rank != 2) return false;
  for (const auto& n : g.nodes) {
    if (n.dead || n.op->kind == op_kind::view) continue;
    for (int k = 0; k < n.inputs(); ++k)
      if (g.root(n.in[std::size_t(k)]) == param && k != n.op->weight) return false;
  }
  return true;
}

/// The constants that the shape rule of n derives from the formats of its operands.
constexpr void infer_again(const trace& g, node& n) {
  shape_rule r(g, {n.in.data(), std::size_t(n.inputs())}, n.attr);
  n.rules->infer(r);
  if (!r.failed()) n.attr = r.attr;
}

/// How a parameter is read, as far as blocks along its last axis go.
struct block_readers {
  bool products = false;             // a matmul reads it
  bool whole_rows = true;            // every op reads all of it, and matmuls sum along its last axis
  const op_info* without = nullptr;  // an op whose kernel does not read blocks
};
constexpr block_readers block_readers_of(const trace& g, std::int32_t param, std::span<const kernel_info> table) {
  block_readers r;
  const value& p = g.values[std::size_t(param)];
  for (const auto& n : g.nodes) {
    if (n.dead || n.op->weight < 0) continue;
    const auto w = n.in[std::size_t(n.op->weight)];
    if (g.root(w) != param) continue;
    const value& x = g.values[std::size_t(w)];
    const bool product = n.op->runs_gemms;
    const auto last = std::size_t(product ? 0 : 1), first = 1 - last;  // axes of x that should be those of the parameter
    r.products = r.products || product;
    r.whole_rows = r.whole_rows && x.dims.rank == 2 && g.root_offset(w) == 0 && x.dims[int(last)] == p.dims[1] &&
                   x.dims[int(first)] == p.dims[0] && x.strides[last] == 1 && x.strides[first] == p.dims[1];
    const auto kernel = find_kernel(table, n.op, g.program);
    if (r.without == nullptr && (kernel < 0 || !table[std::size_t(kernel)].reads_blocks)) r.without = n.op;
  }
  return r;
}

/// What is wrong with storing a parameter in blocks; empty if nothing is.
constexpr message cannot_block(const trace& g, const parameter& p, dtype type, const block_readers& of, std::string_view backend) {
  const shape& dims = g.values[std::size_t(p.value)].dims;
  message m;
  if (of.without != nullptr)
    return m << "weights in " << name_of(type) << ": the kernel of " << of.without->name << " on " << backend
             << " does not read them; store f16 or bf16, or use the cpu backend";
  if (!of.whole_rows)
    return m << '\'' << p.path << "' " << dims << " cannot be stored in " << name_of(type)
             << ": a matmul does not sum along its last axis, or reads a part of it; choose f16 or bf16";
  if (dims[1] % quantized::block != 0)
    return m << '\'' << p.path << "' " << dims << " cannot be stored in " << name_of(type) << ": its rows have " << dims[1]
             << " elements, not a multiple of " << quantized::block << "; choose f16 or bf16";
  return m;
}

}  // namespace plan_detail

/// Retypes the weights that `choose` names, before they are gathered. Results keep the formats that they were traced with.
///
/// @param table  the kernels of the target on `backend`, which say what reads weights in blocks
constexpr void store_weights(tape& t, weight_storage choose, std::span<const kernel_info> table, std::string_view backend) {
  trace& g = t.g;
  if (choose == nullptr || !t.ok()) return;
  message m;
  const bool wide = g.program == dtype::f32, half = g.program == dtype::bf16;
  if (!wide && !half)
    return t.fail(m << "weights of a " << name_of(g.program) << " program are stored in " << name_of(g.program)
                    << ": another format is for f32 and bf16 programs",
                  place::current());
  for (const auto& p : g.params) {
    if (!plan_detail::storable(g, p.value)) continue;
    const dtype type = choose(p.path.view(), g.values[std::size_t(p.value)].dims);
    if (half && type != dtype::bf16 && !in_blocks(type))
      return t.fail(m << '\'' << p.path << "' cannot be stored in " << name_of(type)
                      << ": weights of a bf16 program are stored in bf16, q8_0 or q4_0",
                    place::current());
    if (type != dtype::f32 && type != dtype::f16 && type != dtype::bf16 && !in_blocks(type))
      return t.fail(m << '\'' << p.path << "' cannot be stored in " << name_of(type) << ": choose f32, f16, bf16, q8_0 or q4_0",
                    place::current());
    if (in_blocks(type)) {
      const auto of = plan_detail::block_readers_of(g, p.value, table);
      if (!of.products) continue;
      if (const auto wrong = plan_detail::cannot_block(g, p, type, of, backend); !wrong.empty()) return t.fail(wrong, place::current());
    }
    for (std::size_t v = 0; v < g.values.size(); ++v)
      if (g.root(std::int32_t(v)) == p.value) g.values[v].type = type;
    for (auto& n : g.nodes)
      if (!n.dead && n.op->weight >= 0 && g.root(n.in[std::size_t(n.op->weight)]) == p.value) plan_detail::infer_again(g, n);
  }
}

/// Marks the products with weights in blocks, so that their kernels round activations to 8 bits (quantized::round_activations).
constexpr void round_activations(tape& t) {
  if (!t.ok()) return;
  bool any = false;
  for (node& n : t.g.nodes) {
    if (n.dead || n.rules->set_a8 == nullptr || n.op->weight < 0) continue;
    if (!in_blocks(t.g.values[std::size_t(n.in[std::size_t(n.op->weight)])].type)) continue;
    n.rules->set_a8(n.attr);
    any = true;
  }
  message m;
  if (!any)
    t.fail(m << "a8 rounds the activations of products with weights in q8_0 or q4_0, and there are none: store weights so",
           place::current());
}

}  // namespace isotope
