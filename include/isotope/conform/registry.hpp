#pragma once
/// All specifications, for run-time code. A program defines every_spec and every_gradient_kernel in one source file, from conform/library_specs.hpp
/// and its own additions, so that the other files need not compile them.
#include <span>
#include <string_view>

#include "spec.hpp"

namespace isotope::conform {

/// The specifications sorted by name.
std::span<const spec> every_spec();

/// A kernel without a specification of its own, and the op whose gradient it computes.
struct gradient_kernel_names {
  std::string_view kernel, of;
};
std::span<const gradient_kernel_names> every_gradient_kernel();

inline const spec* find_spec(std::string_view name) {
  for (const spec& s : every_spec())
    if (s.name == name) return &s;
  return nullptr;
}

/// Changes with every name, version, attribute and comparator: certificates of different registries are not comparable.
inline std::uint64_t registry_hash() {
  stable_hash h;
  for (const spec& s : every_spec()) {
    h.add(s.name).add(s.version).add(name_of(s.on));
    for (const auto& x : s.inputs) h.add(x.name).add(std::uint64_t(x.what));
    for (const auto& y : s.outputs) h.add(y.name).add(std::uint64_t(y.what)).add(name_of(y.by));
    for (const auto& a : s.fields) h.add(a.name).add(std::uint64_t(a.kind)).add(a.slot);
    for (const auto& l : s.laws) h.add(l.name);
  }
  return h.value();
}

}  // namespace isotope::conform
