#pragma once
/// Emits fused bodies as PTX: straight code for one form; a thread computes 1, 4 or 8 consecutive elements. Bound by bytes.
///
/// It has the arithmetic of the interpreter in device/body.cuh, so that results agree bit for bit. It works in constant expressions and at
/// run time, with equal text. The kernel is `elementwise` and takes emitted_arguments. A thread reads all operands before it stores, so
/// outputs may overwrite operands.
#include <vector>

#include <isotope/backend/cuda/body_form.hpp>
#include <isotope/backend/cuda/ptx/text.hpp>
#include <isotope/kernels/cuda/body/emitted_formulas.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>

namespace isotope::cuda {

/// The arguments of an emitted kernel.
struct emitted_arguments {
  std::array<std::uint64_t, max_inputs + max_outputs> at{};  // addresses of the operands, then of the outputs
  std::int64_t threads = 0;                                  // that have work
};

/// A generated kernel and the elements that a thread of it computes.
struct emitted_body {
  std::vector<char> ptx;
  int width = 1;
};

namespace ptx {

class body_emitter {
 public:
  constexpr body_emitter(const body_form& f, std::span<const custom_instruction> custom) : f_(f), custom_(custom) {}

  constexpr emitted_body code() {
    calculate();
    // The driver needs a second for 8,000 instructions, and many values at a time do not fit into 64 registers.
    while (f_.width > 1 && order_.size() * width() > most_instructions) f_.width = f_.width == 8 ? 4 : 1;
    thread_index();
    for (int k = 0; k < f_.inputs; ++k)
      if (f_.read(k)) load_operand(k);
    for (int k = 0; k < f_.outputs; ++k) {
      if (!stored(k)) continue;
      const std::uint32_t at = address(max_inputs + k, true, {});
      output_address_[std::size_t(k)] = at;
      if (f_.adds(k)) load(max_inputs + k, f_.out[std::size_t(k)], at, lie::contiguous, 1);
    }
    for (std::uint32_t e = 0; e < width(); ++e)
      for (const node_index n : order_) append(n, e);
    for (int k = 0; k < f_.outputs; ++k)
      if (stored(k)) store(k);
    return {whole(), f_.width};
  }

 private:
  static constexpr std::size_t most_instructions = 1500;
  body_form f_;
  std::span<const custom_instruction> custom_;
  graph g_;
  std::array<number, max_inputs + max_micro_ops> values_{};
  std::array<number, max_outputs> results_{};
  std::vector<node_index> order_;
  std::vector<std::uint32_t> register_;  // of each node: which of the registers of an element holds it
  std::uint32_t values_per_element_ = 0, predicates_per_element_ = 0;
  text body_;
  std::uint32_t item_ = 0;                                        // the 64-bit register with the number of the thread
  std::uint32_t words_ = 0, longs_ = 0, halves_ = 0, tests_ = 0;  // registers of each kind that are used so far
  std::array<std::uint32_t, max_rank> index_{};                   // 32-bit or 64-bit registers: the index of the first element
  std::array<bool, max_rank> zero_{};                             // the index along this axis is 0
  std::array<std::uint32_t, max_outputs> output_address_{};
  std::array<bool, max_inputs + max_outputs> shared_{};  // one register serves all elements

  constexpr std::uint32_t width() const { return std::uint32_t(f_.width); }
  constexpr bool stored(int k) const { return results_[std::size_t(k)].in != nullptr; }
  constexpr reg new_word() { return {'w', words_++}; }
  constexpr reg new_long() { return {'d', longs_++}; }
  constexpr reg new_half() { return {'h', halves_++}; }
  constexpr reg new_test() { return {'q', tests_++}; }
  /// The register of element e of an operand, or of what an output held.
  constexpr reg given(std::uint32_t which, std::uint32_t e) const { return {'i', which * width() + (shared_[which] ? 0 : e)}; }

  /// Builds the graph of one element, and the order of its instructions.
  constexpr void calculate() {
    for (int k = 0; k < f_.inputs; ++k) values_[std::size_t(k)] = number(g_, g_.given(std::uint32_t(k)));
    for (int j = 0; j < f_.instructions; ++j) {
      const micro_op& m = f_.body[std::size_t(j)];
      std::array<number, 3> x{};
      for (std::size_t k = 0; k < 3; ++k)
        if (m.arg[k] >= 0) x[k] = values_[std::size_t(m.arg[k])];
      const number y = rounded(result_of(m, x), m.type);
      values_[std::size_t(max_inputs + j)] = y;
      if (m.store >= 0) results_[std::size_t(m.store)] = y;
    }
    std::vector<std::uint32_t> placed;
    for (int k = 0; k < f_.outputs; ++k) {
      number& y = results_[std::size_t(k)];
      if (y.in == nullptr) continue;
      if (f_.adds(k)) y = y + number(g_, g_.given(std::uint32_t(max_inputs + k)));
      const dtype t = f_.out[std::size_t(k)];
      y = rounded(y, t);
      if (size_of(t) == 2) y = number(g_, g_.at(y.bits).of[0]);  // the store rounds
    }
    while (placed.size() < g_.size()) placed.push_back(0);
    for (int k = 0; k < f_.outputs; ++k)
      if (stored(k)) g_.place(results_[std::size_t(k)].bits, placed, order_);
    while (register_.size() < g_.size()) register_.push_back(0);
    for (const node_index n : order_) {
      const operation o = g_.at(n).how;
      register_[n] = spelling_of(o).predicate ? predicates_per_element_++ : values_per_element_++;
    }
  }
  constexpr number result_of(const micro_op& m, const std::array<number, 3>& x) const {
    const number k = float(m.scalar);
    for (const custom_instruction& custom : custom_)
      if (custom.op == m.op) return custom.result(x[0], x[1], x[2], k);
    return formulas::result_of(instruction_code(m.op, m.type), x[0], x[1], x[2], k);
  }

  constexpr bool small() const { return f_.rank == 1 || f_.elements() < std::int64_t(1) << 31; }
  /// Computes the number of the thread, leaves where there is no work, and takes the number of its first element apart into indices along
  /// the merged axes; along the innermost axis it counts groups of width() elements.
  constexpr void thread_index() {
    const reg block = new_word(), size = new_word(), thread = new_word(), item = new_long(), wide = new_long(), count = new_long();
    const reg ends = new_test();
    body_.line("mov.u32 ", block, ", %ctaid.x;").line("mov.u32 ", size, ", %ntid.x;").line("mov.u32 ", thread, ", %tid.x;");
    body_.line("cvt.u64.u32 ", wide, ", ", thread, ";").line("mad.wide.u32 ", item, ", ", block, ", ", size, ", ", wide, ";");
    body_.line("ld.param.u64 ", count, ", [arguments+", 8 * (max_inputs + max_outputs), "];");
    body_.line("setp.ge.u64 ", ends, ", ", item, ", ", count, ";").line("@", ends, " bra done;");
    item_ = item.number;
    if (f_.rank == 1) {
      index_[0] = item.number;
      return;
    }
    reg rest = small() ? new_word() : item;
    if (small()) body_.line("cvt.u32.u64 ", rest, ", ", item, ";");
    for (int i = 0; i + 1 < f_.rank; ++i) {
      const std::int64_t size_of_axis = f_.dims[std::size_t(i)] / (i == 0 ? f_.width : 1);
      if (size_of_axis == 1) {
        zero_[std::size_t(i)] = true;
        continue;
      }
      const reg next = divided(rest, size_of_axis), whole = another(), index = another();
      const std::string_view type = small() ? "u32 " : "u64 ";
      body_.line("mul.lo.", type, whole, ", ", next, ", ", size_of_axis, ";").line("sub.", type, index, ", ", rest, ", ", whole, ";");
      index_[std::size_t(i)] = index.number;
      rest = next;
    }
    index_[std::size_t(f_.rank - 1)] = rest.number;
  }
  constexpr reg another() { return small() ? new_word() : new_long(); }
  /// n / d, rounded down. 32-bit numbers are below 2^31, so with 2^(l - 1) < d <= 2^l the quotient is n m / 2^(31 + l), m = floor(2^(31 +
  /// l) / d) + 1.
  constexpr reg divided(const reg& n, std::int64_t d) {
    const reg q = another();
    if (!small()) {
      body_.line("div.u64 ", q, ", ", n, ", ", d, ";");
      return q;
    }
    int l = 0;
    while ((std::int64_t(1) << l) < d) ++l;
    if (std::int64_t(1) << l == d) {
      body_.line("shr.u32 ", q, ", ", n, ", ", l, ";");
      return q;
    }
    const reg high = another();
    const std::uint64_t m = (std::uint64_t(1) << (31 + l)) / std::uint64_t(d) + 1;
    body_.line("mul.hi.u32 ", high, ", ", n, ", ", m, ";").line("shr.u32 ", q, ", ", high, ", ", l - 1, ";");
    return q;
  }
  /// The address of the thread's first element of an operand or output, in a 64-bit register.
  constexpr std::uint32_t address(int which, bool dense, const extents& strides) {
    const dtype t = which < max_inputs ? f_.in[std::size_t(which)] : f_.out[std::size_t(which - max_inputs)];
    reg at = new_long();
    body_.line("ld.param.u64 ", at, ", [arguments+", 8 * which, "];");
    const auto step = [&](const reg& index, bool wide, std::int64_t bytes) {
      if (bytes == 0) return;
      const reg sum = new_long();
      const bool fits = !wide && bytes < std::int64_t(1) << 32;
      if (fits) {
        body_.line("mad.wide.u32 ", sum, ", ", index, ", ", bytes, ", ", at, ";");
      } else {
        reg factor = index;
        if (!wide) {
          factor = new_long();
          body_.line("cvt.u64.u32 ", factor, ", ", index, ";");
        }
        body_.line("mad.lo.u64 ", sum, ", ", factor, ", ", bytes, ", ", at, ";");
      }
      at = sum;
    };
    if (dense) {
      step({'d', item_}, true, f_.width * size_of(t));
      return at.number;
    }
    for (int i = 0; i < f_.rank; ++i) {
      if (zero_[std::size_t(i)]) continue;
      const bool wide = f_.rank == 1 || !small();
      step({wide ? 'd' : 'w', index_[std::size_t(i)]}, wide, strides[std::size_t(i)] * size_of(t) * (i == 0 ? f_.width : 1));
    }
    return at.number;
  }

  constexpr void load_operand(int k) {
    const auto& strides = f_.strides[std::size_t(k)];
    const lie how = f_.width == 1 ? lie::broadcast : f_.lies[std::size_t(k)];
    load(k, f_.in[std::size_t(k)], address(k, false, strides), how, strides[0]);
  }
  /// Loads the elements of an operand, or of an output that is added to, as f32.
  constexpr void load(int which, dtype t, std::uint32_t at, lie how, std::int64_t stride) {
    const auto w = std::uint32_t(which);
    if (how == lie::contiguous && f_.width > 1) return load_vectors(w, t, {'d', at});
    shared_[w] = how == lie::broadcast;
    for (std::uint32_t e = 0; e < (shared_[w] ? 1u : width()); ++e) {
      const std::int64_t offset = std::int64_t(e) * stride * size_of(t);
      reg from{'d', at};
      if (offset > 0x7fffffff) {
        from = new_long();
        body_.line("add.u64 ", from, ", ", reg{'d', at}, ", ", offset, ";");
      }
      const std::int64_t immediate = offset > 0x7fffffff ? 0 : offset;
      if (t == dtype::f32) {
        body_.line("ld.global.b32 ", given(w, e), ", [", from, "+", immediate, "];");
        continue;
      }
      const reg bits = new_word();
      body_.line(t == dtype::boolean ? "ld.global.u8 " : "ld.global.u16 ", bits, ", [", from, "+", immediate, "];");
      widen(t, bits, 0, given(w, e));
    }
  }
  /// Loads width() consecutive elements by accesses of up to 16 bytes.
  constexpr void load_vectors(std::uint32_t w, dtype t, const reg& at) {
    const auto bytes = width() * std::uint32_t(size_of(t)), words = bytes / 4, each = std::uint32_t(4 / size_of(t));
    std::array<reg, max_vector> r{};
    for (std::uint32_t i = 0; i < words; ++i) r[i] = t == dtype::f32 ? given(w, i) : new_word();
    for (std::uint32_t first = 0; first < words; first += 4) {
      const std::uint32_t n = words - first < 4 ? words - first : 4;
      body_.put("ld.global.");
      body_.put(n == 4 ? "v4.b32 {" : n == 2 ? "v2.b32 {" : "b32 {");
      list(r, first, n);
      body_.line("}, [", at, "+", 4 * first, "];");
    }
    if (t == dtype::f32) return;
    for (std::uint32_t e = 0; e < width(); ++e) widen(t, r[e / each], e % each, given(w, e));
  }
  static constexpr std::size_t max_vector = 8;
  constexpr void list(const std::array<reg, max_vector>& r, std::uint32_t first, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (i > 0) body_.put(", ");
      body_.put(r[first + i]);
    }
  }
  /// Element `part` of those that the register `bits` holds, as f32.
  constexpr void widen(dtype t, const reg& bits, std::uint32_t part, const reg& to) {
    if (t == dtype::bf16) {
      if (part == 0) body_.line("shl.b32 ", to, ", ", bits, ", 16;");
      else body_.line("and.b32 ", to, ", ", bits, ", 4294901760;");
    } else if (t == dtype::f16) {
      const reg low = new_half(), high = new_half();
      body_.line("mov.b32 {", low, ", ", high, "}, ", bits, ";");
      body_.line("cvt.f32.f16 ", to, ", ", part == 0 ? low : high, ";");
    } else {
      const reg byte = new_word(), test = new_test();
      body_.line("and.b32 ", byte, ", ", bits, ", ", std::uint32_t(255) << (8 * part), ";");
      body_.line("setp.ne.u32 ", test, ", ", byte, ", 0;").line("selp.b32 ", to, ", 0f3F800000, 0f00000000, ", test, ";");
    }
  }

  /// Appends an operand of an instruction: 'n' of a number, 'p' a predicate, else a word.
  constexpr void operand(node_index n, std::uint32_t e, char kind) {
    const node& x = g_.at(n);
    if (x.how == operation::literal) {
      if (kind == 'n') body_.put(float_bits{x.of[0]});
      else body_.put(x.of[0]);
    } else if (x.how == operation::given) {
      body_.put(given(x.of[0], e));
    } else if (kind == 'p') {
      body_.put(reg{'p', e * predicates_per_element_ + register_[n]});
    } else {
      body_.put(reg{'v', e * values_per_element_ + register_[n]});
    }
  }
  constexpr void append(node_index n, std::uint32_t e) {
    const node& x = g_.at(n);
    const reg to{'v', e * values_per_element_ + register_[n]};
    if (x.how == operation::through_f16) {
      const reg half = new_half();
      body_.put("cvt.rn.f16.f32 ");
      body_.put(half);
      body_.put(", ");
      operand(x.of[0], e, 'n');
      body_.line(";").line("cvt.f32.f16 ", to, ", ", half, ";");
      return;
    }
    if (x.how == operation::through_bf16) {  // as the upper half of a pair whose other number is 0
      body_.put("cvt.rn.bf16x2.f32 ");
      body_.put(to);
      body_.put(", ");
      operand(x.of[0], e, 'n');
      body_.line(", 0f00000000;");
      return;
    }
    const spelling s = spelling_of(x.how);
    body_.put(s.instruction);
    body_.put(" ");
    operand(n, e, s.predicate ? 'p' : 'b');
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      body_.put(", ");
      operand(x.of[i], e, s.operands[i]);
    }
    body_.line(";");
  }
  /// A result in a register: a literal is moved to one.
  constexpr reg result(int k, std::uint32_t e) {
    const node_index n = results_[std::size_t(k)].bits;
    const node& x = g_.at(n);
    if (x.how == operation::given) return given(x.of[0], e);
    if (x.how != operation::literal) return {'v', e * values_per_element_ + register_[n]};
    const reg r = new_word();
    body_.line("mov.b32 ", r, ", ", x.of[0], ";");
    return r;
  }
  /// The bits of a result in the low bits of a register.
  constexpr reg narrow(int k, std::uint32_t e, dtype t) {
    const reg from = result(k, e), to = new_word();
    if (t == dtype::f32) return from;
    if (t == dtype::boolean) body_.line("shr.u32 ", to, ", ", from, ", 29;");  // 1.0 is 0x3f800000
    else body_.line(t == dtype::bf16 ? "cvt.rn.bf16x2.f32 " : "cvt.rn.f16x2.f32 ", to, ", 0f00000000, ", from, ";");
    return to;
  }
  constexpr void store(int k) {
    const dtype t = f_.out[std::size_t(k)];
    const reg at{'d', output_address_[std::size_t(k)]};
    if (f_.width == 1) {
      const reg x = narrow(k, 0, t);
      body_.line(t == dtype::f32 ? "st.global.b32 [" : t == dtype::boolean ? "st.global.u8 [" : "st.global.u16 [", at, "], ", x, ";");
      return;
    }
    const auto words = width() * std::uint32_t(size_of(t)) / 4, each = std::uint32_t(4 / size_of(t));
    std::array<reg, max_vector> r{};
    for (std::uint32_t i = 0; i < words; ++i) r[i] = packed(k, i * each, t);
    for (std::uint32_t first = 0; first < words; first += 4) {
      const std::uint32_t n = words - first < 4 ? words - first : 4;
      body_.put("st.global.");
      body_.put(n == 4 ? "v4.b32 [" : n == 2 ? "v2.b32 [" : "b32 [");
      body_.put(at);
      body_.put("+");
      body_.put(4 * first);
      body_.put("], {");
      list(r, first, n);
      body_.line("};");
    }
  }
  /// The elements from e on that one 32-bit register holds.
  constexpr reg packed(int k, std::uint32_t e, dtype t) {
    if (t == dtype::f32) return result(k, e);
    if (t != dtype::boolean) {
      const reg low = result(k, e), high = result(k, e + 1), both = new_word();
      body_.line(t == dtype::bf16 ? "cvt.rn.bf16x2.f32 " : "cvt.rn.f16x2.f32 ", both, ", ", high, ", ", low, ";");
      return both;
    }
    reg all = narrow(k, e, t);
    for (std::uint32_t i = 1; i < 4; ++i) {
      const reg bit = narrow(k, e + i, t), moved = new_word(), sum = new_word();
      body_.line("shl.b32 ", moved, ", ", bit, ", ", 8 * i, ";").line("or.b32 ", sum, ", ", all, ", ", moved, ";");
      all = sum;
    }
    return all;
  }

  /// The module: registers are declared when their numbers are known. All blocks of up to 1,024 threads can be launched.
  constexpr std::vector<char> whole() {
    text t;
    t.line(".version 7.0").line(".target sm_80").line(".address_size 64");
    t.line(".visible .entry elementwise(.param .align 8 .b8 arguments[", sizeof(emitted_arguments), "])").line(".maxntid 1024, 1, 1");
    t.line("{");
    const auto declare = [&](std::string_view type, char kind, std::uint32_t n) {
      if (n > 0) t.line(".reg ", type, " %", kind, "<", n, ">;");
    };
    declare(".b32", 'w', words_);
    declare(".b32", 'i', std::uint32_t(max_inputs + max_outputs) * width());
    declare(".b32", 'v', width() * values_per_element_);
    declare(".b64", 'd', longs_);
    declare(".b16", 'h', halves_);
    declare(".pred", 'p', width() * predicates_per_element_);
    declare(".pred", 'q', tests_);
    t.append(body_);
    t.line("done:").line("ret;").line("}");
    return t.take();
  }
};

/// Returns the kernel of a body.
constexpr emitted_body emit_body(const body_form& f, std::span<const custom_instruction> custom = {}) {
  return body_emitter(f, custom).code();
}

}  // namespace ptx
}  // namespace isotope::cuda
