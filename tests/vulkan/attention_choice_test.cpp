/// Which variants of attention are chosen: those that were measured to be the fastest; in batch-invariant plans whatever the number of sequences. Nothing runs on a device.
#include <isotope/kernels/vulkan/native/attention.hpp>
#include <isotope/kernels/vulkan/native/attention_grad.hpp>
#include <isotope/kernels/vulkan/portable/attention_cached.hpp>

#include <gtest/gtest.h>

#include <string>

using namespace isotope;

namespace attention_choice_test {

using vulkan::attention_part;

vulkan::attention_work work(std::int64_t rows, std::int64_t D, const vulkan::device_limits& f, std::int64_t side = 0, double flops = 1e9) {
  return {flops, rows, D, side, &f};
}
template <class Tiles> std::string text(const Tiles& t) { return std::to_string(t.queries) + " x " + std::to_string(t.keys); }

/// Of the portable kernels, an H200 is fastest with the largest tiles from 512 rows on, with tiles of 32 rows from 17 on, and in general with the largest that fit.
std::string measured(std::int64_t rows, std::int64_t D, const vulkan::device_limits& f) {
  for (const auto& t : vulkan::attention_tile_choices)
    if (t.unfit(work(rows, D, f)).empty() && rows >= (t.queries == 64 ? 512 : t.queries == 32 ? 17 : 0)) return text(t);
  return text(vulkan::attention_tile_choices.back());
}
TEST(vulkan_attention_choice, of_portable_tiles_is_the_measured_one) {
  for (const std::uint32_t shared : {16384u, 32768u, 49152u})
    for (const std::uint32_t invocations : {128u, 1024u})
      for (const std::int64_t D : {8, 64, 128, 256, 480}) {
        vulkan::device_limits f;
        f.shared_bytes = shared, f.invocations = invocations;
        for (std::int64_t rows = 1; rows < 1100; ++rows) {
          const auto w = work(rows, D, f);
          ASSERT_EQ(text(vulkan::tiles_of<attention_part::y>(w)), measured(rows, D, f)) << rows << ' ' << D << ' ' << shared;
          ASSERT_EQ(text(vulkan::tiles_of<attention_part::keys>(w)), measured(rows, D, f)) << rows << ' ' << D << ' ' << shared;
        }
      }
}
/// On matrix units four subgroups own 64 rows, and fewer own the rows of shorter heads.
TEST(vulkan_attention_choice, of_matrix_tiles_covers_the_rows_of_a_head) {
  vulkan::device_limits f;
  f.shared_bytes = 49152;
  const auto all = vulkan::attention_khr::variants;
  for (const std::int64_t side : {8, 16})
    for (std::int64_t rows = 1; rows < 1100; ++rows) {
      const std::int64_t wanted = rows <= side ? 1 : rows <= 2 * side ? 2 : 4;
      const auto same = [&](const vulkan::attention_matrix_tiles& t) {
        return t.subgroups == wanted && t.strips == 1 && t.columns == 2 * side && t.side == side;
      };
      const auto w = work(rows, 64, f, side);
      ASSERT_TRUE(same(vulkan::fitting_tiles(all, w, nullptr))) << rows;
      ASSERT_TRUE(same(vulkan::fitting_tiles(vulkan::attention_grad_khr::keys_variants, w, nullptr))) << rows;
      ASSERT_TRUE(same(vulkan::fitting_tiles(vulkan::attention_grad_khr::queries_variants, w, nullptr))) << rows;
    }
}
TEST(vulkan_attention_choice, says_what_rules_a_tile_out) {
  vulkan::device_limits f;
  f.shared_bytes = 14000, f.invocations = 64;
  kernel_choices said;
  EXPECT_EQ(vulkan::fitting_tiles(vulkan::attention_khr::variants, work(1024, 64, f, 16), &said).subgroups, 2);
  ASSERT_EQ(said.all.size(), 6u);
  EXPECT_EQ(said.all[0].name, "attention: 4 subgroups of 1 x 2 matrices");
  EXPECT_EQ(said.all[0].unfit, "it takes more shared memory than a workgroup has");
  EXPECT_TRUE(said.all[1].chosen);
  f.shared_bytes = 49152;
  said = {};
  vulkan::fitting_tiles(vulkan::attention_khr::variants, work(1024, 64, f, 16), &said);
  EXPECT_EQ(said.all[0].unfit, "its workgroups have more invocations than the device's");
}
/// Some other choice for more sequences would give the rows of a sequence other bits.
TEST(vulkan_attention_choice, does_not_depend_on_the_number_of_sequences) {
  vulkan::device_limits f;
  f.shared_bytes = 49152;
  for (std::int64_t rows = 1; rows < 600; rows += 7)
    for (const double flops : {1e3, 1e6, 1e15}) {
      EXPECT_EQ(text(vulkan::tiles_of<attention_part::y>(work(rows, 64, f, 0, flops))),
                text(vulkan::tiles_of<attention_part::y>(work(rows, 64, f))));
      EXPECT_EQ(vulkan::fitting_tiles(vulkan::attention_khr::variants, work(rows, 64, f, 16, flops), nullptr).subgroups,
                vulkan::fitting_tiles(vulkan::attention_khr::variants, work(rows, 64, f, 16), nullptr).subgroups);
    }
}
/// The subgroups of a workgroup that is chosen for B sequences of S tokens with the heads of GPT-2 124M, in a plan that is batch invariant or is not.
std::int64_t subgroups(std::int64_t B, std::int64_t S, bool invariant, attention_part part) {
  vulkan::device_limits f;
  f.shared_bytes = 49152, f.multiprocessors = 132;
  attributes a = op::attention_constants{.heads = 12, .kv_heads = 12, .causal = true, .packed = true, .scale = 0.125};
  if (invariant) op::attention::set_batch_invariant(a);
  const auto tensor = [](const shape& dims) {
    vulkan::view v{.dims = dims, .type = dtype::bf16};
    for (std::int64_t k = dims.rank - 1, n = 1; k >= 0; n *= dims[int(k--)]) v.strides[std::size_t(k)] = n;
    return v;
  };
  const std::array in{tensor({B, S, 3 * 768})};
  const std::array out{tensor({B, S, 768}), tensor({B, 12, S})};
  vulkan::launch l;
  l.in = in, l.out = out, l.attr = &a, l.device = &f;
  auto w = vulkan::attention_work::of(vulkan::attention_heads::forward(l), l, part);
  w.side = 16;
  return part == attention_part::y ? vulkan::fitting_tiles(vulkan::attention_khr::variants, w, nullptr).subgroups
                                   : vulkan::fitting_tiles(vulkan::attention_grad_khr::queries_variants, w, nullptr).subgroups;
}
TEST(vulkan_attention_choice, of_few_short_heads_gives_each_a_workgroup_unless_the_plan_is_batch_invariant) {
  for (const auto part : {attention_part::y, attention_part::queries}) {
    EXPECT_EQ(subgroups(8, 128, false, part), 8);
    EXPECT_EQ(subgroups(1, 128, false, part), 8);
    EXPECT_EQ(subgroups(12, 128, false, part), 4) << "more heads than multiprocessors";
    EXPECT_EQ(subgroups(8, 64, false, part), 4) << "64 rows own a head";
    EXPECT_EQ(subgroups(8, 129, false, part), 4);
    for (const std::int64_t B : {1, 8, 64})
      for (const std::int64_t S : {64, 128, 129}) EXPECT_EQ(subgroups(B, S, true, part), 4) << B << ' ' << S;
  }
}
/// A cache is read by one workgroup up to 1,024 keys, and then in parts of about as many, up to 64.
TEST(vulkan_attention_choice, of_the_parts_of_a_cache_depends_on_its_length_alone) {
  const std::int64_t D = 64;
  for (std::int64_t T = 1; T < 300000; T += T < 3000 ? 1 : 17)
    for (const std::int64_t heads : {12, 12 * 64}) {
      const std::int64_t scratch = vulkan::cached_parts(T, vulkan::cached_parts::planned).scratch(heads, D);
      const auto* chosen = choose_kernel(vulkan::cached_variants, vulkan::cached_problem{T, heads, D, scratch}).variant;
      ASSERT_NE(chosen, nullptr);
      const vulkan::cached_parts parts = chosen->parts(T);
      ASSERT_EQ(parts.count, std::min<std::int64_t>(64, (T + 1023) / 1024)) << T;
      ASSERT_LE(parts.scratch(heads, D), scratch) << T;
    }
}
TEST(vulkan_attention_choice, of_the_parts_of_a_cache_keeps_to_the_planned_memory) {
  kernel_choices asked{.wanted = "cached attention: parts of 256"};
  EXPECT_EQ(choose_kernel(vulkan::cached_variants, vulkan::cached_problem{1024, 12, 64, 1 << 20}, &asked).variant->least, 256);
  asked.all.clear();
  EXPECT_EQ(choose_kernel(vulkan::cached_variants, vulkan::cached_problem{1024, 12, 64, 0}, &asked).variant->least, 0);
  EXPECT_EQ(asked.all.back().unfit, "its parts need more scratch memory than was planned");
}

}  // namespace attention_choice_test
