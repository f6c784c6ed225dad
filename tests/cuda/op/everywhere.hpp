#pragma once
/// Runs the op tests on every kernel set of the cuda backend, on the device that the tests share.
#include <algorithm>
#include <isotope/backend/cuda.hpp>

#include "../device.hpp"

namespace isotope::op_test {

/// The kernel that a target with this set runs: that of the set, or of the next set that it falls back to.
template <class Op, class P, class Set> struct chosen {
  using below = std::conditional_t<std::is_same_v<Set, kernels::native>, kernels::portable, kernels::reference>;
  using type = typename chosen<Op, P, below>::type;
};
template <class Op, class P, class Set> requires requires { sizeof(cuda::kernel<Op, P, Set>); } struct chosen<Op, P, Set> {
  using type = cuda::kernel<Op, P, Set>;
};

template <class P, class Set> struct on {
  using precision = P;
  using set = Set;
  template <class Op> using kernel = typename chosen<Op, P, Set>::type;
  static constexpr bool exact = false;
  static constexpr double rounded_weights = std::is_same_v<Set, kernels::native> && P::type == dtype::bf16 ? 0x1p-8 : 0;
  template <class Op> static constexpr decltype(body_step::code) code() { return nullptr; }
  template <class Op> static constexpr auto entry() { return under_test<Op, kernel<Op>>(&kernel<Op>::record); }
};

/// Runs dispatches as a graph with the fewest edges.
inline void execute(cuda_test::shared_device& d, const std::vector<cuda::dispatch>& all) {
  if (all.empty()) return;
  const auto waits = isotope::plan_edges(all);
  EXPECT_TRUE(isotope::find_hazards(all, waits).empty());
  cuda::step_graph graph(d.context);
  auto built = graph.build(*d.functions, all, waits);
  ASSERT_TRUE(bool(built)) << built.error().line();
  auto value = d.context->submit(graph.handle());
  ASSERT_TRUE(bool(value)) << value.error().line();
  auto done = d.context->wait(*value);
  ASSERT_TRUE(bool(done)) << done.error().line();
}
/// Checks that every byte that changed lies in a range that some dispatch declares as written.
inline void check_writes(const op_info& op, const std::vector<cuda::dispatch>& all, std::uint64_t base,
                         const std::vector<std::byte>& before, const std::vector<std::byte>& after) {
  std::vector<std::uint8_t> declared(before.size(), 0);
  for (const auto& d : all)
    for (const auto& w : d.writes)
      for (auto i = w.first; i < w.end; ++i)
        if (i >= base && i - base < declared.size()) declared[std::size_t(i - base)] = 1;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (declared[i] == 0 && before[i] != after[i]) {
      ADD_FAILURE() << op.name << " writes byte " << i << " outside the ranges that its dispatches declare";
      return;
    }
}

/// `over`: the input whose memory output 0 reuses, or -1.
inline std::vector<host> launch(const kernel_under_test<cuda::launch, cuda::recording&>& kernel, const std::vector<host>& in,
                                std::vector<host> out, const attributes& a, const settings& s, int over) {
  const op_info& op = *kernel.op;
  auto& device = cuda_test::test_device();
  std::vector<memory> ins, outs;
  for (const host& x : in) ins.emplace_back(x);
  for (std::size_t k = 0; k < out.size(); ++k)
    if (k < s.into.size()) outs.emplace_back(s.into[k]);
    else outs.emplace_back(std::size_t(out[k].span() * size_of(out[k].type)));
  std::vector<int> shared(out.size(), -1);
  for (std::size_t k = 0; k < out.size(); ++k)
    if (((op.inout >> k) & 1) != 0) shared[k] = int(k);
    else if (k == 0) shared[k] = over;
  std::vector<shape> in_dims, out_dims;
  for (const host& x : in) in_dims.push_back(x.dims);
  for (const host& x : out) out_dims.push_back(x.dims);
  const std::int64_t scratch_bytes = kernel.scratch(step_shapes{in_dims, out_dims, &a, s.summed});

  // One allocation holds scalars, operands and scratch, with bytes of 0xff around each.
  std::int64_t at = 512;
  const auto place = [&](std::int64_t bytes) {
    const auto here = at;
    at = (at + bytes + 255) / 256 * 256 + 256;
    return here;
  };
  std::vector<std::int64_t> in_at, out_at;
  for (auto& m : ins) in_at.push_back(place(std::int64_t(m.bytes().size())));
  for (std::size_t k = 0; k < out.size(); ++k)
    out_at.push_back(shared[k] >= 0 ? in_at[std::size_t(shared[k])] : place(std::int64_t(outs[k].bytes().size())));
  const std::int64_t scratch_at = place(scratch_bytes);
  auto allocated = cuda::memory::allocate(device.context, at + 256, isotope::memory_use::device, "operands");
  EXPECT_TRUE(bool(allocated)) << ((allocated ? std::string() : allocated.error().line()));
  if (!allocated) return {};
  cuda::memory& all = *allocated;
  std::vector<std::byte> first(std::size_t(at), std::byte{0xff});
  const auto scalars = cuda::scalars_of(s.scalars, s.scalars.optimizer_step);
  std::memcpy(first.data(), &scalars, sizeof scalars);
  const auto write = [&](std::int64_t to, memory& m) {
    const auto b = m.bytes();
    std::copy(b.begin(), b.end(), first.begin() + to);
  };
  for (std::size_t k = 0; k < ins.size(); ++k) write(in_at[k], ins[k]);
  for (std::size_t k = 0; k < outs.size(); ++k)
    if (shared[k] < 0) write(out_at[k], outs[k]);

  const auto view_of = [&](std::int64_t where, const host& x) {
    return cuda::view{all.address() + std::uint64_t(where), x.span() * size_of(x.type), x.dims, x.strides, x.type};
  };
  std::vector<cuda::view> in_views, out_views;
  for (std::size_t k = 0; k < in.size(); ++k) in_views.push_back(view_of(in_at[k], in[k]));
  for (std::size_t k = 0; k < out.size(); ++k) out_views.push_back(view_of(out_at[k], out[k]));
  std::vector<micro_op> body;
  for (const body_step& b : s.body) body.push_back(b.what);
  cuda::constant_pool const_pool(device.context);
  cuda::recording r(const_pool, device.functions->code);
  cuda::launch l;
  l.in = in_views;
  l.out = std::span<const cuda::view>(out_views).first(out_views.size() - (s.summed < 0 ? 0 : 1));
  l.summed = s.summed;
  l.column_sums = s.summed < 0 ? nullptr : &out_views.back();
  l.attr = &a;
  l.body = body;
  l.scratch = scratch_bytes > 0 ? all.address() + std::uint64_t(scratch_at) : 0;
  l.scratch_bytes = scratch_bytes;
  l.scalars = all.address();
  l.ordinal = s.ordinal;
  l.accumulate = s.accumulate;
  l.device = &device.context->physical().limits;
  l.custom = cuda::custom_instructions_of<target<backend::cuda, precision::f32, kernels::reference>>();  // the same in every target
  if (s.choices != nullptr) r.want(s.choices->wanted);
  kernel.run(l, r);
  if (s.choices != nullptr)
    for (const auto& d : r.dispatches) s.choices->all.insert(s.choices->all.end(), d.considered.begin(), d.considered.end());

  std::vector<std::byte> result(first.size());
  for (int run = 0; run < 2; ++run) {  // both runs must give the same bits
    EXPECT_TRUE(device.moving.upload(all, 0, first).ok());
    execute(device, r.dispatches);
    const auto before = std::exchange(result, std::vector<std::byte>(first.size()));
    EXPECT_TRUE(device.moving.download(all, 0, result).ok());
    if (run == 1) { EXPECT_TRUE(before == result) << op.name << " gives other bits in its second run"; }
  }
  check_writes(op, r.dispatches, all.address(), first, result);
  std::vector<std::uint8_t> changes(first.size(), 0);  // 1 for the bytes of outputs and scratch
  const auto may_change = [&](std::int64_t from, std::int64_t bytes) { std::fill_n(changes.begin() + from, bytes, std::uint8_t(1)); };
  for (std::size_t k = 0; k < out.size(); ++k) may_change(out_at[k], out_views[k].bytes);
  may_change(scratch_at, scratch_bytes);
  for (std::size_t i = 0; i < first.size(); ++i)
    if (changes[i] == 0 && first[i] != result[i]) {
      ADD_FAILURE() << op.name << " writes outside its outputs, at byte " << i;
      break;
    }
  for (std::size_t k = 0; k < out.size(); ++k) {
    memory& m = shared[k] >= 0 ? ins[std::size_t(shared[k])] : outs[k];
    std::memcpy(m.data(), result.data() + out_at[k], std::size_t(out_views[k].bytes));
    m.read(out[k]);
  }
  return out;
}

using targets = boost::mp11::mp_list<on<precision::f32, kernels::reference>, on<precision::bf16, kernels::reference>,
                                     on<precision::f32, kernels::portable>, on<precision::bf16, kernels::portable>,
                                     on<precision::f32, kernels::native>, on<precision::bf16, kernels::native>>;
inline constexpr std::size_t general_targets = 6;

}  // namespace isotope::op_test
