#pragma once
/// The inputs of a session's plans by name. Plans that have an input of one name, format and size share it. A version number tells which frames have
/// an older copy, so that what was set once is copied once; an input that somebody holds a span of is copied before every run.
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
  /// `first` is where the inputs of the first plan start in a frame's upload memory; those of the other plans follow. `shared`: the upload memory of the
  /// one frame, where host and kernels read the same bytes; null: the host's numbers are kept here and copied to each of `frames`.
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

  /// The elements of an input, which may be written before any run from here on. @error not_found, with the names there are; invalid_argument for
  /// another type
  template <class E> result<std::span<E>> open(std::size_t plan, std::string_view label) {
    auto found = find<E>(plan, label);
    if (!found) return found.error();
    (*found)->held = true;
    return elements<E>(**found);
  }
  /// Copies numbers into an input, whose spans are not read any more: what is the same already is not copied again. An input of late sizes takes
  /// fewer, those that there are at the actual sizes. @error as `open`; invalid_argument for another length
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
  /// The whole input region of a plan, which counts as written.
  std::span<std::byte> write_all(std::size_t plan) {
    plan_inputs& p = plans_[plan];
    p.version = ++clock_;
    return {p.bytes_at, std::size_t(p.bytes)};
  }
  /// Copies what changed since the last run of a plan in a frame to that frame's upload memory, or everything (`always`). Returns the bytes that
  /// changed.
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
  /// What kernels read of a plan's inputs in a frame, for checkers that look for kernels that write there.
  std::span<const std::byte> seen(std::size_t plan, const std::byte* upload) const {
    return {upload + plans_[plan].first, std::size_t(plans_[plan].bytes)};
  }
  std::int64_t first(std::size_t plan) const { return plans_[plan].first; }

 private:
  struct plan_inputs {
    std::span<const port> ports;
    std::int64_t first = 0, bytes = 0;
    std::size_t first_port = 0;  // number of its first one among all ports
    std::uint64_t version = 0;   // of the region as a whole
    std::byte* bytes_at = nullptr;
  };
  /// Where the host's numbers of a port lie: in the first plan that has such an input.
  struct value_at {
    std::byte* at = nullptr;
    std::int64_t elems = 0;
    std::size_t number = 0;  // of that plan's port, whose version and mark count
    std::uint64_t version = 0;
    bool held = false;  // somebody has a span of it
    bool late = false;  // its actual size is known when a run starts
  };
  std::vector<plan_inputs> plans_;
  std::vector<value_at> home_;                    // of every port of every plan
  std::vector<std::vector<std::uint64_t>> seen_;  // by frame: versions of every port, then of every plan's region
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
