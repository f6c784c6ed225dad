/// Every Vulkan object has a name and is destroyed with its owner. The test intercepts the calls to the driver.
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace isotope::vulkan {
namespace live_objects_test {

using f32 = target<backend::vulkan, precision::f32, kernels::native>;
constexpr model::gpt tiny{1, 2, 16, 20, 8};

struct object {
  VkObjectType type = VK_OBJECT_TYPE_UNKNOWN;
  std::string name;
  VkCommandPool pool = VK_NULL_HANDLE;  // the pool of a command buffer, which is freed with it
};
/// Records the objects of a device that are alive, and the labels of recorded commands.
struct ledger {
  functions before;
  std::map<std::uint64_t, object> live;
  std::map<VkObjectType, int> made;
  std::vector<std::string> labels, unnamed;  // unnamed: destroyed without a name
  int ended = 0;
  std::mutex mutex;

  void add(VkObjectType type, std::uint64_t handle, VkCommandPool pool = VK_NULL_HANDLE) {
    const std::lock_guard lock(mutex);
    live[handle] = {type, {}, pool};
    ++made[type];
  }
  void remove(std::uint64_t handle) {
    const std::lock_guard lock(mutex);
    if (const auto at = live.find(handle); at != live.end()) {
      if (at->second.name.empty() && at->second.type != VK_OBJECT_TYPE_SHADER_MODULE) unnamed.push_back(std::to_string(at->second.type));
      live.erase(at);
    }
  }
  std::map<VkObjectType, int> counts() {
    const std::lock_guard lock(mutex);
    std::map<VkObjectType, int> r;
    for (const auto& [handle, o] : live) ++r[o.type];
    return r;
  }
};
ledger* book = nullptr;

template <class Handle> std::uint64_t id(Handle h) { return std::uint64_t(h); }

template <VkObjectType Type, auto Member, class Info, class Handle>
auto making(VkResult (*)(VkDevice, const Info*, const VkAllocationCallbacks*, Handle*)) {
  return [](VkDevice d, const Info* info, const VkAllocationCallbacks* a, Handle* out) {
    const auto s = (book->before.*Member)(d, info, a, out);
    if (s == VK_SUCCESS) book->add(Type, id(*out));
    return s;
  };
}
template <auto Member, class Handle> auto ending(void (*)(VkDevice, Handle, const VkAllocationCallbacks*)) {
  return [](VkDevice d, Handle h, const VkAllocationCallbacks* a) {
    book->remove(id(h));
    (book->before.*Member)(d, h, a);
  };
}
template <VkObjectType Type, auto Make, auto End> void watch(functions& f) {
  f.*Make = making<Type, Make>(f.*Make);
  f.*End = ending<End>(f.*End);
}
/// A ledger that intercepts the calls of a device while it lives.
struct watched : ledger {
  explicit watched(context& c) {
    functions& f = c.f();
    before = f;
    book = this;
    watch<VK_OBJECT_TYPE_BUFFER, &functions::CreateBuffer, &functions::DestroyBuffer>(f);
    watch<VK_OBJECT_TYPE_DEVICE_MEMORY, &functions::AllocateMemory, &functions::FreeMemory>(f);
    watch<VK_OBJECT_TYPE_SHADER_MODULE, &functions::CreateShaderModule, &functions::DestroyShaderModule>(f);
    watch<VK_OBJECT_TYPE_PIPELINE_CACHE, &functions::CreatePipelineCache, &functions::DestroyPipelineCache>(f);
    watch<VK_OBJECT_TYPE_QUERY_POOL, &functions::CreateQueryPool, &functions::DestroyQueryPool>(f);
    watch<VK_OBJECT_TYPE_COMMAND_POOL, &functions::CreateCommandPool, &functions::DestroyCommandPool>(f);
    f.DestroyCommandPool = [](VkDevice d, VkCommandPool p, const VkAllocationCallbacks* a) {
      std::vector<std::uint64_t> its;
      {
        const std::lock_guard lock(book->mutex);
        for (const auto& [handle, o] : book->live)
          if (o.pool == p) its.push_back(handle);
      }
      for (const auto handle : its) book->remove(handle);
      book->remove(id(p));
      book->before.DestroyCommandPool(d, p, a);
    };
    f.AllocateCommandBuffers = [](VkDevice d, const VkCommandBufferAllocateInfo* info, VkCommandBuffer* out) {
      const auto s = book->before.AllocateCommandBuffers(d, info, out);
      for (std::uint32_t i = 0; s == VK_SUCCESS && i < info->commandBufferCount; ++i)
        book->add(VK_OBJECT_TYPE_COMMAND_BUFFER, id(out[i]), info->commandPool);
      return s;
    };
    f.FreeCommandBuffers = [](VkDevice d, VkCommandPool p, std::uint32_t n, const VkCommandBuffer* all) {
      for (std::uint32_t i = 0; i < n; ++i) book->remove(id(all[i]));
      book->before.FreeCommandBuffers(d, p, n, all);
    };
    f.CreateComputePipelines = [](VkDevice d, VkPipelineCache cache, std::uint32_t n, const VkComputePipelineCreateInfo* info,
                                  const VkAllocationCallbacks* a, VkPipeline* out) {
      const auto s = book->before.CreateComputePipelines(d, cache, n, info, a, out);
      for (std::uint32_t i = 0; s == VK_SUCCESS && i < n; ++i) book->add(VK_OBJECT_TYPE_PIPELINE, id(out[i]));
      return s;
    };
    f.DestroyPipeline = ending<&functions::DestroyPipeline>(f.DestroyPipeline);
    f.SetDebugUtilsObjectNameEXT = [](VkDevice d, const VkDebugUtilsObjectNameInfoEXT* info) {
      {
        const std::lock_guard lock(book->mutex);
        book->live[info->objectHandle].name = info->pObjectName;
      }
      return book->before.SetDebugUtilsObjectNameEXT(d, info);
    };
    f.CmdBeginDebugUtilsLabelEXT = [](VkCommandBuffer b, const VkDebugUtilsLabelEXT* label) {
      {
        const std::lock_guard lock(book->mutex);
        book->labels.emplace_back(label->pLabelName);
      }
      book->before.CmdBeginDebugUtilsLabelEXT(b, label);
    };
    f.CmdEndDebugUtilsLabelEXT = [](VkCommandBuffer b) {
      {
        const std::lock_guard lock(book->mutex);
        ++book->ended;
      }
      book->before.CmdEndDebugUtilsLabelEXT(b);
    };
  }
};
/// A device of its own, `c`, on which objects can have names.
class vulkan_live_objects : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = context::open(vulkan_test::test_options());
    ASSERT_TRUE(opened.ok()) << opened.error().line();
    c = *opened;
    if (c->f().SetDebugUtilsObjectNameEXT == nullptr) GTEST_SKIP() << "needs VK_EXT_debug_utils, which the validation layer has";
  }
  std::shared_ptr<context> c;
};
/// Uses a buffer and a session: trains, evaluates, profiles and reads.
void use(const device<f32>& d) {
  auto s = d.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}), *plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(3);
  const std::vector<std::int32_t> tokens(16, 7);
  const batch b{tokens, tokens};
  EXPECT_GT(s->step(b, {}).loss, 0);
  EXPECT_TRUE(s->profile({}).ok());
  EXPECT_GT(s->evaluate(b), 0);
  EXPECT_TRUE(d.allocate<float>(100).ok());
}

TEST_F(vulkan_live_objects, end_with_the_session_that_made_them) {
  watched w(*c);
  {
    const auto d = device<f32>::over(c, std::make_shared<pipelines>(c));
    use(d);
    const auto first = w.counts();
    EXPECT_EQ(first.size(), 2u) << "pipelines and their cache stay for the next session";
    EXPECT_GT(first.at(VK_OBJECT_TYPE_PIPELINE), 10);
    for (int i = 0; i < 3; ++i) use(d);
    EXPECT_EQ(w.counts(), first);
  }
  EXPECT_EQ(w.counts(), (std::map<VkObjectType, int>{}));
  for (const auto type : {VK_OBJECT_TYPE_BUFFER, VK_OBJECT_TYPE_DEVICE_MEMORY, VK_OBJECT_TYPE_SHADER_MODULE, VK_OBJECT_TYPE_QUERY_POOL,
                          VK_OBJECT_TYPE_COMMAND_POOL, VK_OBJECT_TYPE_COMMAND_BUFFER})
    EXPECT_GT(w.made[type], 0) << type;
  const VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, nullptr, 0, 256, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, {}, 0, nullptr};
  VkBuffer kept = VK_NULL_HANDLE;
  ASSERT_EQ(c->f().CreateBuffer(c->handle(), &info, nullptr, &kept), VK_SUCCESS);
  EXPECT_EQ(w.counts(), (std::map<VkObjectType, int>{{VK_OBJECT_TYPE_BUFFER, 1}})) << "a leak is seen";
  c->f().DestroyBuffer(c->handle(), kept, nullptr);
  EXPECT_EQ(w.unnamed.size(), 1u) << "and so is a missing name";
  for (const auto& text : c->messages().texts()) EXPECT_TRUE(vulkan_test::allowed(text)) << text;
}

TEST_F(vulkan_live_objects, of_sessions_that_threads_load_beside_each_other_are_those_of_one_and_end) {
  watched w(*c);
  const auto pipelines_of = [&](int threads) {
    const auto made = std::make_shared<pipelines>(c);
    const auto d = device<f32>::over(c, made);
    std::vector<double> losses(std::size_t(threads), 0);
    std::vector<std::thread> all;
    for (auto& loss : losses)
      all.emplace_back([&d, &loss] {
        auto s = d.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}));
        ASSERT_TRUE(s.ok()) << s.error().line();
        s->initialize(3);
        const std::vector<std::int32_t> tokens(16, 7);
        const batch b{tokens, tokens};
        for (int i = 0; i < 3; ++i) loss = s->step(b, {}).loss;
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(w.counts().at(VK_OBJECT_TYPE_PIPELINE), int(made->count())) << "each pipeline exists once, or was destroyed";
    return std::pair(made->count(), losses);
  };
  const auto [count, alone] = pipelines_of(1);
  for (int i = 0; i < 3; ++i) {
    const auto [same, losses] = pipelines_of(4);
    EXPECT_EQ(same, count);
    EXPECT_EQ(losses, std::vector<double>(4, alone[0]));
  }
  EXPECT_EQ(w.counts(), (std::map<VkObjectType, int>{}));
}

TEST_F(vulkan_live_objects, end_when_a_session_cannot_be_made) {
  watched w(*c);
  {
    const auto d = device<f32>::over(c, std::make_shared<pipelines>(c));
    const auto real = c->f().CreateComputePipelines;
    c->f().CreateComputePipelines = [](VkDevice, VkPipelineCache, std::uint32_t, const VkComputePipelineCreateInfo*,
                                       const VkAllocationCallbacks*, VkPipeline*) { return VK_ERROR_OUT_OF_DEVICE_MEMORY; };
    const auto s = d.load(*plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().code, errc::out_of_memory);
    EXPECT_GT(w.made[VK_OBJECT_TYPE_SHADER_MODULE], 0);
    EXPECT_EQ(w.counts(), (std::map<VkObjectType, int>{{VK_OBJECT_TYPE_PIPELINE_CACHE, 1}}));
    c->f().CreateComputePipelines = real;
    use(d);
  }
  EXPECT_EQ(w.counts(), (std::map<VkObjectType, int>{}));
}

TEST_F(vulkan_live_objects, have_names_and_dispatches_have_labels) {
  watched w(*c);
  use(device<f32>::over(c, std::make_shared<pipelines>(c)));
  EXPECT_EQ(w.unnamed, std::vector<std::string>{}) << "types of objects that were never named";
  EXPECT_GT(w.labels.size(), 20u);
  EXPECT_EQ(w.ended, int(w.labels.size()));
  const auto labelled = [&](std::string_view part) {
    for (const auto& l : w.labels)
      if (l.find(part) != l.npos) return true;
    return false;
  };
  for (const char* part : {"0 embedding", "norm", "attention", "cross_entropy", "adamw"}) EXPECT_TRUE(labelled(part)) << part;
}

}  // namespace live_objects_test
}  // namespace isotope::vulkan
