#pragma once
/// Fused bodies as SPIR-V modules: straight code for one form, one or four elements an invocation. Bound by bytes.
///
/// The same arithmetic as the interpreter of body.glsl, so that results agree bit for bit; works in constant expressions and at run time.
///
///   push constants   addresses of the operands at 8 k, of the outputs at 64 + 8 k, the number of invocations that work at 112
///   constant 0       invocations of a workgroup
///   workgroups       as cover() spreads them
#include <isotope/backend/vulkan/body_form.hpp>
#include <isotope/backend/vulkan/spirv/formats.hpp>
#include <isotope/kernels/vulkan/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/instructions.hpp>

namespace isotope::vulkan {

/// What the push constants hold.
struct emitted_push {
  std::array<std::uint64_t, max_inputs + max_outputs> at{};
  std::uint32_t invocations = 0, padding = 0;
};

namespace spirv {

class body_emitter {
 public:
  constexpr explicit body_emitter(const body_form& f) : f_(f), b_(f.wide ? 4 : 1) {}

  constexpr std::vector<std::uint32_t> words() {
    const id group_size = b_.specialized_word(0, 64);
    declare_push_constants();
    const id main = b_.fresh();
    b_.code_function(main);
    const id item = item_index(group_size), inside = b_.fresh(), end = b_.fresh();
    const id works = b_.code(176, b_.truth(), {item, push_member(b_.word(), count_member_)});  // ULessThan
    b_.code(247, {end, 0});                                                                    // SelectionMerge
    b_.code(250, {works, inside, end});                                                        // BranchConditional
    b_.code(248, {inside});                                                                    // Label
    element_ = f_.wide ? b_.code(132, b_.word(), {item, b_.constant_word(4)}) : item;
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
  builder b_;
  id push_ = 0, element_ = 0;
  std::uint32_t count_member_ = 0;
  std::array<std::uint32_t, max_inputs + max_outputs> member_{};  // of the push constants
  std::array<id, max_rank> index_{};                              // of the first element, by merged axis
  std::array<id, max_inputs> offset_{};
  std::array<number, max_inputs + max_micros> values_{};
  std::array<number, max_outputs> results_{};

  constexpr id word_code(std::uint32_t op, id a, id b) { return b_.code(op, b_.word(), {a, b}); }
  constexpr id times(id a, std::int64_t n) { return n == 1 ? a : word_code(132, a, b_.constant_word(std::uint32_t(n))); }

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
    const id index = b_.constant_word(member), at = b_.code(65, b_.pointer(9, type), {push_, index});  // AccessChain
    return b_.code(61, type, {at});                                                                    // Load
  }
  constexpr id built_in(std::uint32_t what, std::uint32_t axis, std::uint32_t* variable = nullptr) {
    const id three = b_.vector(b_.word(), 3);
    id v = variable != nullptr ? *variable : 0;
    if (v == 0) {
      v = b_.variable(1, three);
      b_.decorate(v, 11, what);  // BuiltIn
      if (variable != nullptr) *variable = v;
    }
    return b_.extract(b_.word(), b_.code(61, three, {v}), axis);
  }
  constexpr id item_index(id group_size) {
    id group = 0;
    const id x = built_in(26, 0, &group), y = built_in(26, 1, &group);  // WorkgroupId
    const id rows = word_code(132, y, built_in(24, 0));                 // NumWorkgroups
    const id first = word_code(132, word_code(128, x, rows), group_size);
    return word_code(128, first, built_in(27, 0));  // LocalInvocationId
  }
  /// The index of element_ along each merged axis.
  constexpr void take_apart() {
    id rest = element_;
    for (int i = 0; i + 1 < f_.rank; ++i) {
      const id size = b_.constant_word(std::uint32_t(f_.dims[std::size_t(i)])), next = word_code(134, rest, size);  // UDiv
      index_[std::size_t(i)] = word_code(130, rest, word_code(132, next, size));
      rest = next;
    }
    index_[std::size_t(f_.rank - 1)] = rest;
  }
  /// Where element_ lies in operand k. Operands of one memory order share the calculation.
  constexpr id offset(int k) {
    const auto& strides = f_.strides[std::size_t(k)];
    for (int other = 0; other < k; ++other)
      if (f_.read(other) && f_.strides[std::size_t(other)] == strides) return offset_[std::size_t(k)] = offset_[std::size_t(other)];
    id sum = 0;
    for (std::size_t i = 0; i < std::size_t(f_.rank); ++i) {
      if (strides[i] == 0) continue;
      const id part = times(index_[i], strides[i]);
      sum = sum == 0 ? part : word_code(128, sum, part);
    }
    return offset_[std::size_t(k)] = sum == 0 ? b_.constant_word(0) : sum;
  }
  /// A pointer to element `at` of the tensor whose address is the member of the push constants.
  constexpr id place(std::uint32_t member, id at, dtype t, id type) {
    const id wide = b_.integer(64), base = push_member(wide, member);
    const id bytes = b_.code(132, wide, {b_.code(113, wide, {at}), b_.constant_long(std::uint64_t(size_of(t)))});  // IMul, UConvert
    return b_.code(120, b_.pointer(5349, type), {b_.code(128, wide, {base, bytes})});  // ConvertUToPtr, PhysicalStorageBuffer
  }
  constexpr id read(std::uint32_t member, id at, dtype t, id type, std::uint32_t alignment) {
    return b_.code(61, type, {place(member, at, t, type), 2, alignment});  // Aligned
  }
  constexpr void write(std::uint32_t member, id at, dtype t, id type, std::uint32_t alignment, id value) {
    b_.code(62, {place(member, at, t, type), value, 2, alignment});
  }
  /// The type of one element in memory.
  constexpr id stored_type(dtype t) {
    if (t == dtype::f32) return b_.number();
    if (t == dtype::boolean) b_.uses_8_bit_storage();
    else b_.uses_16_bit_storage();
    return b_.integer(t == dtype::boolean ? 8 : 16);
  }
  /// One element, as f32 bits or as the bits of a narrower format in a word.
  constexpr id read_one(std::uint32_t member, id at, dtype t) {
    const id x = read(member, at, t, stored_type(t), std::uint32_t(size_of(t)));
    return t == dtype::f32 ? b_.code(124, b_.word(), {x}) : b_.code(113, b_.word(), {x});
  }
  constexpr id four(id a, id b, id c, id d) { return b_.code(80, b_.lane_word(), {a, b, c, d}); }  // CompositeConstruct
  /// Four elements that follow one another; `at` is a multiple of 4.
  constexpr id read_four(std::uint32_t member, id at, dtype t) {
    if (t == dtype::f32) return b_.code(124, b_.lane_word(), {read(member, at, t, b_.vector(b_.number(), 4), 16)});
    const id pair = read(member, at, t, b_.vector(b_.word(), 2), 8);
    const id x = b_.extract(b_.word(), pair, 0), y = b_.extract(b_.word(), pair, 1), low = b_.constant_word(0xffff),
             shift = b_.constant_word(16);
    return four(word_code(199, x, low), word_code(194, x, shift), word_code(199, y, low), word_code(194, y, shift));
  }
  constexpr number value_of(id bits, dtype t) {
    const word w(b_, bits);
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
    if (f_.quads[std::size_t(k)] == quad::together) return value_of(read_four(member, at, t), t);
    if (f_.quads[std::size_t(k)] == quad::same) {
      const id x = read_one(member, at, t);
      return value_of(four(x, x, x, x), t);
    }
    std::array<id, 4> x{};
    for (std::uint32_t e = 0; e < 4; ++e) {
      const auto step = e * std::uint32_t(f_.strides[std::size_t(k)][0]);
      x[e] = read_one(member, e == 0 ? at : word_code(128, at, b_.constant_word(step)), t);
    }
    return value_of(four(x[0], x[1], x[2], x[3]), t);
  }
  constexpr void run(int j) {
    const micro& m = f_.body[std::size_t(j)];
    std::array<number, 3> x{};
    for (std::size_t k = 0; k < 3; ++k)
      if (m.arg[k] >= 0) x[k] = values_[std::size_t(m.arg[k])];
    const number y = rounded(formulas::result_of(std::uint32_t(instruction_number(m.op)), x[0], x[1], x[2], float(m.scalar)), m.type);
    values_[std::size_t(max_inputs + j)] = y;
    if (m.store >= 0) results_[std::size_t(m.store)] = y;
  }
  constexpr void store(int k) {
    const dtype t = f_.out[std::size_t(k)];
    const auto member = member_[std::size_t(max_inputs + k)];
    number y = results_[std::size_t(k)];
    const bool quads = f_.wide && t != dtype::boolean;
    if (f_.adds(k)) y = y + value_of(quads ? read_four(member, element_, t) : read_lanes(member, t), t);
    if (t == dtype::f32) {
      const id type = b_.lane_number();
      write(member, element_, t, type, f_.wide ? 16 : 4, y.bits);
      return;
    }
    const word bits = t == dtype::bf16  ? bf16_bits(y)
                      : t == dtype::f16 ? f16_bits(y)
                                        : choose((floatBitsToUint(y) & 0x7fffffffu) == 0u, word(0u), word(1u));
    if (!f_.wide) return write_one(member, element_, t, bits.bits);
    std::array<id, 4> x{};
    for (std::uint32_t e = 0; e < 4; ++e) x[e] = b_.extract(b_.word(), bits.bits, e);
    if (t == dtype::boolean) {
      for (std::uint32_t e = 0; e < 4; ++e) write_one(member, e == 0 ? element_ : word_code(128, element_, b_.constant_word(e)), t, x[e]);
      return;
    }
    const auto pair = [&](id low, id high) { return word_code(197, low, word_code(196, high, b_.constant_word(16))); };
    const id two = b_.vector(b_.word(), 2), a = pair(x[0], x[1]), b = pair(x[2], x[3]);
    write(member, element_, t, two, 8, b_.code(80, two, {a, b}));
  }
  constexpr id read_lanes(std::uint32_t member, dtype t) {
    if (!f_.wide) return read_one(member, element_, t);
    std::array<id, 4> x{};
    for (std::uint32_t e = 0; e < 4; ++e) x[e] = read_one(member, e == 0 ? element_ : word_code(128, element_, b_.constant_word(e)), t);
    return four(x[0], x[1], x[2], x[3]);
  }
  constexpr void write_one(std::uint32_t member, id at, dtype t, id bits) {
    const id type = stored_type(t);
    write(member, at, t, type, std::uint32_t(size_of(t)), b_.code(113, type, {bits}));
  }
};

/// The module of a body.
constexpr std::vector<std::uint32_t> emit_body(const body_form& f) { return body_emitter(f).words(); }

}  // namespace spirv
}  // namespace isotope::vulkan
