#pragma once
// Runs the PTX of emitted bodies on the host, one thread after the other: only the instructions that the emitter writes, with the rounding
// of the device. Addresses are those of the host. A text that it does not understand is an error, which names the line.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <isotope/core/precision.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace isotope::cuda_test {

class ptx_program {
 public:
  explicit ptx_program(std::string_view text) {
    while (!text.empty() && error_.empty()) {
      const auto end = text.find('\n');
      parse(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  /// Empty unless a line was not understood or an access was not aligned.
  const std::string& error() const { return error_; }
  std::size_t argument_bytes() const { return argument_bytes_; }

  void run(const void* arguments, std::uint32_t blocks, std::uint32_t threads) {
    for (std::uint32_t b = 0; b < blocks && error_.empty(); ++b)
      for (std::uint32_t t = 0; t < threads; ++t) run_thread(arguments, b, threads, t);
  }
  /// Runs one thread of a block of `threads`.
  void run_thread(const void* arguments, std::uint32_t block, std::uint32_t threads, std::uint32_t t) {
    *block_ = block;
    *size_ = threads;
    *thread_ = t;
    for (const line& i : lines_) {
      if (!error_.empty() || i.what == code::leave) return;
      if (i.what == code::leave_if) {
        if (*i.from[0] != 0) return;
      } else if (i.what <= code::store) {
        access(i, static_cast<const unsigned char*>(arguments));
      } else if (i.what == code::halves) {
        *i.list[0] = *i.from[0] & 0xffffu;
        *i.list[1] = *i.from[0] >> 16 & 0xffffu;
      } else {
        *i.to = result(i);
      }
    }
  }

 private:
  enum class code {
    parameter,
    load,
    store,  // accesses
    add,
    subtract,
    multiply,
    inverse,
    negate,
    fma,
    root,
    exp2,
    from_word,
    to_f16,
    pair_f16,
    pair_bf16,
    from_f16,
    add_word,
    subtract_word,
    add_long,
    subtract_long,
    multiply_word,
    multiply_long,
    multiply_high,
    multiply_add_wide,
    multiply_add_long,
    divide_long,
    both,
    either,
    differing,
    left,
    right,
    less,
    greater,
    word_less,
    word_greater,
    word_equal,
    word_unequal,
    long_not_less,
    long_greater,
    select,
    word,
    halves,
    leave,
    leave_if
  };
  struct line {
    code what = code::leave;
    std::uint64_t* to = nullptr;
    const std::uint64_t* from[4]{};
    std::vector<std::uint64_t*> list;  // the registers of an access
    std::uint64_t offset = 0;
    std::size_t bytes = 0;  // of each of them
    std::string text;
  };
  static code code_of(std::string_view name) {
    static const std::map<std::string_view, code> all{{"ld.param.u64", code::parameter},
                                                      {"add.rn.f32", code::add},
                                                      {"sub.rn.f32", code::subtract},
                                                      {"mul.rn.f32", code::multiply},
                                                      {"rcp.approx.ftz.f32", code::inverse},
                                                      {"neg.f32", code::negate},
                                                      {"fma.rn.f32", code::fma},
                                                      {"sqrt.approx.ftz.f32", code::root},
                                                      {"ex2.approx.ftz.f32", code::exp2},
                                                      {"cvt.rn.f32.u32", code::from_word},
                                                      {"cvt.rn.f16.f32", code::to_f16},
                                                      {"cvt.rn.f16x2.f32", code::pair_f16},
                                                      {"cvt.rn.bf16x2.f32", code::pair_bf16},
                                                      {"cvt.f32.f16", code::from_f16},
                                                      {"add.u32", code::add_word},
                                                      {"sub.u32", code::subtract_word},
                                                      {"add.u64", code::add_long},
                                                      {"sub.u64", code::subtract_long},
                                                      {"mul.lo.u32", code::multiply_word},
                                                      {"mul.lo.u64", code::multiply_long},
                                                      {"mul.hi.u32", code::multiply_high},
                                                      {"mad.wide.u32", code::multiply_add_wide},
                                                      {"mad.lo.u64", code::multiply_add_long},
                                                      {"div.u64", code::divide_long},
                                                      {"and.b32", code::both},
                                                      {"or.b32", code::either},
                                                      {"xor.b32", code::differing},
                                                      {"shl.b32", code::left},
                                                      {"shr.u32", code::right},
                                                      {"setp.lt.f32", code::less},
                                                      {"setp.gt.f32", code::greater},
                                                      {"setp.lt.u32", code::word_less},
                                                      {"setp.gt.u32", code::word_greater},
                                                      {"setp.eq.u32", code::word_equal},
                                                      {"setp.ne.u32", code::word_unequal},
                                                      {"setp.ge.u64", code::long_not_less},
                                                      {"setp.gt.u64", code::long_greater},
                                                      {"selp.b32", code::select},
                                                      {"mov.u32", code::word},
                                                      {"cvt.u64.u32", code::word},
                                                      {"cvt.u32.u64", code::word},
                                                      {"mov.b32", code::word},
                                                      {"ret", code::leave}};
    const auto at = all.find(name);
    if (at != all.end()) return at->second;
    return name.starts_with("ld.global.") ? code::load : name.starts_with("st.global.") ? code::store : code::leave_if;
  }

  std::vector<line> lines_;
  std::deque<std::uint64_t> numbers_;  // registers and constants
  std::map<std::string, std::uint64_t*, std::less<>> names_;
  std::uint64_t *block_ = named("%ctaid.x"), *size_ = named("%ntid.x"), *thread_ = named("%tid.x");
  std::string error_;
  std::size_t argument_bytes_ = 0;

  /// A register, or a constant in memory of its own.
  std::uint64_t* named(std::string_view s) {
    const auto [at, added] = names_.emplace(std::string(s), nullptr);
    if (!added) return at->second;
    numbers_.push_back(s.starts_with("%") ? 0xdeadbeefdeadbeefu
                       : s == "arguments"
                           ? 0
                           : std::stoull(std::string(s.starts_with("0f") ? s.substr(2) : s), nullptr, s.starts_with("0f") ? 16 : 10));
    return at->second = &numbers_.back();
  }
  void parse(std::string_view text) {
    constexpr std::string_view declared = "arguments[";
    if (const auto at = text.find(declared); text.starts_with(".visible") && at != std::string_view::npos)
      argument_bytes_ = std::stoull(std::string(text.substr(at + declared.size())));
    if (text.empty() || text[0] == '.' || text == "{" || text == "}" || text == "done:") return;
    line i;
    i.text = text;
    if (text[0] == '@') {
      i.what = code::leave_if;
      i.from[0] = named(text.substr(1, text.find(' ') - 1));
      lines_.push_back(std::move(i));
      return;
    }
    const std::string_view name = text.substr(0, text.find_first_of(" ;"));
    i.what = code_of(name);
    std::vector<std::uint64_t*> outside;
    bool inside = false;
    for (text.remove_prefix(name.size()); !text.empty();) {
      const auto n = text.find_first_of(" ,;[]{}+");
      if (n > 0) (inside ? i.list : outside).push_back(named(text.substr(0, n)));
      else if (text[0] == '{' || text[0] == '}') inside = text[0] == '{';
      text.remove_prefix(n > 0 ? n : 1);
    }
    if (i.what == code::leave_if) error_ = "not understood: " + i.text;
    else if (i.what <= code::store) access_of(i, name, outside);
    else if (i.what != code::leave) operands_of(i, outside);
    lines_.push_back(std::move(i));
  }
  void access_of(line& i, std::string_view name, std::vector<std::uint64_t*> all) {
    i.bytes = name.ends_with("u64") ? 8 : name.ends_with("u16") ? 2 : name.ends_with("u8") ? 1 : 4;
    if (i.list.empty()) {  // a single register, before or behind the address
      const auto at = i.what == code::store ? all.end() - 1 : all.begin();
      i.list.push_back(*at);
      all.erase(at);
    }
    i.from[0] = all[0];
    i.offset = all.size() > 1 ? *all[1] : 0;
  }
  void operands_of(line& i, const std::vector<std::uint64_t*>& all) {
    if (!i.list.empty()) {  // {low, high} of a word
      i.what = code::halves;
      i.from[0] = all[0];
      return;
    }
    i.to = all[0];
    for (std::size_t k = 1; k < all.size() && k <= 4; ++k) i.from[k - 1] = all[k];
  }

  static float number(const std::uint64_t* x) { return std::bit_cast<float>(std::uint32_t(*x)); }
  static std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
  static std::uint32_t f16(float x) { return x != x ? 0x7fffu : float16(x).bits; }
  static std::uint32_t bf16(float x) { return x != x ? 0x7fffu : bfloat16(x).bits; }
  std::uint64_t result(const line& i) {
    const auto f = [&](int k) { return number(i.from[k]); };
    const auto w = [&](int k) { return std::uint32_t(*i.from[k]); };
    const auto x = [&](int k) { return *i.from[k]; };
    switch (i.what) {
      case code::add: return bits(f(0) + f(1));
      case code::subtract: return bits(f(0) - f(1));
      case code::multiply: return bits(f(0) * f(1));
      case code::inverse: return bits(1.0f / f(0));
      case code::negate: return bits(-f(0));
      case code::fma: return bits(std::fma(f(0), f(1), f(2)));
      case code::root: return bits(std::sqrt(f(0)));
      case code::exp2: return bits(std::exp2(f(0)));
      case code::from_word: return bits(float(w(0)));
      case code::to_f16: return f16(f(0));
      case code::pair_f16: return f16(f(0)) << 16 | f16(f(1));
      case code::pair_bf16: return bf16(f(0)) << 16 | bf16(f(1));
      case code::from_f16: return bits(float(std::bit_cast<float16>(std::uint16_t(w(0)))));
      case code::add_word: return w(0) + w(1);
      case code::subtract_word: return w(0) - w(1);
      case code::add_long: return x(0) + x(1);
      case code::subtract_long: return x(0) - x(1);
      case code::multiply_word: return w(0) * w(1);
      case code::multiply_long: return x(0) * x(1);
      case code::multiply_high: return (std::uint64_t(w(0)) * w(1)) >> 32;
      case code::multiply_add_wide: return std::uint64_t(w(0)) * w(1) + x(2);
      case code::multiply_add_long: return x(0) * x(1) + x(2);
      case code::divide_long: return x(0) / x(1);
      case code::both: return w(0) & w(1);
      case code::either: return w(0) | w(1);
      case code::differing: return w(0) ^ w(1);
      case code::left: return w(1) > 31 ? 0u : w(0) << w(1);
      case code::right: return w(1) > 31 ? 0u : w(0) >> w(1);
      case code::less: return f(0) < f(1);
      case code::greater: return f(0) > f(1);
      case code::word_less: return w(0) < w(1);
      case code::word_greater: return w(0) > w(1);
      case code::word_equal: return w(0) == w(1);
      case code::word_unequal: return w(0) != w(1);
      case code::long_not_less: return x(0) >= x(1);
      case code::long_greater: return x(0) > x(1);
      case code::select: return x(2) != 0 ? w(0) : w(1);
      default: return w(0);
    }
  }
  void access(const line& i, const unsigned char* arguments) {
    if (i.what == code::parameter) {
      std::memcpy(i.list[0], arguments + i.offset, i.bytes);
      return;
    }
    const std::uint64_t address = *i.from[0] + i.offset;
    if (address % (i.bytes * i.list.size()) != 0) error_ = "not aligned: " + i.text;
    for (std::size_t k = 0; k < i.list.size() && error_.empty(); ++k) {
      auto* const memory = reinterpret_cast<unsigned char*>(address) + k * i.bytes;
      if (i.what == code::store) {
        std::memcpy(memory, i.list[k], i.bytes);
      } else {
        *i.list[k] = 0;
        std::memcpy(i.list[k], memory, i.bytes);
      }
    }
  }
};

}  // namespace isotope::cuda_test
