#pragma once
/// Ops as plain calls on tensors that the application owns, for training loops written by hand. They share the device of sessions, and each call is over
/// when it returns.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/tape.hpp"
#include "../op/adamw.hpp"
#include "../op/cast.hpp"
#include "../op/copy.hpp"
#include "../op/fill.hpp"
#include "../op/global_norm.hpp"
#include "../op/matmul.hpp"
#include "../op/scale.hpp"
#include "device_tensor.hpp"
#include "eager.hpp"

namespace isotope {

/// The gradients of a matrix product.
template <Queue Q> struct matmul_gradients {
  device_tensor<Q> a, b;
};
/// What AdamW keeps of one tensor of weights. In a program of less precision than f32 `weights` holds the wide copy that is updated and `rounded` what
/// products read; else `rounded` is not there.
template <Queue Q> struct adamw_tensors {
  device_tensor<Q> weights, first_moment, second_moment, rounded;
  /// What products read.
  const device_tensor<Q>& values() const { return rounded.valid() ? rounded : weights; }
};
/// How a step of AdamW treats one tensor, beside what step_scalars says.
struct adamw_options {
  bool decay = true;      // whether the weights decay
  double rate_scale = 1;  // factor on the learning rate
};

/// Made by `ops_on(device)`. Every call has the bits of a step of a plan with the same kernels.
template <Queue Q> class tensor_ops {
 public:
  using target = typename Q::target;
  using array = device_tensor<Q>;
  using machine = eager_machine<Q>;

  explicit tensor_ops(std::shared_ptr<op_runner<Q>> runner) : runner_(std::move(runner)) {}

  /// What ops read besides tensors: the optimiser's constants, seed and counter of random numbers.
  step_scalars scalars;

  /// Copies numbers to the device. @error invalid_argument for another number of elements than the shape has; out_of_memory, device_lost
  template <class E> result<array> upload(const shape& s, std::span<const E> from) {
    if (std::int64_t(from.size()) != s.count())
      return fail(errc::invalid_argument, std::to_string(from.size()) + " numbers for " + std::to_string(s.count()) + " elements", "upload",
                  "give one for each element");
    auto r = make(s, format_of<E>);
    if (!r) return r;
    if (auto done = r->memory_->upload(0, std::as_bytes(from)); !done) return done.error();
    return r;
  }
  template <class E> result<array> upload(const shape& s, const std::vector<E>& from) { return upload(s, std::span<const E>(from)); }
  /// @error invalid_argument for a shape that no tensor has; out_of_memory, device_lost
  result<array> zeros(const shape& s, dtype t = target::precision::type) {
    auto r = make(s, t);
    if (!r) return r;
    if (auto done = r->memory_->clear(); !done) return done.error();
    return r;
  }
  /// Copies a tensor's elements to the host, row-major. @error invalid_argument for another type than the tensor's; device_lost
  template <class E> result<std::vector<E>> download(const array& x) const {
    if (!x.valid() || x.type_ != format_of<E>)
      return fail(errc::invalid_argument, x.valid() ? "the tensor holds " + std::string(name_of(x.type_)) : "an empty tensor", "download",
                  "ask for its own type");
    std::vector<E> r(std::size_t(x.count()));
    if (auto done = x.memory_->download(x.first_ * size_of(x.type_), std::as_writable_bytes(std::span(r))); !done) return done.error();
    return r;
  }

  /// f of tensors, where f is made of ops of the library or of others: `ops.call([](auto x, auto w) { return gelu(matmul(x, w)); }, x, w)`.
  /// @error invalid_model with what the ops refused, wrong_device, out_of_memory, device_lost
  template <class F, class... Arrays> result<array> call(const F& f, const Arrays&... x) {
    machine m(runner_);
    m.scalars = scalars;
    return release(m, f(adopt(m, x)...));
  }

  /// a b, as `matmul`: a (..., M, K), b (..., K, N). @error as `call`
  result<array> matmul(const array& a, const array& b, double alpha = 1) {
    return call([&](auto x, auto y) { return isotope::matmul(x, y, alpha); }, a, b);
  }
  /// The gradients alpha dy b^T of a, in the format of a, and alpha a^T dy of b, in accumulation format, as b is a weight. @error as `call`
  result<matmul_gradients<Q>> matmul_gradient(const array& a, const array& b, const array& dy, double alpha = 1) {
    machine m(runner_);
    m.scalars = scalars;
    node n;
    n.becomes(rules<op::matmul>);
    n.in[0] = adopt(m, a).id;
    n.in[1] = adopt(m, b, value_kind::param).id;
    const auto given = adopt(m, dy);
    n.out[0] = given.id;
    n.attr = op::matmul::constants{.alpha = alpha};
    if (!m.ok()) return failed(m);
    shape_rule rule(m.g, {n.in.data(), 2}, n.attr);
    n.rules->infer(rule);
    if (rule.failed() || rule.out(0).dims != dy.dims()) {
      message why;
      why << "the gradient " << dy.dims() << " of a product of " << a.dims() << " and " << b.dims();
      return fail(errc::invalid_model, std::string(why.view()), "matmul_gradient", "give it the shape of the product");
    }
    n.attr = rule.attr;
    for (int k = 0; k < 2; ++k) m.g.values[std::size_t(n.in[std::size_t(k)])].wants_gradient = true;
    pullback p(m, n);
    p.dy_[0] = given.id;
    n.rules->gradient(p);
    auto da = release(m, {&m, p.given_[0]});
    if (!da) return da.error();
    auto db = release(m, {&m, p.given_[1]});
    if (!db) return db.error();
    return matmul_gradients<Q>{*std::move(da), *std::move(db)};
  }

  /// sqrt(sum of squares), times scalars.gradient_scale, of one flat buffer: a tensor () in accumulation format. @error as `call`
  result<array> global_norm(const array& gradient) {
    if (gradient.valid() && !is_floating(gradient.type_))
      return fail(errc::invalid_argument, "the norm of " + std::string(name_of(gradient.type_)) + " numbers", "global_norm",
                  "cast them first");
    auto flat = gradient.part(0, {gradient.count()});
    if (!flat) return flat;
    return call([](auto g) { return apply<op::global_norm>(place::current(), {}, g); }, *flat);
  }
  /// Scales gradients in place by min(1, limit / (n + 1e-6)), where n is the norm of all of them together, which is returned;
  /// it includes scalars.gradient_scale.
  /// Source: Pascanu et al. 2012, arXiv:1211.5063. @error as `call`
  result<double> clip_gradients(std::span<const array> gradients, double limit) {
    double norm = 0;
    for (const array& g : gradients) {
      auto own = global_norm(g);
      if (!own) return own.error();
      auto n = number(*own);
      if (!n) return n;
      norm = std::hypot(norm, *n);
    }
    const float factor = float(limit) / (float(norm) + 1e-6f);
    if (limit > 0 && factor < 1)
      for (const array& g : gradients)
        if (auto r = overwrite(g, [&](auto x) { return scale(x, double(factor)); }); !r) return r.error();
    return norm;
  }
  result<double> clip_gradients(const array& gradient, double limit) { return clip_gradients(std::span(&gradient, 1), limit); }

  /// Moments of zeros, and in programs of less precision the rounded copy, for weights in accumulation format. @error as `call`
  result<adamw_tensors<Q>> adamw(const array& weights) {
    if (auto fits = in_accumulation_format(weights, "weights"); !fits) return fits.error();
    adamw_tensors<Q> r;
    r.weights = weights;
    for (array* moment : {&r.first_moment, &r.second_moment}) {
      auto m = zeros(weights.dims(), accum);
      if (!m) return m.error();
      *moment = *std::move(m);
    }
    if (accum == target::precision::type) return r;
    auto rounded = call([](auto x) { return cast(x, target::precision::type); }, weights);
    if (!rounded) return rounded.error();
    r.rounded = *std::move(rounded);
    return r;
  }
  /// One update of AdamW, in place, with the constants in `scalars`, among them the number of the update in optimizer_step. Where `norm` and `loss` are given,
  /// an update by numbers that are not finite is left out; with `norm`, scalars.clip_norm clips. @error as `call`
  result<void> adamw_step(const adamw_tensors<Q>& x, const array& gradient, const adamw_options& o = {}, const array& norm = {},
                          const array& loss = {}) {
    for (const auto& [tensor, what] : {std::pair(&x.weights, "weights"), std::pair(&x.first_moment, "a first moment"),
                                       std::pair(&x.second_moment, "a second moment"), std::pair(&gradient, "a gradient")})
      if (auto fits = in_accumulation_format(*tensor, what); !fits) return fits;
    machine m(runner_);
    m.scalars = scalars;
    const shape flat{x.weights.count()};
    std::vector<std::int32_t> in;
    const auto take = [&](const array& t) { in.push_back(adopt(m, reshaped(t, flat)).id); };
    take(x.weights), take(x.first_moment), take(x.second_moment);
    if (x.rounded.valid()) take(x.rounded);
    take(gradient);
    for (const array* t : {&norm, &loss}) in.push_back(t->valid() ? adopt(m, *t).id : fill(m, {}, accum).id);
    if (!m.ok()) return failed(m);
    const op::update_rule::constants c{
        .decaying = o.decay ? flat[0] : 0, .shadow = x.rounded.valid(), .clips = norm.valid(), .rate_scale = o.rate_scale};
    m.apply(rules<op::adamw>, in, c, place::current());
    return m.ok() ? result<void>{} : failed(m);
  }

  /// Device memory taken for tensors, those in use and those that were given back.
  std::int64_t bytes() const { return runner_->bytes(); }

 private:
  static constexpr dtype accum = accum_of(target::precision::type);
  std::shared_ptr<op_runner<Q>> runner_;

  static failure failed(const machine& m) {
    return m.device_failure() != nullptr ? *m.device_failure() : diagnosed(errc::invalid_model, std::string(m.g.error.view()));
  }
  /// Refuses a tensor whose elements an update could not read. `what` names it.
  static result<void> in_accumulation_format(const array& x, const std::string& what) {
    if (!x.valid() || x.type_ == accum) return {};
    return fail(errc::invalid_argument, what + " in " + std::string(name_of(x.type_)), "adamw",
                "give it in " + std::string(name_of(accum)));
  }
  result<array> make(const shape& s, dtype t) {
    if (!s.fault().empty() || s.has_scalar())
      return fail(errc::invalid_argument, "a tensor whose shape " + std::string(s.has_scalar() ? "is known late" : s.fault()), "tensor_ops",
                  "give constant sizes of at least 0");
    auto b = runner_->allocate(s.count() * size_of(t));
    if (!b) return b.error();
    return array(*std::move(b), 0, s, t);
  }
  /// The machine's tensor for one of the caller's; an error of the machine for one that is empty or lies on another device.
  tensor<machine> adopt(machine& m, const array& x, value_kind kind = value_kind::input) const {
    if (x.valid() && x.memory_->on_device_of(*runner_)) return m.adopt(x.memory_, x.dims_, x.type_, x.first_, kind);
    if (x.valid()) {
      m.stop(fail(errc::wrong_device, "the tensor lies on another device", "tensor_ops", "make it with ops of this device"));
    } else {
      message why;
      m.fail(why << "an empty tensor: make it by upload, zeros or an op", place::current());
    }
    return {&m, -1};
  }
  /// The caller's tensor for one of the machine's.
  result<array> release(machine& m, tensor<machine> y) const {
    if (m.ok() && y.valid() && !m.g.dense(y.id)) y = contiguous(y);
    if (!m.ok() || !y.valid()) return failed(m);
    return array(m.memory_of(y.id), m.g.root_offset(y.id), y.dims(), y.type());
  }
  static array reshaped(const array& x, const shape& s) {
    array r = x;
    if (x.valid() && s.count() == x.count()) r.dims_ = s;
    return r;
  }
  /// x = f(x).
  template <class F> result<void> overwrite(const array& x, const F& f) {
    machine m(runner_);
    m.scalars = scalars;
    const auto old = adopt(m, x);
    const auto y = f(old);
    if (m.ok() && y.dims() != old.dims())
      return fail(errc::invalid_model, "another shape than the tensor's", "overwrite", "keep the shape");
    if (m.ok()) m.overwrite(old.id, y.id);
    return m.ok() ? result<void>{} : failed(m);
  }
  result<double> number(const array& x) const {
    std::vector<std::byte> bytes(std::size_t(size_of(x.type_)));
    if (auto r = x.memory_->download(x.first_ * size_of(x.type_), bytes); !r) return r.error();
    return element_at(bytes.data(), x.type_);
  }
};

/// Ops on a device, beside the sessions that it has. @error out_of_memory, device_lost
template <class Device> auto ops_on(const Device& d) -> result<tensor_ops<typename Device::queue_type>> {
  using Q = typename Device::queue_type;
  auto r = op_runner<Q>::on(d);
  if (!r) return r.error();
  return tensor_ops<Q>(*std::move(r));
}

}  // namespace isotope
