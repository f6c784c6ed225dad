#pragma once
/// The inputs of a session's plans by name. Plans whose inputs have the same name, format and size share them. Each input has a version number, so a frame
/// whose copy is current is not written again. An input whose span the caller holds is copied before every run, since it may have changed. The numbers of a
/// batch may be written to the memory of one frame alone; other frames copy them from there when they need them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ports.hpp"

namespace isotope {

class inputs {
 public:
  inputs() = default;
  /// `first` is the offset of the first plan's inputs in a frame's upload memory; those of the other plans follow. `shared` is the upload memory of the only
  /// frame if kernels work in host memory. If it is null, the values are kept in this object and copied to each of `frames` frames.
  inputs(std::span<const plan_view> plans, std::int64_t first, std::byte* shared, std::size_t frames) {
    std::int64_t at = first;
    std::size_t ports = 0;
    for (const plan_view& p : plans) {
      const std::int64_t bytes = p.totals.region[std::size_t(value_kind::input)];
      plans_.push_back({p.inputs, at, bytes, ports, 0});
      at += bytes;
      ports += p.inputs.size();
    }
    if (shared == nullptr) own_.assign(std::size_t(at), std::byte{});
    std::byte* base = shared == nullptr ? own_.data() : shared;
    for (std::size_t k = 0; k < plans_.size(); ++k) {
      plans_[k].bytes_at = base + plans_[k].first;
      for (const port& p : plans_[k].ports) home_.push_back(home_of(p, k));
    }
    seen_.assign(frames, std::vector<std::uint64_t>(ports + plans_.size(), 0));
  }

  /// The elements of an input. The caller may write them before any later run. @error not_found, with the names there are; invalid_argument for
  /// another type
  template <class E> result<std::span<E>> open(std::size_t plan, std::string_view label) {
    auto found = find<E>(plan, label);
    if (!found) return found.error();
    bring_home(**found, std::int64_t(sizeof(E)));
    (*found)->held = true;
    return elements<E>(**found);
  }
  /// Copies numbers into an input, unless it holds the same ones already. Spans from `open` are not read after this call. An input of late sizes takes as many
  /// as there are at the actual sizes. @error as `open`; invalid_argument for another length
  template <class E> result<void> set(std::size_t plan, std::string_view label, std::span<const E> from) {
    auto found = find<E>(plan, label);
    if (!found) return found.error();
    std::span<E> to = elements<E>(**found);
    if ((*found)->late && from.size() < to.size()) to = to.first(from.size());
    if (to.size() != from.size())
      return fail(errc::invalid_argument, std::to_string(from.size()) + " elements for an input of " + std::to_string(to.size()),
                  std::string(label), "give as many as the input has");
    value_at& v = **found;
    const bool same = to.empty() || std::memcmp(to.data(), from.data(), to.size_bytes()) == 0;
    if (same && !v.held && v.newest == v.at) return {};
    v.held = false;
    v.version = ++clock_;
    v.newest = v.at;
    if (!same) std::memcpy(to.data(), from.data(), to.size_bytes());
    return {};
  }
  /// As `set`, for numbers that fit the input, but writes only to the upload memory of one frame, which must be free and which the host must read as fast as
  /// other memory.
  template <class E> void set_in(std::size_t frame, std::byte* upload, std::size_t plan, std::string_view label, std::span<const E> from) {
    const plan_inputs& of = plans_[plan];
    const port* p = find_port(of.ports, label);
    if (p == nullptr || from.empty()) return;
    put_region(frame, plan, upload);
    const std::size_t index = of.first_port + std::size_t(p - of.ports.data());
    value_at& v = home_[home_[index].number];
    std::byte* const to = upload + of.first + p->where.at;
    v.held = false;
    v.version = ++clock_;
    v.newest = to;
    if (std::memcmp(to, from.data(), from.size_bytes()) == 0) seen_[frame][index] = v.version;
    else std::memcpy(to, from.data(), from.size_bytes());
  }
  /// Memory for new numbers of an input, which the caller writes whole before the next run. With `upload`, which must be as for `set_in`, it is that of a frame;
  /// otherwise they are copied to the frame of the run. @error as `open`
  template <class E> result<std::span<E>> renew(std::size_t frame, std::byte* upload, std::size_t plan, std::string_view label) {
    auto found = find<E>(plan, label);
    if (!found) return found.error();
    value_at& v = **found;
    v.held = false;
    v.version = ++clock_;
    v.newest = v.at;
    if (upload == nullptr) return elements<E>(v);
    put_region(frame, plan, upload);
    v.newest = upload + plans_[plan].first + find_port(plans_[plan].ports, label)->where.at;
    return std::span<E>(reinterpret_cast<E*>(v.newest), std::size_t(v.elems));
  }
  /// The whole input region of a plan, which is copied to every frame before its next run.
  std::span<std::byte> write_all(std::size_t plan) {
    plan_inputs& p = plans_[plan];
    for (std::size_t i = 0; i < p.ports.size(); ++i) bring_home(home_[home_[p.first_port + i].number], size_of(p.ports[i].where.type));
    p.version = ++clock_;
    return {p.bytes_at, std::size_t(p.bytes)};
  }
  /// Copies the inputs of a plan that changed since its last run in a frame, or all of them (`always`), to that frame's upload memory. Returns their
  /// number of bytes.
  std::int64_t put(std::size_t frame, std::size_t plan, std::byte* upload, bool always) {
    const plan_inputs& of = plans_[plan];
    std::vector<std::uint64_t>& seen = seen_[frame];
    std::int64_t written = put_region(frame, plan, upload);
    for (std::size_t i = 0; i < of.ports.size(); ++i) {
      const value_at& v = home_[home_[of.first_port + i].number];
      const operand& where = of.ports[i].where;
      written += copy(seen[of.first_port + i], v.version, v.held || always, upload + of.first + where.at, v.newest, where.bytes);
    }
    return written;
  }
  /// A plan's inputs as kernels see them in a frame, for checks that no kernel writes to them.
  std::span<const std::byte> seen(std::size_t plan, const std::byte* upload) const {
    return {upload + plans_[plan].first, std::size_t(plans_[plan].bytes)};
  }
  std::int64_t first(std::size_t plan) const { return plans_[plan].first; }

 private:
  struct plan_inputs {
    std::span<const port> ports;
    std::int64_t first = 0, bytes = 0;
    std::size_t first_port = 0;  // index of its first port among the ports of all plans
    std::uint64_t version = 0;   // of the whole region, from write_all
    std::byte* bytes_at = nullptr;
  };
  /// Where the values of a port are stored: with the first plan that has this input.
  struct value_at {
    std::byte* at = nullptr;
    std::byte* newest = nullptr;  // the numbers of the latest version: `at`, or an address in a frame's upload memory
    std::int64_t elems = 0;
    std::size_t number = 0;  // index of that plan's port, whose `version` and `held` apply
    std::uint64_t version = 0;
    bool held = false;  // the caller has a span of it
    bool late = false;  // its actual size is known when a run starts
  };
  std::vector<plan_inputs> plans_;
  std::vector<value_at> home_;                    // one for every port of every plan
  std::vector<std::vector<std::uint64_t>> seen_;  // the versions in each frame: of every port, then of every plan's region
  std::vector<std::byte> own_;
  std::uint64_t clock_ = 0;

  template <class E> result<value_at*> find(std::size_t plan, std::string_view label) {
    auto p = typed_port(plans_[plan].ports, label, std::int64_t(sizeof(E)), "input");
    if (!p) return p.error();
    return &home_[home_[plans_[plan].first_port + std::size_t(*p - plans_[plan].ports.data())].number];
  }
  /// Copies to one place unless it holds this version already. Returns the number of bytes.
  static std::int64_t copy(std::uint64_t& before, std::uint64_t version, bool always, std::byte* to, const std::byte* from,
                           std::int64_t bytes) {
    if (before == version && !always) return 0;
    before = version;
    if (to != from) std::memcpy(to, from, std::size_t(bytes));
    return bytes;
  }
  /// Copies a region that was written as a whole.
  std::int64_t put_region(std::size_t frame, std::size_t plan, std::byte* upload) {
    const plan_inputs& of = plans_[plan];
    if (of.version == 0) return 0;
    return copy(seen_[frame][home_.size() + plan], of.version, false, upload + of.first, of.bytes_at, of.bytes);
  }
  static void bring_home(value_at& v, std::int64_t element_bytes) {
    if (v.newest != v.at) std::memcpy(v.at, v.newest, std::size_t(v.elems * element_bytes));
    v.newest = v.at;
  }
  template <class E> static std::span<E> elements(const value_at& v) { return {reinterpret_cast<E*>(v.at), std::size_t(v.elems)}; }
  value_at home_of(const port& p, std::size_t plan) const {
    for (std::size_t k = 0; k < plan; ++k)
      if (const port* same = same_port(plans_[k].ports, p); same != nullptr)
        return home_[plans_[k].first_port + std::size_t(same - plans_[k].ports.data())];
    std::byte* const at = plans_[plan].bytes_at + p.where.at;
    return {at, at, p.where.dims.count(), home_.size(), 0, false, p.where.dims.has_scalar()};
  }
};

}  // namespace isotope
