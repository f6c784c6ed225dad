#pragma once
/// Runs a fused body by any of its kernels on given bytes.
#include <isotope/backend/vulkan/command_buffers.hpp>
#include <isotope/backend/vulkan/constant_pool.hpp>
#include <isotope/kernels/vulkan/portable/elementwise.hpp>
#include <isotope/kernels/vulkan/reference/elementwise.hpp>

#include "device.hpp"

namespace isotope::vulkan_test {

struct stored {
  shape dims;
  extents strides{};
  dtype type = dtype::f32;
  std::vector<std::byte> bytes;  // from the first element to the last
  std::int64_t shift = 0;        // bytes behind an aligned address
};

inline stored dense(const shape& s, dtype t) {
  return {s, dense_strides(s), t, std::vector<std::byte>(std::size_t(s.count() * size_of(t))), 0};
}
/// One f32 stored of these numbers.
inline stored row(const std::vector<float>& x) {
  stored t = dense({std::int64_t(x.size())}, dtype::f32);
  std::memcpy(t.bytes.data(), x.data(), t.bytes.size());
  return t;
}
inline std::vector<float> floats(const stored& t) {
  std::vector<float> x(t.bytes.size() / 4);
  std::memcpy(x.data(), t.bytes.data(), t.bytes.size());
  return x;
}

inline micro_op instruction(const op_info& op, std::initializer_list<int> args, dtype t, int store = -1, double scalar = 0) {
  micro_op m{&op, {-1, -1, -1}, std::int8_t(store), t, scalar};
  std::size_t k = 0;
  for (const int a : args) m.arg[k++] = std::int8_t(a);
  return m;
}

/// What the outputs hold after Kernel ran; before it they hold what is in `out`.
template <class Kernel>
std::vector<stored> run_body(const std::vector<stored>& in, std::vector<stored> out, const std::vector<micro_op>& body,
                             std::uint8_t accumulate = 0) {
  auto& d = test_device();
  std::int64_t size = 0;
  const auto place = [&](const stored& t) {
    const auto at = size + t.shift;
    size = (at + std::int64_t(t.bytes.size()) + 511) / 256 * 256;
    return at;
  };
  std::vector<std::int64_t> in_at, out_at;
  for (const auto& t : in) in_at.push_back(place(t));
  for (const auto& t : out) out_at.push_back(place(t));
  auto memory = vulkan::memory::allocate(d.context, size + 256, isotope::memory_use::readback, "operands");
  if (!memory) {
    ADD_FAILURE() << memory.error().line();
    return out;
  }
  std::vector<vulkan::view> in_views, out_views;
  const auto bind = [&](const stored& t, std::int64_t at, std::vector<vulkan::view>& views) {
    std::memcpy(memory->mapped() + at, t.bytes.data(), t.bytes.size());
    views.push_back({memory->address() + std::uint64_t(at), std::int64_t(t.bytes.size()), t.dims, t.strides, t.type});
  };
  for (std::size_t k = 0; k < in.size(); ++k) bind(in[k], in_at[k], in_views);
  for (std::size_t k = 0; k < out.size(); ++k) bind(out[k], out_at[k], out_views);
  vulkan::constant_pool const_pool(d.context);
  vulkan::recording r(const_pool, *d.pipelines);
  vulkan::launch l;
  l.in = in_views;
  l.out = out_views;
  l.body = body;
  l.accumulate = accumulate;
  l.device = &d.context->physical().limits;
  Kernel::record(l, r);
  const auto run = [&]() -> result<void> {
    if (auto made = d.pipelines->make(r.dispatches); !made) return made.error();
    auto pool = vulkan::command_pool::create(d.context);
    if (!pool) return pool.error();
    auto commands = pool->buffer();
    if (!commands) return commands.error();
    const auto before = isotope::plan_barriers(r.dispatches);
    if (auto recorded = vulkan::record_commands(*d.context, *d.pipelines, *commands, r.dispatches, before); !recorded)
      return recorded.error();
    auto value = d.context->submit(*commands);
    if (!value) return value.error();
    if (auto done = d.context->wait(*value); !done) return done.error();
    return {};
  };
  if (auto ran = run(); !ran) ADD_FAILURE() << ran.error().line();
  for (std::size_t k = 0; k < out.size(); ++k) std::memcpy(out[k].bytes.data(), memory->mapped() + out_at[k], out[k].bytes.size());
  return out;
}

using interpreted = vulkan::kernel<op::elementwise, precision::f32, kernels::reference>;
using emitted = vulkan::kernel<op::elementwise, precision::f32, kernels::portable>;

}  // namespace isotope::vulkan_test
