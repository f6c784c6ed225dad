#pragma once
/// Runs model code op by op with the reference kernels: the oracle of plans, and for debugging. Slow, allocates per value.
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/graph.hpp"
#include "../../core/initialize.hpp"
#include "../../op/elementwise.hpp"
#include "../../plan/plan.hpp"
#include "table.hpp"
#include "thread_pool.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

/// A Machine that records as `graph<T>` does and runs every node at once, views included, gradients included: after
/// `differentiate(machine, loss.id)` the values named by parameter::grad hold the gradients.
/// Parameters and inputs take the data given by `set`; a parameter without data starts from its initializer.
template <Target T> class eager : public tape, private node_observer {
 public:
  using target = T;
  using oracle = isotope::target<typename T::backend, typename T::precision, kernels::reference, typename T::extra_kernels>;

  explicit eager(std::uint64_t seed = 0) : tape(T::precision::type), seed_(seed) {
    observer = this;
    scalars.seed = seed;
  }
  eager(const eager&) = delete;
  eager& operator=(const eager&) = delete;

  step_scalars scalars;

  /// Data of a parameter or input, to be given before the model declares it.
  template <class E> void set(std::string_view label, std::span<const E> data) {
    auto& bytes = given_[std::string(label)];
    bytes.assign(reinterpret_cast<const std::byte*>(data.data()), reinterpret_cast<const std::byte*>(data.data() + data.size()));
  }

  std::int32_t input(const isotope::name& label, const shape& s, dtype t, place at) {
    const auto id = tape::input(label, s, t, at);
    if (id >= 0 && !has(id) && !take(id, label, at)) return -1;
    return id;
  }
  /// Zeros, or the data given by `set`.
  std::int32_t state(const isotope::name& label, const shape& s, dtype t, place at) {
    const auto id = tape::state(label, s, t, at);
    if (id < 0 || has(g.root(id))) return id;
    if (given_.count(std::string(label.view())) != 0) return take(id, label, at) ? id : -1;
    make(id);
    return id;
  }
  std::int32_t param(const isotope::name& path, const shape& s, const param_options& o, place at) {
    const auto id = tape::param(path, s, o, at);
    if (id < 0 || has(id)) return id;
    if (given_.count(std::string(path.view())) != 0) return take(id, path, at) ? id : -1;
    auto& bytes = make(id);
    using E = typename T::precision::storage;
    for_initial_runs(o.init, seed_, stream_of(path.view()), s.count(), 0, s.count(),
                     [&](std::int64_t i, const double* run, std::int64_t some) {
                       for (std::int64_t k = 0; k < some; ++k) {
                         const E x = E(typename T::precision::accum(run[k]));
                         std::memcpy(bytes.data() + std::size_t(i + k) * sizeof(E), &x, sizeof(E));
                       }
                     });
    return id;
  }

  /// A value's elements in row-major order, widened to f64.
  std::vector<double> read(std::int32_t id) const {
    const view v = view_of(id);
    std::vector<double> r(std::size_t(v.dims.count()));
    extents at{};
    for (auto& x : r) {
      std::int64_t k = 0;
      for (int i = 0; i < v.dims.rank; ++i) k += at[std::size_t(i)] * v.strides[std::size_t(i)];
      x = element(v, k);
      for (int i = v.dims.rank - 1; i >= 0 && ++at[std::size_t(i)] == v.dims[i]; --i) at[std::size_t(i)] = 0;
    }
    return r;
  }
  std::vector<double> read(tensor<eager> t) const { return read(t.id); }

 private:
  std::uint64_t seed_;
  std::map<std::string, std::vector<std::byte>> given_;
  std::vector<std::vector<std::byte>> data_;  // by value; roots only
  std::vector<std::byte> scratch_;

  bool has(std::int32_t id) const { return std::size_t(id) < data_.size() && !data_[std::size_t(id)].empty(); }
  std::vector<std::byte>& make(std::int32_t id) {
    if (data_.size() <= std::size_t(id)) data_.resize(std::size_t(id) + 1);
    const value& v = describe(id);
    data_[std::size_t(id)].resize(std::size_t(v.dims.count() * size_of(v.type)) + 64);  // never empty: kernels may form a pointer
    return data_[std::size_t(id)];
  }
  bool take(std::int32_t id, const isotope::name& label, place at) {
    const auto found = given_.find(std::string(label.view()));
    const value& v = describe(id);
    const auto bytes = std::size_t(v.dims.count() * size_of(v.type));
    message m;
    if (found == given_.end() || found->second.size() != bytes) {
      fail(m << "'" << label << "' needs " << std::int64_t(bytes) << " bytes of data, "
             << (found == given_.end() ? "none" : "another number") << " were given: call set first",
           at);
      return false;
    }
    std::memcpy(make(id).data(), found->second.data(), bytes);
    return true;
  }
  static double element(const view& v, std::int64_t k) {
    switch (v.type) {
      case dtype::f32: return double(v.as<const float>()[k]);
      case dtype::bf16: return double(float(v.as<const bfloat16>()[k]));
      case dtype::f16: return double(float(v.as<const float16>()[k]));
      case dtype::f64: return v.as<const double>()[k];
      case dtype::i32: return double(v.as<const std::int32_t>()[k]);
      case dtype::i64: return double(v.as<const std::int64_t>()[k]);
      case dtype::u16: return double(v.as<const std::uint16_t>()[k]);
      case dtype::u32: return double(v.as<const std::uint32_t>()[k]);
      case dtype::u8:
      case dtype::boolean: return double(v.as<const std::uint8_t>()[k]);
    }
    return 0;
  }
  view view_of(std::int32_t id) const {
    const value& v = describe(id);
    const auto root = std::size_t(g.root(id));
    auto* base = const_cast<std::byte*>(data_[root].data());
    return {base + g.root_offset(id) * size_of(v.type), v.dims, v.strides, v.type};
  }

  void recorded(tape&, std::int32_t index) override {
    const node n = g.nodes[std::size_t(index)];
    for (int k = 0; k < n.outputs(); ++k)
      if (describe(n.out[std::size_t(k)]).base < 0) make(n.out[std::size_t(k)]);
    if (n.op->kind == op_kind::view) return;
    const bool fused = n.op->kind == op_kind::elementwise;
    const op_info* op = fused ? &info<op::elementwise> : n.op;
    const auto kernel = find_kernel(kernel_table<oracle>, op, g.program);
    instruction one;
    if (fused) {
      micro_op m;
      m.op = n.op;
      for (int k = 0; k < n.inputs() && k < 3; ++k) m.arg[std::size_t(k)] = std::int8_t(k);
      m.store = 0;
      m.type = describe(n.out[0]).type;
      m.scalar = n.attr.scalar();
      one = resolve(m, kernel_table<oracle>, code_of<oracle>(), g.program);
    }
    if (kernel < 0 || (fused && one.run == nullptr)) {
      message m;
      fail(m << "no reference kernel for " << n.op->name << " in " << name_of(g.program), place::current());
      return;
    }
    std::array<view, max_inputs> in{};
    std::array<view, max_outputs> out{};
    for (int k = 0; k < n.inputs(); ++k) {
      in[std::size_t(k)] = view_of(n.in[std::size_t(k)]);
      if (fused) repeat_to(in[std::size_t(k)], describe(n.out[0]).dims);
    }
    for (int k = 0; k < n.outputs(); ++k) out[std::size_t(k)] = view_of(n.out[std::size_t(k)]);
    launch l;
    l.in = {in.data(), std::size_t(n.inputs())};
    l.out = {out.data(), std::size_t(n.outputs())};
    l.attr = &n.attr;
    if (fused) l.body = {&one, 1};
    l.scalars = &scalars;
    l.ordinal = n.ordinal;
    if (const auto& info = kernel_table<oracle>[std::size_t(kernel)]; info.scratch != nullptr) {
      std::array<shape, max_inputs> si{};
      std::array<shape, max_outputs> so{};
      for (std::size_t k = 0; k < l.in.size(); ++k) si[k] = in[k].dims;
      for (std::size_t k = 0; k < l.out.size(); ++k) so[k] = out[k].dims;
      scratch_.resize(std::size_t(info.scratch({{si.data(), l.in.size()}, {so.data(), l.out.size()}, &n.attr})));
      l.scratch = scratch_.data();
    }
    const float_environment mode(subnormals::keep);
    code_of<oracle>()[std::size_t(kernel)].run(l);
  }
  static void repeat_to(view& x, const shape& y) {
    operand o;
    o.dims = x.dims;
    o.strides = x.strides;
    plan_detail::repeat_to(o, y);
    x.dims = o.dims;
    x.strides = o.strides;
  }
};

}  // namespace arch
}  // namespace isotope::cpu
