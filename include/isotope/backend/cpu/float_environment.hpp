#pragma once
/// The floating-point mode in which kernels run: round to nearest, exceptions masked, and one choice about subnormals.
///
/// The default is IEEE: subnormals are kept, so a kernel's bits are those of the reference. `flush` treats subnormal operands and results as
/// zero (FTZ and DAZ), which spares a decaying run the slow path of subnormal arithmetic and changes results below 1.2e-38. Products of pairs
/// or tiles of bf16 flush whatever is chosen here: native gemms make up for it. A new thread inherits the mode of the thread that makes it, and a
/// program linked with -ffast-math starts in flush mode, so the pool sets the mode explicitly on every thread that takes part.
#include <cstdint>

namespace isotope::cpu {

enum class subnormals : std::uint8_t { keep, flush };

/// Sets the mode for its lifetime and puts the thread's own mode back.
class float_environment {
 public:
  explicit float_environment(subnormals choice) : saved_(read()) {
    const auto wanted = mode(choice);
    if ((saved_ & control) != wanted) {
      write((saved_ & ~control) | wanted);
      changed_ = true;
    }
  }
  ~float_environment() {
    if (changed_) write((read() & ~control) | (saved_ & control));
  }
  float_environment(const float_environment&) = delete;
  float_environment& operator=(const float_environment&) = delete;

 private:
#if defined(__x86_64__)
  using word = std::uint32_t;  // MXCSR: status flags in bits 0-5, DAZ 6, masks 7-12, rounding 13-14, FTZ 15
  static constexpr word control = 0xffc0;
  static constexpr word mode(subnormals s) { return s == subnormals::flush ? 0x9fc0 : 0x1f80; }
  static word read() { return __builtin_ia32_stmxcsr(); }
  static void write(word w) { __builtin_ia32_ldmxcsr(w); }
#elif defined(__aarch64__)
  using word = std::uint64_t;  // FPCR: traps in bits 8-12 and 15, rounding 22-23, flush 24
  static constexpr word control = 0x01c0'9f00;
  static constexpr word mode(subnormals s) { return s == subnormals::flush ? 0x0100'0000 : 0; }
  static word read() {
    word w;
    asm volatile("mrs %0, fpcr" : "=r"(w));
    return w;
  }
  static void write(word w) { asm volatile("msr fpcr, %0" ::"r"(w)); }
#else
  using word = std::uint32_t;
  static constexpr word control = 0;
  static constexpr word mode(subnormals) { return 0; }
  static word read() { return 0; }
  static void write(word) {}
#endif

  word saved_;
  bool changed_ = false;
};

}  // namespace isotope::cpu
