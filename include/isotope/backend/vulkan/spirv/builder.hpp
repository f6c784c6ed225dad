#pragma once
/// Builds a SPIR-V module with one compute entry point, in which each invocation handles one item. Equal types and constants are declared once.
/// Works in constant expressions. Numbers are opcodes and enumerants of the specification; comments give their names.
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace isotope::vulkan::spirv {

using id = std::uint32_t;

class builder {
 public:
  /// `lanes`: elements per invocation; 1, or 4 where values of the body are vectors.
  constexpr explicit builder(int lanes) : lanes_(lanes) {
    globals_.reserve(1024);
    known_.reserve(128);
    code_.reserve(8192);
    decorations_.reserve(1024);
    set_ = fresh();
  }
  constexpr id fresh() { return next_++; }
  constexpr int lanes() const { return lanes_; }

  // Types. A `lane` type is a vector of `lanes` elements, or a scalar if `lanes` is 1.
  constexpr id nothing() { return global(19, {}); }
  constexpr id truth() { return global(20, {}); }
  constexpr id integer(std::uint32_t bits) { return global(21, {bits, 0}); }
  constexpr id word() { return word_ != 0 ? word_ : word_ = integer(32); }
  constexpr id number() { return number_ != 0 ? number_ : number_ = global(22, {32}); }
  constexpr id vector(id of, std::uint32_t n) { return n == 1 ? of : global(23, {of, n}); }
  constexpr id lane_truth() { return lane_truth_ != 0 ? lane_truth_ : lane_truth_ = vector(truth(), std::uint32_t(lanes_)); }
  constexpr id lane_word() { return lane_word_ != 0 ? lane_word_ : lane_word_ = vector(word(), std::uint32_t(lanes_)); }
  constexpr id lane_number() { return lane_number_ != 0 ? lane_number_ : lane_number_ = vector(number(), std::uint32_t(lanes_)); }
  constexpr id function_type() { return global(33, {nothing()}); }
  constexpr id pointer(std::uint32_t storage, id to) { return global(32, {storage, to}); }

  // Constants, given by their bits.
  constexpr id constant(id type, std::uint32_t bits) { return typed_global(43, type, {bits}); }
  constexpr id constant_word(std::uint32_t x) { return constant(word(), x); }
  constexpr id constant_long(std::uint64_t x) { return typed_global(43, integer(64), {std::uint32_t(x), std::uint32_t(x >> 32)}); }
  constexpr id lane_constant(id type, std::uint32_t bits) {
    const id one = constant(type, bits);
    return lanes_ == 1 ? one : typed_global(44, vector(type, 4), {one, one, one, one});
  }

  // Instructions of the function.
  constexpr id code(std::uint32_t op, id type, std::span<const std::uint32_t> operands) {
    const id r = fresh();
    append(code_, op, type, r, operands);
    return r;
  }
  constexpr id code(std::uint32_t op, id type, std::initializer_list<std::uint32_t> operands) {
    return code(op, type, std::span(operands.begin(), operands.size()));
  }
  constexpr void code(std::uint32_t op, std::initializer_list<std::uint32_t> operands) { append(code_, op, operands); }
  /// Floating-point arithmetic that may not be contracted with other operations, e.g. into an fma.
  constexpr id arithmetic(std::uint32_t op, id type, std::span<const std::uint32_t> operands) {
    const id r = code(op, type, operands);
    append(decorations_, 71, {r, 42});  // NoContraction
    return r;
  }
  /// An instruction of GLSL.std.450.
  constexpr id extended(std::uint32_t op, id type, std::span<const std::uint32_t> operands) {
    const id r = fresh();
    code_.push_back(std::uint32_t(operands.size() + 5) << 16 | 12);
    for (const std::uint32_t x : {type, r, set_, op}) code_.push_back(x);
    for (const auto x : operands) code_.push_back(x);
    return r;
  }
  constexpr id extract(id type, id composite, std::uint32_t k) { return code(81, type, {composite, k}); }

  /// Opens the function `main` with its first block.
  constexpr void code_function(id main) {
    const id result = nothing(), type = function_type();
    append(code_, 54, result, main, std::array<id, 2>{0, type});
    code(248, {fresh()});
  }

  // The module's interface.
  constexpr id variable(std::uint32_t storage, id type) {
    const id r = fresh();
    append(globals_, 59, pointer(storage, type), r, std::array<id, 1>{storage});
    interface_.push_back(r);
    return r;
  }
  constexpr void decorate(id what, std::uint32_t decoration, std::uint32_t value) { append(decorations_, 71, {what, decoration, value}); }
  constexpr void decorate(id what, std::uint32_t decoration) { append(decorations_, 71, {what, decoration}); }
  constexpr void decorate_member(id what, std::uint32_t member, std::uint32_t value) {
    append(decorations_, 72, {what, member, 35, value});  // Offset
  }
  /// A type that is declared anew because its decorations are its own.
  constexpr id structure(const std::vector<id>& members) {
    const id r = fresh();
    globals_.push_back(std::uint32_t(members.size() + 2) << 16 | 30);
    globals_.push_back(r);
    for (const id m : members) globals_.push_back(m);
    return r;
  }
  /// The specialization constant with this id: the workgroup size.
  constexpr id specialized_word(std::uint32_t constant_id, std::uint32_t otherwise) {
    const id r = fresh();
    append(globals_, 50, word(), r, std::array<id, 1>{otherwise});
    decorate(r, 1, constant_id);  // SpecId
    return r;
  }
  constexpr void uses_8_bit_storage() { bytes_ = true; }
  constexpr void uses_16_bit_storage() { halves_ = true; }

  /// Returns the module. The function must already have its entry label and its terminator.
  constexpr std::vector<std::uint32_t> module(id main, id group_size) {
    std::vector<std::uint32_t> w;
    w.reserve(globals_.size() + code_.size() + decorations_.size() + 128);
    for (const std::uint32_t x : {0x07230203u, 0x00010600u, 0u, 0u, 0u}) w.push_back(x);  // SPIR-V 1.6
    append(w, 17, {1});                                                                   // Shader
    append(w, 17, {11});                                                                  // Int64
    if (halves_) append(w, 17, {4433});                                                   // StorageBuffer16BitAccess
    if (bytes_) append(w, 17, {4448});                                                    // StorageBuffer8BitAccess
    append(w, 17, {5345});                                                                // VulkanMemoryModel
    append(w, 17, {5347});                                                                // PhysicalStorageBufferAddresses
    named(w, 11, {set_}, "GLSL.std.450", {});
    append(w, 14, {5348, 3});  // PhysicalStorageBuffer64, Vulkan
    named(w, 15, {5, main}, "main", interface_);
    const id one = constant_word(1);
    append(w, 331, {main, 38, group_size, one, one});  // LocalSizeId
    for (const auto& part : {decorations_, globals_, code_})
      for (const std::uint32_t x : part) w.push_back(x);
    w[3] = next_;
    return w;
  }

 private:
  struct shared {
    std::uint32_t op = 0, type = 0, n = 0;
    std::uint32_t operand[4]{};
    id result = 0;
  };
  int lanes_;
  id next_ = 1, set_ = 0;
  id word_ = 0, number_ = 0, lane_word_ = 0, lane_number_ = 0, lane_truth_ = 0;  // cached, since nearly every instruction needs them
  bool bytes_ = false, halves_ = false;
  std::vector<std::uint32_t> decorations_, globals_, code_;
  std::vector<shared> known_;
  std::vector<id> interface_;

  constexpr static void append(std::vector<std::uint32_t>& to, std::uint32_t op, std::initializer_list<std::uint32_t> operands) {
    to.push_back(std::uint32_t(operands.size() + 1) << 16 | op);
    for (const auto x : operands) to.push_back(x);
  }
  constexpr static void append(std::vector<std::uint32_t>& to, std::uint32_t op, id type, id result,
                               std::span<const std::uint32_t> operands) {
    to.push_back(std::uint32_t(operands.size() + 3) << 16 | op);
    to.push_back(type);
    to.push_back(result);
    for (const auto x : operands) to.push_back(x);
  }
  constexpr static void named(std::vector<std::uint32_t>& to, std::uint32_t op, std::initializer_list<std::uint32_t> before,
                              std::string_view name, const std::vector<id>& after) {
    const auto words = name.size() / 4 + 1;  // with the terminating zero
    to.push_back(std::uint32_t(1 + before.size() + words + after.size()) << 16 | op);
    for (const auto x : before) to.push_back(x);
    for (std::size_t i = 0; i < words; ++i) {
      std::uint32_t word = 0;
      for (std::size_t j = 0; j < 4 && 4 * i + j < name.size(); ++j)
        word |= std::uint32_t(static_cast<unsigned char>(name[4 * i + j])) << (8 * j);
      to.push_back(word);
    }
    for (const auto x : after) to.push_back(x);
  }
  constexpr id find(const shared& wanted) const {
    const shared* all = known_.data();
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const shared& k = all[i];
      if (k.op != wanted.op || k.type != wanted.type || k.n != wanted.n) continue;
      if (k.operand[0] == wanted.operand[0] && k.operand[1] == wanted.operand[1] && k.operand[2] == wanted.operand[2] &&
          k.operand[3] == wanted.operand[3])
        return k.result;
    }
    return 0;
  }
  constexpr id remembered(std::uint32_t op, id type, std::initializer_list<std::uint32_t> operands) {
    shared s{op, type, std::uint32_t(operands.size()), {}, 0};
    std::size_t i = 0;
    for (const auto x : operands) s.operand[i++] = x;
    if (const id r = find(s); r != 0) return r;
    s.result = fresh();
    if (type == 0) {
      globals_.push_back(std::uint32_t(operands.size() + 2) << 16 | op);
      globals_.push_back(s.result);
      for (const auto x : operands) globals_.push_back(x);
    } else {
      append(globals_, op, type, s.result, std::span(operands.begin(), operands.size()));
    }
    known_.push_back(s);
    return s.result;
  }
  constexpr id global(std::uint32_t op, std::initializer_list<std::uint32_t> operands) { return remembered(op, 0, operands); }
  constexpr id typed_global(std::uint32_t op, id type, std::initializer_list<std::uint32_t> operands) {
    return remembered(op, type, operands);
  }
};

}  // namespace isotope::vulkan::spirv
