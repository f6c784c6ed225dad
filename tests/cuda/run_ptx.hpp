#pragma once
// Runs the PTX of emitted bodies on the host, one thread after the other: only the instructions that the emitter writes, with the rounding
// of the device. Addresses are those of the host. A text that it does not understand is an error, which names the line.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/core/precision.hpp>

namespace isotope::cuda_test {

class ptx_program {
 public:
  explicit ptx_program(std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('\n');
      parse(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  const std::string& error() const { return error_; }
  std::size_t instructions() const { return lines_.size(); }

  void run(const void* arguments, std::uint32_t blocks, std::uint32_t threads) {
    for (std::uint32_t b = 0; b < blocks && error_.empty(); ++b)
      for (std::uint32_t t = 0; t < threads; ++t) run_thread(arguments, b, threads, t);
  }
  /// Runs one thread of a block of `threads`.
  void run_thread(const void* arguments, std::uint32_t block, std::uint32_t threads, std::uint32_t t) {
    special_ = {block, threads, t};
    thread(static_cast<const unsigned char*>(arguments));
  }

 private:
  struct place {
    enum { constant, general, special } kind = constant;
    std::uint64_t value = 0;  // a constant, or the number of a register
  };
  struct instruction {
    std::string name, text;
    std::vector<place> operands;  // without those in braces
    std::vector<place> list;      // in braces
    bool guarded = false;
    place guard;
  };
  struct {
    std::uint32_t block, size, thread;
  } special_{};
  std::vector<instruction> lines_;
  std::map<std::string, std::uint64_t, std::less<>> names_;
  std::vector<std::uint64_t> registers_;
  std::string error_;

  place operand(std::string_view s) {
    if (s.starts_with("%ctaid")) return {place::special, 0};
    if (s.starts_with("%ntid")) return {place::special, 1};
    if (s.starts_with("%tid")) return {place::special, 2};
    if (s.starts_with("%")) {
      const auto [at, added] = names_.emplace(std::string(s), registers_.size());
      if (added) registers_.push_back(0xdeadbeefdeadbeefu);
      return {place::general, at->second};
    }
    if (s.starts_with("0f")) return {place::constant, std::stoull(std::string(s.substr(2)), nullptr, 16)};
    if (s == "arguments") return {place::constant, 0};
    return {place::constant, std::stoull(std::string(s))};
  }
  void parse(std::string_view line) {
    if (line.empty() || line[0] == '.' || line == "{" || line == "}" || line == "done:") return;
    instruction i;
    i.text = line;
    const auto word = [&] {
      const auto n = line.find_first_of(" ,;[]{}+");
      const auto w = line.substr(0, n);
      line.remove_prefix(n == std::string_view::npos ? line.size() : n);
      return w;
    };
    if (line[0] == '@') {
      line.remove_prefix(1);
      i.guarded = true;
      i.guard = operand(word());
      line.remove_prefix(1);
    }
    i.name = word();
    if (i.name != "bra" && i.name != "ret") {
      for (bool inside = false; !line.empty();) {
        const char c = line[0];
        if (c == '{' || c == '}') inside = c == '{';
        if (std::string_view(" ,;[]{}+").find(c) != std::string_view::npos) line.remove_prefix(1);
        else (inside ? i.list : i.operands).push_back(operand(word()));
      }
    }
    lines_.push_back(std::move(i));
  }

  std::uint64_t of(const place& p) const {
    if (p.kind == place::constant) return p.value;
    if (p.kind == place::special) return p.value == 0 ? special_.block : p.value == 1 ? special_.size : special_.thread;
    return registers_[p.value];
  }
  static float number(std::uint64_t x) { return std::bit_cast<float>(std::uint32_t(x)); }
  static std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
  static std::uint64_t f16(float x) { return x != x ? 0x7fffu : std::bit_cast<std::uint16_t>(_Float16(x)); }

  void thread(const unsigned char* arguments) {
    for (const instruction& i : lines_) {
      if (i.guarded && of(i.guard) == 0) continue;
      if (i.name == "bra" || i.name == "ret") return;
      if (!step(i, arguments)) {
        error_ = "not understood: " + i.text;
        return;
      }
    }
  }
  bool step(const instruction& i, const unsigned char* arguments) {
    const std::string_view n = i.name;
    const auto& o = i.operands;
    const auto set = [&](std::uint64_t x) { registers_[o[0].value] = x; };
    const auto x = [&](std::size_t k) { return of(o[k]); };
    const auto w = [&](std::size_t k) { return std::uint32_t(of(o[k])); };
    const auto f = [&](std::size_t k) { return number(of(o[k])); };
    if (n.starts_with("ld.") || n.starts_with("st.")) return access(i, arguments);
    if (n == "add.rn.f32") set(bits(f(1) + f(2)));
    else if (n == "sub.rn.f32") set(bits(f(1) - f(2)));
    else if (n == "mul.rn.f32") set(bits(f(1) * f(2)));
    else if (n == "rcp.approx.ftz.f32") set(bits(1.0f / f(1)));
    else if (n == "neg.f32") set(bits(-f(1)));
    else if (n == "fma.rn.f32") set(bits(std::fma(f(1), f(2), f(3))));
    else if (n == "sqrt.approx.ftz.f32") set(bits(std::sqrt(f(1))));
    else if (n == "ex2.approx.ftz.f32") set(bits(std::exp2(f(1))));
    else if (n == "cvt.rn.f32.u32") set(bits(float(w(1))));
    else if (n == "cvt.rn.f16x2.f32") set(f16(f(1)) << 16 | f16(f(2)));
    else if (n == "cvt.rn.bf16x2.f32") set(std::uint64_t(bfloat16(f(1)).bits) << 16 | bfloat16(f(2)).bits);
    else if (n == "cvt.rn.f16.f32") set(f16(f(1)));
    else if (n == "cvt.f32.f16") set(bits(float(std::bit_cast<_Float16>(std::uint16_t(x(1))))));
    else if (n == "add.u32") set(w(1) + w(2));
    else if (n == "sub.u32") set(w(1) - w(2));
    else if (n == "add.u64") set(x(1) + x(2));
    else if (n == "sub.u64") set(x(1) - x(2));
    else if (n == "mul.lo.u32") set(w(1) * w(2));
    else if (n == "mul.lo.u64") set(x(1) * x(2));
    else if (n == "mul.hi.u32") set((std::uint64_t(w(1)) * w(2)) >> 32);
    else if (n == "mad.wide.u32") set(std::uint64_t(w(1)) * w(2) + x(3));
    else if (n == "mad.lo.u64") set(x(1) * x(2) + x(3));
    else if (n == "div.u64") set(x(1) / x(2));
    else if (n == "and.b32") set(w(1) & w(2));
    else if (n == "or.b32") set(w(1) | w(2));
    else if (n == "xor.b32") set(w(1) ^ w(2));
    else if (n == "shl.b32") set(w(2) > 31 ? 0u : w(1) << w(2));
    else if (n == "shr.u32") set(w(2) > 31 ? 0u : w(1) >> w(2));
    else if (n == "setp.lt.f32") set(f(1) < f(2));
    else if (n == "setp.gt.f32") set(f(1) > f(2));
    else if (n == "setp.lt.u32") set(w(1) < w(2));
    else if (n == "setp.gt.u32") set(w(1) > w(2));
    else if (n == "setp.eq.u32") set(w(1) == w(2));
    else if (n == "setp.ne.u32") set(w(1) != w(2));
    else if (n == "setp.ge.u64") set(x(1) >= x(2));
    else if (n == "selp.b32") set(x(3) != 0 ? w(1) : w(2));
    else if (n == "mov.u32") set(w(1));
    else if (n == "cvt.u64.u32" || n == "cvt.u32.u64" || n == "cvt.u32.u16") set(n == "cvt.u32.u16" ? x(1) & 0xffffu : w(1));
    else if (n == "mov.b32" && i.list.empty()) set(w(1));
    else if (n == "mov.b32" && i.text.starts_with("mov.b32 {")) {
      registers_[i.list[0].value] = w(0) & 0xffffu;
      registers_[i.list[1].value] = w(0) >> 16;
    } else if (n == "mov.b32") set(of(i.list[0]) | of(i.list[1]) << 16);
    else return false;
    return true;
  }
  bool access(const instruction& i, const unsigned char* arguments) {
    const std::string_view n = i.name;
    const std::size_t size = n.ends_with("u64") ? 8 : n.ends_with("u16") ? 2 : n.ends_with("u8") ? 1 : 4;
    std::vector<place> registers = i.list;
    const bool load = n.starts_with("ld.");
    std::size_t at = 0;
    if (registers.empty()) registers.push_back(load ? i.operands[at++] : i.operands.back());
    if (n.starts_with("ld.param")) {
      std::memcpy(&registers_[registers[0].value], arguments + i.operands[2].value, size);
      return true;
    }
    const std::uint64_t address =
        of(i.operands[at]) + (i.operands.size() > at + 1 && (load || !i.list.empty()) ? of(i.operands[at + 1]) : 0);
    if (address % (size * registers.size()) != 0) return false;
    for (std::size_t k = 0; k < registers.size(); ++k) {
      auto* memory = reinterpret_cast<unsigned char*>(address) + k * size;
      std::uint64_t value = load ? 0 : of(registers[k]);
      if (load) std::memcpy(&value, memory, size);
      else std::memcpy(memory, &value, size);
      if (load) registers_[registers[k].value] = value;
    }
    return true;
  }
};

}  // namespace isotope::cuda_test
