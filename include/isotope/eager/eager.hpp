#pragma once
/// Runs model code op by op on any device, to look into a model and as the oracle of plans. Each op is waited for, and every value is kept.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/device.hpp"
#include "../core/initialize.hpp"
#include "../core/tape.hpp"
#include "element.hpp"
#include "op_runner.hpp"

namespace isotope {

/// A Machine that records as `graph<T>` does and runs every node at once, views and gradients included: after `differentiate(machine, loss.id)` the values
/// named by parameter::grad hold the gradients. The kernels are those of the target, so that every value has the bits of a plan of that target,
/// unless the plan pads rows of logits (plan/pad_rows.hpp), which adds the gradient of a tied table in another order.
/// Parameters, states and inputs take the data given by `set`; a parameter without data starts from its initializer, a state from zeros.
/// A failure of the device becomes the error of the trace, as a failure of the model does.
template <Queue Q> class eager_machine : public tape, private node_observer {
 public:
  using target = typename Q::target;
  using runner = op_runner<Q>;

  /// Runs on the default device, on one thread where that is the processor.
  explicit eager_machine(std::uint64_t seed = 0) : eager_machine(open(), seed) {}
  /// Runs on an opened device, which may have sessions, too.
  explicit eager_machine(const device<target>& on, std::uint64_t seed = 0) : eager_machine(runner::on(on), seed) {}
  /// Runs where other machines and tensors of the same runner are.
  explicit eager_machine(result<std::shared_ptr<runner>> on, std::uint64_t seed = 0) : tape(target::precision::type), seed_(seed) {
    observer = this;
    kernels = kernel_table<target>;
    scalars.seed = seed;
    if (on) runner_ = *std::move(on);
    else stop(on.error());
  }
  eager_machine(const eager_machine&) = delete;
  eager_machine& operator=(const eager_machine&) = delete;

  step_scalars scalars;

  /// Data of a parameter, state or input, to be given before the model declares it.
  template <class E> void set(std::string_view label, std::span<const E> data) {
    const auto bytes = std::as_bytes(data);
    given_[std::string(label)].assign(bytes.begin(), bytes.end());
  }

  std::int32_t input(const isotope::name& label, const shape& s, dtype t, place at) {
    if (message m; s.has_scalar())
      fail(m << "input '" << label << "' " << s << " has a size known late: run op by op with constant sizes", at);
    const auto id = tape::input(label, s, t, at);
    return id < 0 || has(id) || take(id, label, at) ? id : -1;
  }
  std::int32_t state(const isotope::name& label, const shape& s, dtype t, place at) {
    if (message m; s.has_scalar())
      fail(m << "state '" << label << "' " << s << " has a size known late: run op by op with constant sizes", at);
    const auto id = tape::state(label, s, t, at);
    if (id < 0 || has(g.root(id))) return id;
    if (given_.count(std::string(label.view())) != 0) return take(id, label, at) ? id : -1;
    return make(id) && keep(data_[std::size_t(id)]->clear()) ? id : -1;
  }
  std::int32_t param(const isotope::name& path, const shape& s, const param_options& o, place at) {
    const auto id = tape::param(path, s, o, at);
    if (id < 0 || has(id)) return id;
    if (given_.count(std::string(path.view())) != 0) return take(id, path, at) ? id : -1;
    using E = typename target::precision::storage;
    std::vector<E> start(std::size_t(s.count()));
    for_initial_runs(o.init, seed_, stream_of(path.view()), s.count(), 0, s.count(),
                     [&](std::int64_t i, const double* run, std::int64_t some) {
                       for (std::int64_t k = 0; k < some; ++k) start[std::size_t(i + k)] = E(typename target::precision::accum(run[k]));
                     });
    return put(id, std::as_bytes(std::span(start))) ? id : -1;
  }

  /// A value's elements in row-major order, widened to f64; none for a value that was not made, and after an error of the device.
  std::vector<double> read(std::int32_t id) {
    if (id < 0 || !has(g.root(id))) return {};
    const value& v = describe(id);
    std::vector<std::byte> all(std::size_t(bytes_of(g.root(id))));
    if (!keep(data_[std::size_t(g.root(id))]->download(0, all))) return {};
    std::vector<double> r(std::size_t(v.dims.count()));
    extents at{};
    for (auto& x : r) {
      std::int64_t k = g.root_offset(id);
      for (int i = 0; i < v.dims.rank; ++i) k += at[std::size_t(i)] * v.strides[std::size_t(i)];
      x = element_at(all.data() + k * size_of(v.type), v.type);
      for (int i = v.dims.rank - 1; i >= 0 && ++at[std::size_t(i)] == v.dims[i]; --i) at[std::size_t(i)] = 0;
    }
    return r;
  }
  std::vector<double> read(tensor<eager_machine> t) { return read(t.id); }

  /// A tensor that looks at memory which somebody else owns, too. `kind` is that of a value that the model declares.
  tensor<eager_machine> adopt(std::shared_ptr<device_block<Q>> from, const shape& s, dtype t, std::int64_t offset, value_kind kind) {
    if (!ok()) return {this, -1};
    const auto root = g.add_value({offset + s.count()}, t, kind);
    data_.resize(g.values.size());
    data_[std::size_t(root)] = std::move(from);
    const auto id = g.add_value(s, t, kind);
    g.values[std::size_t(id)].base = root;
    g.values[std::size_t(id)].offset = offset;
    return {this, id};
  }
  /// Copies y over the elements of a value, whose dims and format it has.
  void overwrite(std::int32_t to, std::int32_t y) {
    if (!ok()) return;
    node n;
    n.becomes(rules<op::copy>);
    n.in[0] = y;
    n.out[0] = g.add_value(describe(to).dims, describe(to).type, value_kind::temp);
    value& v = g.values[std::size_t(n.out[0])];
    v.base = to;
    v.strides = describe(to).strides;
    g.nodes.push_back(n);
    recorded(*this, std::int32_t(g.nodes.size()) - 1);
  }
  /// What the device refused or could not do, where that is the error of the trace; null: it is none, or an error of the model.
  const failure* device_failure() const { return failure_ ? &*failure_ : nullptr; }
  /// Makes a failure the error of the trace, unless it has one.
  void stop(const failure& f) {
    message m;
    if (ok()) failure_ = f;
    fail(m << std::string_view(f.line()), place::current());
  }
  /// The memory in which a value lies.
  std::shared_ptr<device_block<Q>> memory_of(std::int32_t id) const { return data_[std::size_t(g.root(id))]; }

 private:
  std::uint64_t seed_;
  std::shared_ptr<runner> runner_;
  std::map<std::string, std::vector<std::byte>> given_;
  std::vector<std::shared_ptr<device_block<Q>>> data_;  // by value; roots only
  std::optional<failure> failure_;

  static result<std::shared_ptr<runner>> open() {
    auto d = device<target>::open({.threads = 1});
    if (!d) return d.error();
    return runner::on(*d);
  }

  bool keep(const result<void>& r) {
    if (!r) stop(r.error());
    return r.ok();
  }
  bool has(std::int32_t id) const { return std::size_t(id) < data_.size() && data_[std::size_t(id)] != nullptr; }
  std::int64_t bytes_of(std::int32_t id) const { return describe(id).dims.count() * size_of(describe(id).type); }
  bool make(std::int32_t id) {
    auto b = runner_->allocate(bytes_of(id));
    if (!b) return stop(b.error()), false;
    if (data_.size() <= std::size_t(id)) data_.resize(std::size_t(id) + 1);
    data_[std::size_t(id)] = *std::move(b);
    return true;
  }
  bool put(std::int32_t id, std::span<const std::byte> from) { return make(id) && keep(data_[std::size_t(id)]->upload(0, from)); }
  bool take(std::int32_t id, const isotope::name& label, place at) {
    const auto found = given_.find(std::string(label.view()));
    if (found != given_.end() && std::int64_t(found->second.size()) == bytes_of(id)) return put(id, found->second);
    message m;
    fail(m << "'" << label << "' needs " << bytes_of(id) << " bytes of data, " << (found == given_.end() ? "none" : "another number")
           << " were given: call set first",
         at);
    return false;
  }

  void recorded(tape&, std::int32_t index) override {
    const node n = g.nodes[std::size_t(index)];
    if (message m; g.any_late) return fail(m << n.op->name << ": a size is known late: run op by op with constant sizes", place::current());
    for (int k = 0; k < n.outputs(); ++k)
      if (const auto y = n.out[std::size_t(k)]; describe(y).base < 0 && !make(y)) return;
    if (n.op->kind == op_kind::view) return;
    keep(runner_->run(g, index, scalars, [&](std::int32_t root) { return data_[std::size_t(root)]->address(); }));
  }
};

/// The op-by-op Machine of a target: `iso::eager<iso::selected> machine(*device);`
template <Target T> using eager = eager_machine<typename device<T>::queue_type>;

}  // namespace isotope
