#pragma once
/// The plain values that jobs and replies consist of.
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "../comm/sanity.hpp"
#include "../core/device.hpp"
#include "../core/shape.hpp"
#include "../core/tensor_kind.hpp"
#include "handle.hpp"
#include "host_value.hpp"

namespace isotope::worker {

/// Numbers of an input or output, row-major. Floating-point inputs and outputs of any format are f32 here, integers i32.
using numbers = std::variant<std::vector<float>, std::vector<std::int32_t>>;
inline std::size_t count_of(const numbers& x) {
  return std::visit([](const auto& v) { return v.size(); }, x);
}

/// An input or output by name.
struct named_numbers {
  std::string name;
  numbers values;
};
constexpr auto host_members(const named_numbers& x) { return std::tie(x.name, x.values); }

/// A tensor of the state dict, or a state, by name: its logical f32 values.
struct tensor_values {
  std::string name;
  std::vector<float> values;
};
constexpr auto host_members(const tensor_values& x) { return std::tie(x.name, x.values); }

/// What a loaded model has under a name.
struct named_shape {
  std::string name;
  std::vector<std::int64_t> dims;
  dtype type = dtype::f32;
};
constexpr auto host_members(const named_shape& x) { return std::tie(x.name, x.dims, x.type); }
inline named_shape shape_of(std::string name, const shape& dims, dtype type) {
  named_shape r{std::move(name), {}, type};
  for (int k = 0; k < dims.rank; ++k) r.dims.push_back(dims[k]);
  return r;
}

struct loaded_plan_info {
  std::string name;
  std::vector<named_shape> inputs, outputs;
};
constexpr auto host_members(const loaded_plan_info& x) { return std::tie(x.name, x.inputs, x.outputs); }

/// What a load job replies: the handle, and what there is to read and write.
struct loaded {
  model_handle model;
  std::vector<named_shape> parameters, states;
  std::vector<loaded_plan_info> plans;
  std::int64_t planned_bytes = 0, measured_bytes = 0;  // of the device, as session::planned_bytes and measured_bytes
};
constexpr auto host_members(const loaded& x) {
  return std::tie(x.model, x.parameters, x.states, x.plans, x.planned_bytes, x.measured_bytes);
}

static_assert(HostValue<named_numbers> && HostValue<loaded>);

}  // namespace isotope::worker

namespace isotope {

constexpr auto host_members(const device_memory& x) { return std::tie(x.free, x.total); }
constexpr auto host_members(const group_report& x) { return std::tie(x.rank, x.ranks, x.sum); }
static_assert(worker::HostValue<device_memory> && worker::HostValue<group_report>);

}  // namespace isotope
