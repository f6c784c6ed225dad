/// Programs of several precisions on one device share its pipelines, but no pipeline is used for operands of different formats.
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace isotope::vulkan {
namespace pipeline_key_test {

template <class P> using target_of = target<backend::vulkan, P, kernels::native>;
constexpr model::gpt tiny{1, 2, 16, 20, 8};

/// Records the formats of each step's operands, with the pipelines of its dispatches, in order, as the key. Steps of several dispatches may share pipelines
/// that only use partial sums, counts or statistics; but each step has at least one that reads or writes its operands.
struct users {
  std::map<std::vector<VkPipeline>, std::set<std::string>> formats;
  std::set<VkPipeline> pipelines;

  void add(const plan_view& p, std::span<const dispatch> all, const vulkan::pipelines& made) {
    std::map<std::int64_t, std::vector<VkPipeline>> of_step;
    for (const dispatch& d : all) {
      pipelines.insert(made.of(d));
      if (d.step >= 0) of_step[d.step].push_back(made.of(d));
    }
    for (const auto& [i, run] : of_step) {
      const step& s = p.steps[std::size_t(i)];
      std::string text(s.op->name);
      for (int k = 0; k < s.inputs + s.outputs; ++k) text += " " + std::string(name_of(p.operands[std::size_t(s.operands + k)].type));
      formats[run].insert(text);
    }
  }
  /// The formats of steps that share all their pipelines but have different formats.
  std::vector<std::string> confused() const {
    std::vector<std::string> r;
    for (const auto& [run, texts] : formats)
      if (texts.size() > 1)
        for (const auto& t : texts) r.push_back(t);
    return r;
  }
};
template <class P> void load(users& u, const std::shared_ptr<pipelines>& made, dynamic_plan plan) {
  const auto s = device<target_of<P>>::over(vulkan_test::test_device().context, made).load(std::move(plan));
  ASSERT_TRUE(s.ok()) << s.error().line();
  u.add(s->plan(), s->dispatches(), *made);
}

TEST(vulkan_pipeline_keys, programs_of_two_precisions_share_no_pipeline_between_formats) {
  const auto made = std::make_shared<pipelines>(vulkan_test::test_device().context);
  users u, f32, bf16;
  const model::gpt_loss_of loss{tiny, 2, 8};
  for (users* to : {&u, &f32}) load<precision::f32>(*to, made, *plan_training<target_of<precision::f32>>(loss));
  for (users* to : {&u, &bf16}) load<precision::bf16>(*to, made, *plan_training<target_of<precision::bf16>>(loss));
  for (const auto stored : {weights::f16, weights::bf16})
    load<precision::f32>(u, made, *plan_inference<target_of<precision::f32>>(model::gpt_logits_of{tiny, 2, 8}, 0, true, false, stored));
  EXPECT_EQ(u.confused(), std::vector<std::string>{});
  EXPECT_EQ(u.pipelines.size(), made->count());
  std::size_t shared = 0;
  for (const auto p : f32.pipelines) shared += bf16.pipelines.count(p);
  EXPECT_LT(2 * shared, f32.pipelines.size()) << "only pipelines of f32 sums are shared";
}
TEST(vulkan_pipelines, threads_that_want_the_same_ones_create_each_once_and_get_all) {
  const auto& d = vulkan_test::test_device();
  const auto made = std::make_shared<pipelines>(d.context);
  const auto s = device<target_of<precision::f32>>::over(d.context, made)
                     .load(*plan_inference<target_of<precision::f32>>(model::gpt_logits_of{tiny, 2, 8}));
  ASSERT_TRUE(s.ok()) << s.error().line();
  const std::vector<dispatch> all = s->dispatches();
  pipelines fresh(d.context);
  const shader absent{"absent", {}, "some feature"};
  std::vector<dispatch> broken = all;
  broken.push_back(all.front());
  broken.back().code = &absent;
  const auto on_two_threads = [&](const std::vector<dispatch>& what) {
    bool other = false;
    std::thread beside([&] {
      const thread_owner::helper helping(d.context->owner());
      other = fresh.make(what).ok();
    });
    const bool own = fresh.make(what).ok();
    beside.join();
    return std::pair(own, other);
  };
  EXPECT_EQ(on_two_threads(broken), std::pair(false, false)) << "each says what it lacks";
  EXPECT_EQ(on_two_threads(all), std::pair(true, true));
  EXPECT_EQ(fresh.counts().made, fresh.count());
  EXPECT_EQ(fresh.count(), made->count());
  for (const dispatch& x : all) EXPECT_NE(fresh.of(x), VK_NULL_HANDLE) << x.code->name;
}
TEST(vulkan_pipeline_keys, a_pipeline_of_two_formats_is_found) {
  users u;
  u.formats[{VK_NULL_HANDLE}] = {"add f32 f32 f32"};
  EXPECT_TRUE(u.confused().empty());
  u.formats[{VK_NULL_HANDLE}].insert("add bf16 bf16 bf16");
  EXPECT_EQ(u.confused().size(), 2u);
}

}  // namespace pipeline_key_test
}  // namespace isotope::vulkan
