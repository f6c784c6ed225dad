#pragma once
/// Emits fused bodies as SPIR-V modules: straight code for one form, one or four elements per invocation. Bound by bytes.
///
/// It has the arithmetic of the interpreter in body.glsl, so that results agree bit for bit. It works in constant expressions and at run time, with
/// equal words: whatever appends to the module is a statement of its own, never beside another in one call.
///
///   push constants   addresses of the operands at 8 k, of the outputs at 64 + 8 k, the number of working invocations at 112
///   constant 0       invocations of a workgroup
///   workgroups       as cover() distributes them
#include <isotope/backend/vulkan/body_form.hpp>
#include <isotope/backend/vulkan/spirv/formats.hpp>
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>

namespace isotope::vulkan {

/// The contents of the push constants.
struct emitted_push {
  std::array<std::uint64_t, max_inputs + max_outputs> at{};
  std::uint32_t invocations = 0, padding = 0;
};

namespace spirv {

class body_emitter {
 public:
  constexpr explicit body_emitter(const body_form& f, std::span<const custom_instruction> custom)
      : f_(f), custom_(custom), b_(f.wide ? 4 : 1), e_(b_) {}

  constexpr std::vector<std::uint32_t> words() {
    const id group_size = b_.specialized_word(0, 64);
    declare_push_constants();
    const id main = b_.fresh();
    b_.code_function(main);
    const id item = item_index(group_size), inside = b_.fresh(), end = b_.fresh();
    const id count = push_member(b_.word(), count_member_), truth = b_.truth();
    const id works = b_.code(176, truth, {item, count});  // ULessThan
    b_.code(247, {end, 0});                               // SelectionMerge
    b_.code(250, {works, inside, end});                   // BranchConditional
    b_.code(248, {inside});                               // Label
    element_ = f_.wide ? times(item, 4) : item;
    take_apart();
    for (int k = 0; k < f_.inputs; ++k)
      if (f_.read(k)) values_[std::size_t(k)] = load(k);
    for (int j = 0; j < f_.instructions; ++j) run(j);
    for (int k = 0; k < f_.outputs; ++k)
      if (results_[std::size_t(k)].in != nullptr) store(k);
    b_.code(249, {end});  // Branch
    b_.code(248, {end});
    b_.code(253, {});  // Return
    b_.code(56, {});   // FunctionEnd
    return b_.module(main, group_size);
  }

 private:
  const body_form& f_;
  std::span<const custom_instruction> custom_;
  builder b_;
  expressions e_;
  id push_ = 0, element_ = 0;
  std::uint32_t count_member_ = 0;
  std::array<std::uint32_t, max_inputs + max_outputs> member_{};  // of the push constants
  std::array<id, max_rank> index_{};                              // index of the first element along each merged axis
  std::array<id, max_inputs> offset_{};
  std::array<number, max_inputs + max_micro_ops> values_{};
  std::array<number, max_outputs> results_{};

  constexpr id sum_of(id a, id b) { return b_.code(128, b_.word(), {a, b}); }
  constexpr id product_of(id a, id b) { return b_.code(132, b_.word(), {a, b}); }
  constexpr id plus(id a, std::int64_t n) { return n == 0 ? a : with_constant(128, a, n); }
  constexpr id times(id a, std::int64_t n) { return n == 1 ? a : with_constant(132, a, n); }
  constexpr id with_constant(std::uint32_t op, id a, std::int64_t n) {
    const id c = b_.constant_word(std::uint32_t(n));
    return b_.code(op, b_.word(), {a, c});
  }

  constexpr void declare_push_constants() {
    std::vector<id> types;
    std::vector<std::uint32_t> places;
    const auto add = [&](id type, std::uint32_t place) {
      types.push_back(type);
      places.push_back(place);
      return std::uint32_t(types.size() - 1);
    };
    for (int k = 0; k < f_.inputs; ++k)
      if (f_.read(k)) member_[std::size_t(k)] = add(b_.integer(64), std::uint32_t(8 * k));
    for (int k = 0; k < f_.outputs; ++k) member_[std::size_t(max_inputs + k)] = add(b_.integer(64), std::uint32_t(8 * (max_inputs + k)));
    count_member_ = add(b_.word(), 8 * (max_inputs + max_outputs));
    const id block = b_.structure(types);
    for (std::size_t i = 0; i < places.size(); ++i) b_.decorate_member(block, std::uint32_t(i), places[i]);
    b_.decorate(block, 2);  // Block
    push_ = b_.variable(9, block);
  }
  constexpr id push_member(id type, std::uint32_t member) {
    const id index = b_.constant_word(member), pointer = b_.pointer(9, type);
    const id at = b_.code(65, pointer, {push_, index});  // AccessChain
    return b_.code(61, type, {at});                      // Load
  }
  /// Declares a variable of three words that the device fills in.
  constexpr id built_in(std::uint32_t what) {
    const id three = b_.vector(b_.word(), 3), v = b_.variable(1, three);
    b_.decorate(v, 11, what);  // BuiltIn
    return b_.code(61, three, {v});
  }
  constexpr id item_index(id group_size) {
    const id groups = built_in(24), group = built_in(26), local = built_in(27);  // NumWorkgroups, WorkgroupId, LocalInvocationId
    const id type = b_.word(), width = b_.extract(type, groups, 0), x = b_.extract(type, group, 0), y = b_.extract(type, group, 1);
    const id before = product_of(y, width), index = sum_of(x, before), first = product_of(index, group_size),
             lane = b_.extract(type, local, 0);
    return sum_of(first, lane);
  }
  /// Computes the index of element_ along each merged axis.
  constexpr void take_apart() {
    id rest = element_;
    for (int i = 0; i + 1 < f_.rank; ++i) {
      const id next = with_constant(134, rest, f_.dims[std::size_t(i)]);  // UDiv
      const id whole = times(next, f_.dims[std::size_t(i)]);
      index_[std::size_t(i)] = b_.code(130, b_.word(), {rest, whole});  // ISub
      rest = next;
    }
    index_[std::size_t(f_.rank - 1)] = rest;
  }
  /// Returns the offset of element_ in operand k. Operands of equal memory order share the computation.
  constexpr id offset(int k) {
    const auto& strides = f_.strides[std::size_t(k)];
    for (int other = 0; other < k; ++other)
      if (f_.read(other) && f_.strides[std::size_t(other)] == strides) return offset_[std::size_t(k)] = offset_[std::size_t(other)];
    id sum = 0;
    for (std::size_t i = 0; i < std::size_t(f_.rank); ++i) {
      if (strides[i] == 0) continue;
      const id part = times(index_[i], strides[i]);
      sum = sum == 0 ? part : sum_of(sum, part);
    }
    return offset_[std::size_t(k)] = sum == 0 ? b_.constant_word(0) : sum;
  }
  /// Returns a pointer to element `at` of the tensor whose address is the given member of the push constants.
  constexpr id place(std::uint32_t member, id at, dtype t, id type) {
    const id wide = b_.integer(64), base = push_member(wide, member), size = b_.constant_long(std::uint64_t(size_of(t)));
    const id index = b_.code(113, wide, {at}), bytes = b_.code(132, wide, {index, size}), sum = b_.code(128, wide, {base, bytes});
    const id pointer = b_.pointer(5349, type);  // PhysicalStorageBuffer
    return b_.code(120, pointer, {sum});        // ConvertUToPtr
  }
  constexpr id read(std::uint32_t member, id at, dtype t, id type, std::uint32_t alignment) {
    const id from = place(member, at, t, type);
    return b_.code(61, type, {from, 2, alignment});  // Aligned
  }
  constexpr void write(std::uint32_t member, id at, dtype t, id type, std::uint32_t alignment, id value) {
    const id to = place(member, at, t, type);
    b_.code(62, {to, value, 2, alignment});
  }
  /// Returns the type of one element in memory.
  constexpr id stored_type(dtype t) {
    if (t == dtype::f32) return b_.number();
    if (t == dtype::boolean) b_.uses_8_bit_storage();
    else b_.uses_16_bit_storage();
    return b_.integer(t == dtype::boolean ? 8 : 16);
  }
  /// Reads one element, as f32 bits or as the bits of a narrower format in a word.
  constexpr id read_one(std::uint32_t member, id at, dtype t) {
    const id x = read(member, at, t, stored_type(t), std::uint32_t(size_of(t)));
    return t == dtype::f32 ? b_.code(124, b_.word(), {x}) : b_.code(113, b_.word(), {x});
  }
  using quadruple = std::array<id, 4>;
  constexpr id four(const quadruple& x) { return b_.code(80, b_.lane_word(), x); }  // CompositeConstruct
  /// Reads four consecutive elements; `at` is a multiple of 4.
  constexpr id read_four(std::uint32_t member, id at, dtype t) {
    if (t == dtype::f32) {
      const id x = read(member, at, t, b_.vector(b_.number(), 4), 16);
      return b_.code(124, b_.lane_word(), {x});
    }
    const id pair = read(member, at, t, b_.vector(b_.word(), 2), 8);
    quadruple x{};
    for (std::uint32_t e = 0; e < 2; ++e) {
      const id both = b_.extract(b_.word(), pair, e);
      x[2 * e] = with_constant(199, both, 0xffff);  // BitwiseAnd
      x[2 * e + 1] = with_constant(194, both, 16);  // ShiftRightLogical
    }
    return four(x);
  }
  constexpr id read_strided(std::uint32_t member, id at, std::int64_t stride, dtype t) {
    quadruple x{};
    for (std::uint32_t e = 0; e < 4; ++e) {
      const id place_of = plus(at, e * stride);
      x[e] = read_one(member, place_of, t);
    }
    return four(x);
  }
  constexpr number value_of(id bits, dtype t) {
    const word w(e_, e_.given(lane_kind::word, bits));
    switch (t) {
      case dtype::bf16: return bf16_value(w);
      case dtype::f16: return f16_value(w);
      case dtype::boolean: return choose(w == 0u, number(0.0f), number(1.0f));
      default: return uintBitsToFloat(w);
    }
  }
  constexpr number load(int k) {
    const dtype t = f_.in[std::size_t(k)];
    const auto member = member_[std::size_t(k)];
    const id at = offset(k);
    if (!f_.wide) return value_of(read_one(member, at, t), t);
    if (f_.quads[std::size_t(k)] == quad::contiguous) return value_of(read_four(member, at, t), t);
    if (f_.quads[std::size_t(k)] == quad::strided) return value_of(read_strided(member, at, f_.strides[std::size_t(k)][0], t), t);
    const id x = read_one(member, at, t);
    return value_of(four({x, x, x, x}), t);
  }
  constexpr void run(int j) {
    const micro_op& m = f_.body[std::size_t(j)];
    std::array<number, 3> x{};
    for (std::size_t k = 0; k < 3; ++k)
      if (m.arg[k] >= 0) x[k] = values_[std::size_t(m.arg[k])];
    const number y = rounded(result_of(m, x), m.type);
    e_.value(y.of(e_));  // in the order of the body
    values_[std::size_t(max_inputs + j)] = y;
    if (m.store >= 0) results_[std::size_t(m.store)] = y;
  }
  constexpr number result_of(const micro_op& m, const std::array<number, 3>& x) const {
    const number k = float(m.scalar);
    for (const custom_instruction& custom : custom_)
      if (custom.op == m.op) return custom.result(x[0], x[1], x[2], k);
    return formulas::result_of(instruction_code(m.op, m.type), x[0], x[1], x[2], k);
  }
  constexpr void store(int k) {
    const dtype t = f_.out[std::size_t(k)];
    const auto member = member_[std::size_t(max_inputs + k)];
    number y = results_[std::size_t(k)];
    if (f_.adds(k)) {
      const bool quads = f_.wide && t != dtype::boolean;
      const id there = quads     ? read_four(member, element_, t)
                       : f_.wide ? read_strided(member, element_, 1, t)
                                 : read_one(member, element_, t);
      y = y + value_of(there, t);
    }
    if (t == dtype::f32) {
      const id x = e_.value(y.bits);
      write(member, element_, t, b_.lane_number(), f_.wide ? 16 : 4, x);
      return;
    }
    const word stored = t == dtype::bf16  ? bf16_bits(y)
                        : t == dtype::f16 ? f16_bits(y)
                                          : choose((floatBitsToUint(y) & 0x7fffffffu) == 0u, word(0u), word(1u));
    const id bits = e_.value(stored.bits);
    if (!f_.wide) return write_one(member, element_, t, bits);
    quadruple x{};
    for (std::uint32_t e = 0; e < 4; ++e) x[e] = b_.extract(b_.word(), bits, e);
    if (t == dtype::boolean) {
      for (std::uint32_t e = 0; e < 4; ++e) {
        const id at = plus(element_, e);
        write_one(member, at, t, x[e]);
      }
      return;
    }
    std::array<id, 2> pair{};
    for (std::size_t e = 0; e < 2; ++e) {
      const id high = with_constant(196, x[2 * e + 1], 16);  // ShiftLeftLogical
      pair[e] = b_.code(197, b_.word(), {x[2 * e], high});   // BitwiseOr
    }
    const id two = b_.vector(b_.word(), 2), both = b_.code(80, two, pair);
    write(member, element_, t, two, 8, both);
  }
  constexpr void write_one(std::uint32_t member, id at, dtype t, id bits) {
    const id type = stored_type(t), x = b_.code(113, type, {bits});  // UConvert
    write(member, at, t, type, std::uint32_t(size_of(t)), x);
  }
};

/// Returns the module of a body.
constexpr std::vector<std::uint32_t> emit_body(const body_form& f, std::span<const custom_instruction> custom = {}) {
  return body_emitter(f, custom).words();
}

}  // namespace spirv
}  // namespace isotope::vulkan
