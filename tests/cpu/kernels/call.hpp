#pragma once
/// Runs one cpu kernel on tensors that a test owns.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/backend/cpu/table.hpp>
#include <isotope/backend/cpu/thread_pool.hpp>
#include <isotope/core/philox.hpp>

#include <initializer_list>
#include <memory>
#include <vector>

namespace isotope_test {
using namespace isotope;

/// A dense tensor in its own memory, with its values also in f64.
struct array {
  std::vector<std::byte> bytes;
  cpu::view v;

  array(const shape& s, dtype t, double x = 0) {
    v.dims = s;
    v.strides = dense_strides(s);
    v.type = t;
    bytes.resize(std::size_t(s.count() * size_of(t)) + 64);
    v.data = bytes.data();
    for (std::int64_t i = 0; i < s.count(); ++i) set(i, x);
  }
  array(array&&) = default;
  array& operator=(array&&) = default;
  /// Random values in [low, high); equal seeds give equal values.
  static array random(const shape& s, dtype t, std::uint64_t seed, double low = -1, double high = 1) {
    array r(s, t);
    for (std::int64_t i = 0; i < s.count(); ++i) r.set(i, low + (high - low) * double(philox(seed, std::uint64_t(i), 0, 7)[0]) * 0x1p-32);
    return r;
  }
  /// The element at an offset in memory, regardless of the shape.
  double at(std::int64_t i) const {
    switch (v.type) {
      case dtype::bf16: return double(float(v.as<bfloat16>()[i]));
      case dtype::i32: return v.as<std::int32_t>()[i];
      case dtype::boolean: return v.as<std::uint8_t>()[i];
      case dtype::f64: return v.as<double>()[i];
      default: return double(v.as<float>()[i]);
    }
  }
  void set(std::int64_t i, double x) {
    switch (v.type) {
      case dtype::bf16: v.as<bfloat16>()[i] = bfloat16(float(x)); break;
      case dtype::i32: v.as<std::int32_t>()[i] = std::int32_t(x); break;
      case dtype::boolean: v.as<std::uint8_t>()[i] = x != 0; break;
      case dtype::f64: v.as<double>()[i] = x; break;
      default: v.as<float>()[i] = float(x);
    }
  }
  std::int64_t count() const { return v.dims.count(); }
  /// A view with the last two axes exchanged.
  cpu::view transposed() const {
    cpu::view r = v;
    const auto n = std::size_t(v.dims.rank);
    std::swap(r.dims.d[n - 1], r.dims.d[n - 2]);
    std::swap(r.strides[n - 1], r.strides[n - 2]);
    return r;
  }
};

/// Makes an instruction of a body from the kernel K of its op. In `args`, k is operand k and max_inputs + j is the result of instruction j.
template <class K> cpu::instruction instruct(dtype t, std::vector<int> args, int store = -1, double scalar = 0) {
  const cpu::entry e = cpu::entry_of<K>();
  cpu::instruction i;
  i.run = e.block;
  i.tile = e.tile;
  for (std::size_t k = 0; k < args.size(); ++k) i.arg[k] = std::int8_t(args[k]);
  i.args = std::int8_t(args.size());
  i.store = std::int8_t(store);
  i.type = t;
  i.scalar = scalar;
  return i;
}

/// Runs one launch with scratch memory that is filled with NaN.
struct call {
  std::vector<cpu::view> in, out;
  attributes attr;
  std::vector<cpu::instruction> body;
  step_scalars scalars;
  std::uint32_t ordinal = 0;
  std::uint8_t accumulate = 0;

  template <class Kernel> void run(cpu::thread_pool* pool = nullptr) const {
    std::vector<std::byte> workspace;
    cpu::launch l;
    if constexpr (requires(const step_shapes& s) { Kernel::scratch(s); }) {
      std::vector<shape> ins, outs;
      for (const auto& x : in) ins.push_back(x.dims);
      for (const auto& y : out) outs.push_back(y.dims);
      const auto n = std::size_t(Kernel::scratch({ins, outs, &attr}));
      workspace.assign(n + 512, std::byte(0xff));
      auto p = (reinterpret_cast<std::uintptr_t>(workspace.data()) + 255) / 256 * 256;
      l.scratch = reinterpret_cast<void*>(p);
      guard_ = reinterpret_cast<std::byte*>(p) + n;
    }
    l.in = in;
    l.out = out;
    l.attr = &attr;
    l.body = body;
    l.pool = pool;
    l.scalars = &scalars;
    l.ordinal = ordinal;
    l.accumulate = accumulate;
    Kernel::run(l);
    scratch_kept = true;
    if (guard_ != nullptr)
      for (auto* b = guard_; b != workspace.data() + workspace.size(); ++b) scratch_kept = scratch_kept && *b == std::byte(0xff);
    guard_ = nullptr;
  }
  mutable bool scratch_kept = true;  // whether nothing was written after the declared scratch bytes

 private:
  mutable std::byte* guard_ = nullptr;
};

}  // namespace isotope_test
