#pragma once
/// A backend outside the library, small enough to read: f32 alone, one float at a time, no threads. What a backend has to bring:
/// a list of kernels, a device that opens, and a session that walks the plan.
#include <isotope/backend/session/initial_tensor.hpp>
#include <isotope/backend/session/ports.hpp>
#include <isotope/backend/session/state_dict.hpp>
#include <isotope/core/device.hpp>
#include <isotope/core/step.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace toy {
namespace iso = isotope;

/// A tensor of a step: where it starts, its dimensions and strides in elements.
struct view {
  float* at = nullptr;
  iso::shape dims;
  iso::extents strides{};
  float& operator()(const iso::extents& i) const {
    std::int64_t n = 0;
    for (std::size_t k = 0; k < i.size(); ++k) n += i[k] * strides[k];
    return at[n];
  }
};
/// f(i) for every index of a shape, row-major.
template <class F> void each(const iso::shape& s, F f) {
  iso::extents i{};
  for (std::int64_t left = s.count(); left > 0; --left) {
    f(i);
    for (int k = s.rank - 1; k >= 0 && ++i[std::size_t(k)] == s[k]; --k) i[std::size_t(k)] = 0;
  }
}

using element_function = float (*)(const float* x, float scalar);
struct call {
  std::vector<view> in, out;
  const iso::attributes* attr = nullptr;
  const iso::step_scalars* scalars = nullptr;
  std::span<const iso::micro_op> body;
  std::vector<element_function> code;  // of the body's instructions
};

/// The kernels: `run` for an op that is a step of its own, `of` for an element-wise one.
template <class Op, class P, class Set> struct kernel;
namespace op = iso::op;
template <class P, class S> struct kernel<op::elementwise, P, S> {
  static constexpr std::uint32_t inplace = 0xff;  // every element is read before its result is written
  static void run(const call& c) {
    each(c.out[0].dims, [&](const iso::extents& i) {
      float v[iso::max_inputs + iso::max_micro_ops];  // operands, then results: as micro_op::arg counts them
      for (std::size_t k = 0; k < c.in.size(); ++k) v[k] = c.in[k](i);
      for (std::size_t j = 0; j < c.body.size(); ++j) {
        float x[3]{};
        for (std::size_t k = 0; k < 3 && c.body[j].arg[k] >= 0; ++k) x[k] = v[c.body[j].arg[k]];
        v[iso::max_inputs + j] = c.code[j](x, float(c.body[j].scalar));
      }
      for (std::size_t j = 0; j < c.body.size(); ++j)
        if (c.body[j].store >= 0) c.out[std::size_t(c.body[j].store)](i) = v[iso::max_inputs + j];
    });
  }
};
template <class P, class S> struct kernel<op::matmul, P, S> {  // of two matrices
  static void run(const call& c) {
    each(c.out[0].dims, [&](const iso::extents& i) {
      float sum = 0;
      for (std::int64_t k = 0; k < c.in[0].dims[1]; ++k) sum += c.in[0]({i[0], k}) * c.in[1]({k, i[1]});
      c.out[0](i) = float(op::matmul::constants::of(*c.attr).alpha) * sum;
    });
  }
};
template <class P, class S> struct kernel<op::sum, P, S> {
  static void run(const call& c) {
    each(c.out[0].dims, [&](const iso::extents& i) { c.out[0](i) = 0; });
    each(c.in[0].dims, [&](const iso::extents& i) {
      const auto [axes, keep, format] = op::sum::constants::of(*c.attr);
      iso::extents o{};
      std::size_t axis = 0;
      for (std::size_t k = 0; k < std::size_t(c.in[0].dims.rank); ++k) {
        const bool reduced = ((axes >> k) & 1) != 0;
        if (!reduced) o[axis] = i[k];
        if (!reduced || keep) ++axis;
      }
      c.out[0](o) += c.in[0](i);
    });
  }
};
template <class P, class S> struct kernel<op::mean, P, S> {
  static void run(const call& c) {
    kernel<op::sum, P, S>::run(c);
    const auto terms = float(c.in[0].dims.count()) / float(c.out[0].dims.count());
    each(c.out[0].dims, [&](const iso::extents& i) { c.out[0](i) /= terms; });
  }
};
template <class P, class S> struct kernel<op::fill, P, S> {
  static void run(const call& c) {
    each(c.out[0].dims, [&](const iso::extents& i) { c.out[0](i) = float(op::fill::constants::of(*c.attr).x); });
  }
};
template <class P, class S> struct kernel<op::global_norm, P, S> {
  static void run(const call& c) {
    float sum = 0;
    each(c.in[0].dims, [&](const iso::extents& i) { sum += c.in[0](i) * c.in[0](i); });
    c.out[0]({}) = std::sqrt(sum);
  }
};
template <class P, class S> struct kernel<op::sgd, P, S> {  // without decay and clipping
  static void run(const call& c) {
    each(c.in[0].dims, [&](const iso::extents& i) {
      c.out[1](i) = c.scalars->momentum * c.out[1](i) + c.in[2](i);
      c.out[0](i) -= c.scalars->learning_rate * c.out[1](i);
    });
  }
};
// clang-format off
template <class P, class S> struct kernel<op::add, P, S> { static float of(const float* x, float) { return x[0] + x[1]; } };
template <class P, class S> struct kernel<op::sub, P, S> { static float of(const float* x, float) { return x[0] - x[1]; } };
template <class P, class S> struct kernel<op::mul, P, S> { static float of(const float* x, float) { return x[0] * x[1]; } };
template <class P, class S> struct kernel<op::scale, P, S> { static float of(const float* x, float k) { return k * x[0]; } };
template <class P, class S> struct kernel<op::square, P, S> { static float of(const float* x, float) { return x[0] * x[0]; } };
template <class P, class S> struct kernel<op::tanh, P, S> { static float of(const float* x, float) { return std::tanh(x[0]); } };
template <class P, class S> struct kernel<op::tanh_grad, P, S> { static float of(const float* x, float) { return x[1] * (1 - x[0] * x[0]); } };
// clang-format on

/// What stands behind an entry of the kernel table.
struct entry {
  void (*run)(const call&) = nullptr;
  element_function of = nullptr;
};
template <class K> constexpr entry entry_of() {
  if constexpr (requires(const call& c) { K::run(c); }) return {&K::run, nullptr};
  else return {nullptr, &K::of};
}
template <class T>
inline constexpr auto entries =
    []<class... K>(boost::mp11::mp_list<K...>) { return std::array<entry, sizeof...(K)>{entry_of<K>()...}; }(iso::target_kernels<T>{});

template <class T> class session {
 public:
  /// The plan outlives the session, or comes with it.
  explicit session(const iso::plan_view& p, std::unique_ptr<iso::dynamic_plan> owned = {})
      : owned_(std::move(owned)), view_(p), memory_(std::size_t(p.totals.bytes) / sizeof(float)) {
    std::int64_t end = 0;
    for (std::size_t k = 0; k < base_.size(); end += view_.totals.region[k++])
      base_[k] = memory_.data() + end / std::int64_t(sizeof(float));
    for (const auto& s : view_.steps) {
      call c;
      for (int k = 0; k < s.inputs + s.outputs; ++k)
        (k < s.inputs ? c.in : c.out).push_back(bind(view_.operands[std::size_t(s.operands + k)]));
      c.attr = &s.attr;
      c.body = view_.micro_ops.subspan(std::size_t(s.body), s.body_size);
      for (const auto& m : c.body)
        c.code.push_back(entries<T>[std::size_t(iso::find_kernel(iso::kernel_table<T>, m.op, view_.totals.program))].of);
      calls_.push_back(c);
    }
  }
  std::span<const iso::slot> parameters() const { return view_.slots; }
  void initialize(std::uint64_t seed) {
    std::fill(memory_.begin(), memory_.end(), 0.f);
    for (const auto& s : view_.slots)
      iso::fill_initial(s.init, seed, iso::stream_of(s.path.view()),
                        {base_[std::size_t(iso::value_kind::param)] + s.at, std::size_t(s.dims.count())});
  }
  template <class E> iso::result<std::span<E>> input(std::string_view label) {
    const auto p = iso::typed_port(view_.inputs, label, sizeof(E), "input");
    if (!p) return p.error();
    return std::span<E>(bind((*p)->where).at, std::size_t((*p)->where.dims.count()));
  }
  iso::step_report run(const iso::step_scalars& scalars) {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      calls_[i].scalars = &scalars;
      entries<T>[std::size_t(view_.steps[i].kernel)].run(calls_[i]);
    }
    return {double(*bind(iso::find_port(view_.outputs, "loss")->where).at), 0, false};
  }
  iso::result<void> read(iso::tensor_kind what, std::size_t k, std::span<float> out) const {
    const auto at = iso::locate(view_, what, k, std::int64_t(out.size()));
    if (!at) return at.error();
    std::copy_n(base_[std::size_t(at->region)] + at->at / std::int64_t(sizeof(float)), out.size(), out.begin());
    return {};
  }

 private:
  std::unique_ptr<iso::dynamic_plan> owned_;
  iso::plan_view view_;
  std::vector<float> memory_;
  std::array<float*, iso::value_kinds> base_{};
  std::vector<call> calls_;
  view bind(const iso::operand& o) const { return {base_[std::size_t(o.region)] + o.at / std::int64_t(sizeof(float)), o.dims, o.strides}; }
};
template <iso::Target T> struct device {
  static iso::result<device> open() { return device{}; }
  template <class Step> iso::result<session<T>> load() const { return session<T>(Step::view()); }
  iso::result<session<T>> load(iso::dynamic_plan plan) const {
    auto owned = std::make_unique<iso::dynamic_plan>(std::move(plan));
    const iso::plan_view view = *owned;
    return session<T>(view, std::move(owned));
  }
};

struct backend {
  static constexpr std::string_view name = "toy";
  static constexpr int preference = -1;
  static constexpr std::int64_t chunk_bytes = 0;
  template <class... Op> using of = boost::mp11::mp_list<kernel<Op, iso::precision::f32, iso::kernels::reference>...>;
  using kernels = of<op::elementwise, op::matmul, op::sum, op::mean, op::fill, op::global_norm, op::sgd, op::add, op::sub, op::mul,
                     op::scale, op::square, op::tanh, op::tanh_grad>;
  template <class T> using device = toy::device<T>;
};
static_assert(iso::Backend<backend>);

}  // namespace toy
