/// The kernels of exchanges, for one rank after the other on one device: the messages of the other ranks are there before a rank's kernel starts.
#include <isotope/kernels/cuda/portable/exchange.h>
#include <isotope/comm/combine.hpp>
#include <isotope/core/precision.hpp>
#include <isotope/fatbins/exchange.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include "../comm/operations.hpp"
#include "device.hpp"
#include "gpu_ranks.hpp"

namespace exchange_test {

using namespace isotope;
using namespace isotope::cuda_test;
using cuda_test::device_memory;
namespace gpu_of = isotope::cuda::gpu;
using bytes = std::vector<std::byte>;

/// Memory that all ranks share and their kernels, on one device.
struct cuda_exchange : testing::Test {
  std::shared_ptr<const cuda::driver> driver;
  std::unique_ptr<gpu> device;
  cuda::library_handle library = nullptr;
  gpu_of::exchange_control* control = nullptr;

  void SetUp() override {
    auto d = cuda::driver::open(emulated() ? emulated_driver : "");
    if (!d) GTEST_SKIP() << d.error().line();
    driver = *d;
    auto g = gpu::open(driver, 0);
    ASSERT_TRUE(g.ok()) << g.error().line();
    device = *std::move(g);
    const auto& f = device->f();
    ASSERT_EQ(f->load_library(&library, cuda::fatbins::exchange.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
              cuda::status::success);
    void* p = nullptr;
    ASSERT_EQ(f->allocate_host(&p, sizeof *control, 3), cuda::status::success);
    control = new (p) gpu_of::exchange_control{};
  }
  void TearDown() override {
    if (control != nullptr) device->f()->free_host(control);
    if (library != nullptr) device->f()->unload_library(library);
  }
  template <class T> static bytes bytes_of(const T& x) {
    bytes b(sizeof x);
    std::memcpy(b.data(), &x, sizeof x);
    return b;
  }
  template <class T> T read(const device_memory& m) const {
    T x;
    std::memcpy(static_cast<void*>(&x), m.get(sizeof x).data(), sizeof x);
    return x;
  }
  void start(const char* name, const gpu_of::exchange_operands& a, unsigned blocks) const {
    const auto& f = device->f();
    cuda::kernel_handle kernel = nullptr;
    cuda::function_handle function = nullptr;
    ASSERT_EQ(f->library_kernel(&kernel, library, name), cuda::status::success);
    ASSERT_EQ(f->kernel_function(&function, kernel), cuda::status::success);
    cuda::launch_config how{.grid_x = blocks, .block_x = 64};
    how.stream = device->stream();
    auto copy = a;
    void* parameters[] = {&copy};
    ASSERT_EQ(f->launch_kernel(&how, function, parameters, nullptr), cuda::status::success);
    device->wait();
  }
};
const char* kernel_of(dtype t) {
  switch (t) {
    case dtype::bf16: return "exchange_bf16";
    case dtype::f16: return "exchange_f16";
    case dtype::f64: return "exchange_f64";
    case dtype::i32: return "exchange_i32";
    case dtype::i64: return "exchange_i64";
    default: return "exchange_f32";
  }
}

/// One exchange of all ranks. Rank r reads at `from(r)` and writes at `to(r)`.
struct exchange {
  gpu_of::exchange_kind kind;
  dtype type;
  reduction how = reduction::sum;
  std::size_t count = 0;
  int root = 0;
  unsigned blocks = 1;
};
struct group_memory {
  std::vector<std::unique_ptr<device_memory>> boxes, x, y;
  std::uint64_t done = 0;  // exchanges so far
  group_memory(const gpu& g, int ranks, std::size_t room) {
    for (int r = 0; r < ranks; ++r) {
      boxes.push_back(std::make_unique<device_memory>(g, sizeof(gpu_of::exchange_box)));
      boxes.back()->set(bytes(sizeof(gpu_of::exchange_box)));
      x.push_back(std::make_unique<device_memory>(g, room));
      y.push_back(std::make_unique<device_memory>(g, room));
    }
  }
  int ranks() const { return int(boxes.size()); }
};
using address_of_rank = std::function<std::uint64_t(int)>;
gpu_of::exchange_operands operands_of(const cuda_exchange& t, const group_memory& m, const exchange& e, int rank,
                                      const address_of_rank& from, const address_of_rank& to) {
  gpu_of::exchange_operands a{};
  for (int p = 0; p < m.ranks(); ++p) a.boxes[p] = m.boxes[std::size_t(p)]->at;
  a.control = reinterpret_cast<std::uint64_t>(t.control);
  a.from = from(rank), a.to = to(rank);
  a.count = std::int64_t(e.count);
  a.what = 77 + e.count;
  a.rank = rank, a.ranks = m.ranks(), a.kind = e.kind, a.maximum = e.how == reduction::max ? 1 : 0, a.root = e.root;
  return a;
}
/// Runs an exchange for one rank after the other. What the others say is what their kernels would.
void run(const cuda_exchange& t, group_memory& m, const exchange& e, const address_of_rank& from, const address_of_rank& to) {
  ++m.done;
  for (int r = 0; r < m.ranks(); ++r) {
    const auto a = operands_of(t, m, e, r, from, to);
    auto box = t.read<gpu_of::exchange_box>(*m.boxes[std::size_t(r)]);
    ASSERT_EQ(box.count, m.done - 1);
    for (int p = 0; p < m.ranks(); ++p)
      if (p != r) box.of[p] = {m.done, m.done, from(p), to(p), a.what, {}};
    m.boxes[std::size_t(r)]->set(cuda_exchange::bytes_of(box));
    const bool copies = e.kind == gpu_of::exchange_all_gather || e.kind == gpu_of::exchange_broadcast;
    t.start(copies ? "exchange_copies" : kernel_of(e.type), a, e.blocks);
    box = t.read<gpu_of::exchange_box>(*m.boxes[std::size_t(r)]);
    EXPECT_EQ(box.count, m.done);
    EXPECT_EQ(box.blocks, 0u);
    for (int p = 0; p < m.ranks(); ++p) {
      if (p == r) continue;
      const auto said = t.read<gpu_of::exchange_box>(*m.boxes[std::size_t(p)]).of[r];
      EXPECT_EQ(said.ready, m.done) << "rank " << r << " to rank " << p;
      EXPECT_EQ(said.done, m.done) << "rank " << r << " to rank " << p;
      EXPECT_EQ(said.from, a.from);
      EXPECT_EQ(said.to, a.to);
      EXPECT_EQ(said.what, a.what);
    }
  }
  EXPECT_EQ(t.control->differs, 0u);
}

constexpr std::size_t room = 1 << 16;

TEST_F(cuda_exchange, numbers_are_combined_with_the_bits_of_the_host) {
  std::uint64_t seed = 0;
  for (const int ranks : {2, 3, 5}) {
    group_memory m(*device, ranks, room);
    for (const dtype t : comm_test::all_types)
      for (const std::size_t elems : {std::size_t(1), std::size_t(13), std::size_t(64), std::size_t(515)})
        for (const reduction how : {reduction::sum, reduction::max})
          for (const std::size_t shift :
               {std::size_t(0), std::size_t(1)}) {  // of all numbers, in elements: 1 leaves no multiples of 16 bytes
            if (shift == 1 && how == reduction::max) continue;
            ++seed;
            const std::size_t size = std::size_t(size_of(t)), first = shift * size;
            const std::string what = std::string(name_of(t)) + " x " + std::to_string(elems) + ", " + std::to_string(ranks) + " ranks";
            const auto x = [&](int r) { return m.x[std::size_t(r)]->at + first; };
            const auto y = [&](int r) { return m.y[std::size_t(r)]->at + first; };
            const unsigned blocks = elems % 2 == 0 ? 3 : 1;
            const auto give = [&](std::size_t n) {
              for (int r = 0; r < ranks; ++r) m.x[std::size_t(r)]->set(comm_test::given(t, n, r, seed), first);
            };
            const bytes sum = comm_test::combined(t, elems, ranks, how, seed),
                        all = comm_test::combined(t, elems * std::size_t(ranks), ranks, how, seed);
            give(elems);
            run(*this, m, {gpu_of::exchange_all_reduce, t, how, elems, 0, blocks}, x, y);
            for (int r = 0; r < ranks; ++r) EXPECT_EQ(m.y[std::size_t(r)]->get(sum.size(), first), sum) << what;
            run(*this, m, {gpu_of::exchange_all_reduce, t, how, elems, 0, blocks}, x, x);
            for (int r = 0; r < ranks; ++r) EXPECT_EQ(m.x[std::size_t(r)]->get(sum.size(), first), sum) << what << ", in place";
            const auto piece = [&](int r) { return std::size_t(r) * elems * size; };
            const auto expected = [&](int r) {
              return bytes(all.begin() + std::ptrdiff_t(piece(r)), all.begin() + std::ptrdiff_t(piece(r) + elems * size));
            };
            give(elems * std::size_t(ranks));
            run(*this, m, {gpu_of::exchange_reduce_scatter, t, how, elems, 0, blocks}, x, y);
            for (int r = 0; r < ranks; ++r) EXPECT_EQ(m.y[std::size_t(r)]->get(elems * size, first), expected(r)) << what;
            run(*this, m, {gpu_of::exchange_reduce_scatter, t, how, elems, 0, blocks}, x, [&](int r) { return x(r) + piece(r); });
            for (int r = 0; r < ranks; ++r)
              EXPECT_EQ(m.x[std::size_t(r)]->get(elems * size, first + piece(r)), expected(r)) << what << ", in place";
          }
  }
}
TEST_F(cuda_exchange, copies_are_exact_at_any_address) {
  for (const int ranks : {2, 3}) {
    group_memory m(*device, ranks, room);
    for (const std::size_t count : {std::size_t(1), std::size_t(16), std::size_t(4099)})
      for (const std::size_t shift : {std::size_t(0), std::size_t(3)}) {
        const auto x = [&](int r) { return m.x[std::size_t(r)]->at + shift; };
        const auto y = [&](int r) { return m.y[std::size_t(r)]->at + shift; };
        bytes whole;
        std::vector<bytes> of;
        for (int r = 0; r < ranks; ++r) {
          of.push_back(comm_test::given(dtype::i32, count / 4 + 1, r, count));
          of.back().resize(count);
          m.x[std::size_t(r)]->set(of.back(), shift);
          whole.insert(whole.end(), of.back().begin(), of.back().end());
        }
        run(*this, m, {gpu_of::exchange_all_gather, dtype::u8, {}, count, 0, 2}, x, y);
        for (int r = 0; r < ranks; ++r) EXPECT_EQ(m.y[std::size_t(r)]->get(whole.size(), shift), whole);
        run(
            *this, m, {gpu_of::exchange_all_gather, dtype::u8, {}, count, 0, 2}, [&](int r) { return y(r) + std::uint64_t(r) * count; },
            y);  // each part is at its place
        for (int r = 0; r < ranks; ++r) EXPECT_EQ(m.y[std::size_t(r)]->get(whole.size(), shift), whole);
        run(*this, m, {gpu_of::exchange_broadcast, dtype::u8, {}, count, 1, 2}, x, x);
        for (int r = 0; r < ranks; ++r) EXPECT_EQ(m.x[std::size_t(r)]->get(count, shift), of[1]);
      }
  }
}
TEST_F(cuda_exchange, a_stopped_exchange_ends_without_the_other_rank_and_writes_nothing) {
  group_memory m(*device, 2, room);
  m.x[0]->set(bytes(400, std::byte{1}));
  const exchange e{gpu_of::exchange_all_reduce, dtype::f32, reduction::sum, 100, 0, 3};
  const auto x = [&](int r) { return m.x[std::size_t(r)]->at; };
  control->stop = 1;
  start("exchange_f32", operands_of(*this, m, e, 0, x, x), e.blocks);
  EXPECT_EQ(m.x[0]->get(400), bytes(400, std::byte{1}));
  EXPECT_EQ(read<gpu_of::exchange_box>(*m.boxes[0]).blocks, 0u);
  EXPECT_EQ(control->differs, 0u);
}
TEST_F(cuda_exchange, ranks_that_mean_different_exchanges_are_named_and_nothing_is_written) {
  group_memory m(*device, 2, room);
  m.x[0]->set(bytes(400, std::byte{1}));
  const exchange e{gpu_of::exchange_all_reduce, dtype::f32, reduction::sum, 100, 0, 1};
  const auto x = [&](int r) { return m.x[std::size_t(r)]->at; };
  auto a = operands_of(*this, m, e, 0, x, x);
  gpu_of::exchange_box box{};
  box.of[1] = {1, 1, x(1), x(1), a.what + 1, {}};
  m.boxes[0]->set(bytes_of(box));
  control->stop = 1;  // it waits for this
  start("exchange_f32", a, e.blocks);
  EXPECT_EQ(control->differs, 2u);
  EXPECT_EQ(m.x[0]->get(400), bytes(400, std::byte{1}));
}

}  // namespace exchange_test
