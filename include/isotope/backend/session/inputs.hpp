#pragma once
/// The inputs of a session's plans by name. Plans whose inputs have the same name, format and size share them. Each input has a version number, so a frame
/// whose copy is current is not written again. An input whose span the caller holds is copied before every run, since it may have changed.
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
    const bool same = to.empty() || std::memcmp(to.data(), from.data(), to.size_bytes()) == 0;
    if (same && !(*found)->held) return {};
    (*found)->held = false;
    (*found)->version = ++clock_;
    if (!same) std::memcpy(to.data(), from.data(), to.size_bytes());
    return {};
  }
  /// The whole input region of a plan, which is copied to every frame before its next run.
  std::span<std::byte> write_all(std::size_t plan) {
    plan_inputs& p = plans_[plan];
    p.version = ++clock_;
    return {p.bytes_at, std::size_t(p.bytes)};
  }
  /// Copies the inputs of a plan that changed since its last run in a frame, or all of them (`always`), to that frame's upload memory. Returns their
  /// number of bytes.
  std::int64_t put(std::size_t frame, std::size_t plan, std::byte* upload, bool always) {
    const plan_inputs& of = plans_[plan];
    std::vector<std::uint64_t>& seen = seen_[frame];
    std::int64_t written = 0;
    const auto copy = [&](std::uint64_t& before, std::uint64_t version, bool held, std::int64_t at, const std::byte* from,
                          std::int64_t bytes) {
      if (before == version && !held && !always) return;
      before = version;
      written += bytes;
      if (upload + at != from) std::memcpy(upload + at, from, std::size_t(bytes));
    };
    if (of.version != 0) copy(seen[home_.size() + plan], of.version, false, of.first, of.bytes_at, of.bytes);
    for (std::size_t i = 0; i < of.ports.size(); ++i) {
      const value_at& home = home_[of.first_port + i];
      const value_at& shared = home_[home.number];
      copy(seen[of.first_port + i], shared.version, shared.held, of.first + of.ports[i].where.at, home.at, of.ports[i].where.bytes);
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
  template <class E> static std::span<E> elements(const value_at& v) { return {reinterpret_cast<E*>(v.at), std::size_t(v.elems)}; }
  value_at home_of(const port& p, std::size_t plan) const {
    for (std::size_t k = 0; k < plan; ++k)
      if (const port* same = same_port(plans_[k].ports, p); same != nullptr)
        return home_[plans_[k].first_port + std::size_t(same - plans_[k].ports.data())];
    return {plans_[plan].bytes_at + p.where.at, p.where.dims.count(), home_.size(), 0, false, p.where.dims.has_scalar()};
  }
};

}  // namespace isotope
