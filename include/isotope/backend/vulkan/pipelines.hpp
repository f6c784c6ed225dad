#pragma once
/// Compute pipelines of a device: one per (module, constants, subgroup size). Several threads create them; they are kept until the device is closed, and the
/// driver's cache of them on disk. Beside that file lies the one of the variants of kernels that were chosen, which has the suffix ".choices".
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "context.hpp"
#include "launch.hpp"
#include "pipeline_file.hpp"
#include "shipped_choices.hpp"

namespace isotope::vulkan {

/// How many pipelines were created, and how many of these the driver found in its cache (VkPipelineCreationFeedback). In a warm start the two are equal. A
/// driver without this feedback counts none. `seconds`: that threads spent on them, together, and `longest` on one.
struct pipeline_counts {
  std::size_t made = 0, from_cache = 0;
  double seconds = 0, longest = 0;
};

class pipelines : public shader_store {
 public:
  variant_cache variants;

  explicit pipelines(std::shared_ptr<context> c)
      : variants(c->options.autotune, c->options.cache.empty() ? "" : c->options.cache + ".choices", key_of(*c), c->physical().name,
                 shipped()),
        context_(std::move(c)) {
    std::vector<char> blob;
    if (!context_->options.cache.empty()) blob = pipeline_file::read(context_->options.cache, context_->physical());
    warm_ = !blob.empty();
    const VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, nullptr, 0, blob.size(), blob.data()};
    if (context_->f().CreatePipelineCache(context_->handle(), &info, nullptr, &cache_) != VK_SUCCESS) cache_ = VK_NULL_HANDLE;
    if (cache_ != VK_NULL_HANDLE) context_->name(VK_OBJECT_TYPE_PIPELINE_CACHE, cache_, "isotope pipelines");
  }
  pipelines(const pipelines&) = delete;
  pipelines& operator=(const pipelines&) = delete;
  ~pipelines() override {
    const auto& f = context_->f();
    for (auto& [k, p] : made_) f.DestroyPipeline(context_->handle(), p, nullptr);
    if (cache_ != VK_NULL_HANDLE) f.DestroyPipelineCache(context_->handle(), cache_, nullptr);
  }

  /// Creates the pipelines of these dispatches that do not exist yet, in their order, and waits for those that another thread creates.
  /// @error out_of_memory, missing_feature, with the module's name
  result<void> make(std::span<const dispatch> all) {
    for (bool missing = true; missing;) {
      std::vector<const dispatch*> wanted;
      std::vector<key> others;  // of other threads
      {
        const std::lock_guard lock(mutex_);
        std::set<key> own;
        for (const auto& d : all) {
          auto k = key_of(d);
          if (made_.contains(k) || own.contains(k)) continue;
          if (begun_.insert(k).second) own.insert(std::move(k)), wanted.push_back(&d);
          else others.push_back(std::move(k));
        }
      }
      if (auto r = create_all(wanted); !r) return r;
      std::unique_lock lock(mutex_);
      missing = false;
      for (const key& k : others) {
        created_.wait(lock, [&] { return !begun_.contains(k); });
        missing = missing || !made_.contains(k);  // the other thread failed: this one tries, and says why
      }
    }
    return {};
  }
  VkPipeline of(const dispatch& d) const {
    const std::lock_guard lock(mutex_);
    const auto at = made_.find(key_of(d));
    return at == made_.end() ? VK_NULL_HANDLE : at->second;
  }
  /// Writes the driver's cache to the file, if a path was given and pipelines were created that it did not contain. Returns false if it cannot be written.
  bool save() {
    const std::lock_guard lock(mutex_);
    if (context_->options.cache.empty() || !changed_ || cache_ == VK_NULL_HANDLE) return true;
    changed_ = false;  // before the blob is read, which may not contain pipelines created meanwhile
    std::size_t n = 0;
    if (context_->f().GetPipelineCacheData(context_->handle(), cache_, &n, nullptr) != VK_SUCCESS) return false;
    std::vector<char> blob(n);
    if (context_->f().GetPipelineCacheData(context_->handle(), cache_, &n, blob.data()) != VK_SUCCESS) return false;
    blob.resize(n);
    return pipeline_file::write(context_->options.cache, context_->physical(), blob);
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return made_.size();
  }
  /// Whether the cache file existed and was usable.
  bool warm() const { return warm_; }
  pipeline_counts counts() const {
    const std::lock_guard lock(mutex_);
    return {tried_, found_, seconds_, longest_};
  }

  const shader* keep(std::string_view name, std::vector<std::uint32_t> words) override {
    const std::lock_guard lock(mutex_);
    for (const auto& m : modules_)
      if (m->words == words) return &m->description;
    modules_.push_back(std::make_unique<own_module>());
    auto& m = *modules_.back();
    m.name = name;
    m.words = std::move(words);
    m.description = {m.name, m.words, {}};
    return &m.description;
  }

 private:
  using key = std::tuple<const std::uint32_t*, std::uint32_t, std::vector<std::uint32_t>>;
  struct own_module {
    std::string name;
    std::vector<std::uint32_t> words;
    shader description;
  };
  std::shared_ptr<context> context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  std::map<key, VkPipeline> made_;
  std::set<key> begun_;  // that a thread creates
  std::condition_variable created_;
  std::vector<std::unique_ptr<own_module>> modules_;
  std::atomic<std::size_t> tried_ = 0, found_ = 0;  // pipelines created; those of them that the driver's cache contained
  double seconds_ = 0, longest_ = 0;
  std::atomic<bool> changed_ = false;
  bool warm_ = false;

  static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  /// Creates pipelines that are in begun_, on several threads.
  result<void> create_all(const std::vector<const dispatch*>& wanted) {
    if (wanted.empty()) return {};
    std::atomic<std::size_t> next = 0;
    std::mutex first;
    failure broken;
    std::atomic<bool> failed_any = false;
    const auto work = [&] {
      for (std::size_t i = next++; i < wanted.size() && !failed_any; i = next++) {
        const double began = now();
        auto p = create(*wanted[i]);
        const double took = now() - began;
        if (!p) {
          const std::lock_guard lock(first);
          if (!failed_any) broken = p.error();
          failed_any = true;
          return;
        }
        const std::lock_guard lock(mutex_);
        seconds_ += took, longest_ = std::max(longest_, took);
        auto k = key_of(*wanted[i]);
        begun_.erase(k);
        made_.emplace(std::move(k), *p);
        created_.notify_all();
      }
    };
    const std::size_t threads = std::min<std::size_t>({wanted.size(), std::max(1u, std::thread::hardware_concurrency()), 16});
    std::vector<std::thread> helpers;
    for (std::size_t t = 1; t < threads; ++t)
      helpers.emplace_back([&] {
        const thread_owner::helper helping(context_->owner());
        work();
      });
    work();
    for (auto& t : helpers) t.join();
    if (!failed_any) return {};
    const std::lock_guard lock(mutex_);
    for (const dispatch* d : wanted) begun_.erase(key_of(*d));
    created_.notify_all();
    return broken;
  }

  static std::string key_of(const context& c) {
    std::string uuid;
    for (const std::uint8_t byte : c.physical().cache_uuid) uuid += known_choices_detail::hex(byte) + '.';
    return "vulkan, " + c.physical().name + ", " + c.physical().driver + ", " + uuid;
  }
  static key key_of(const dispatch& d) { return {d.code->words.data(), d.subgroup, d.specialization.words()}; }

  result<VkPipeline> create(const dispatch& d) {
    const auto& f = context_->f();
    const std::string name(d.code->name);
    if (!d.code->there())
      return fail(errc::missing_feature, "module " + name + " was built without words", "vulkan",
                  "a shader compiler with " + std::string(d.code->missing));
    const VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, d.code->words.size_bytes(),
                                               d.code->words.data()};
    VkShaderModule module = VK_NULL_HANDLE;
    if (const auto s = f.CreateShaderModule(context_->handle(), &module_info, nullptr, &module); s != VK_SUCCESS)
      return failed(s, "module " + name);
    std::vector<std::uint32_t> words = d.specialization.words();
    std::vector<VkSpecializationMapEntry> entries;
    for (std::size_t i = 0; i < words.size(); ++i) entries.push_back({std::uint32_t(i), std::uint32_t(4 * i), 4});
    for (const shader_constant& c : context_->options.diagnose.constants) {
      entries.push_back({c.id, std::uint32_t(4 * words.size()), 4});
      words.push_back(c.value);
    }
    const VkSpecializationInfo specialization{std::uint32_t(entries.size()), entries.data(), 4 * words.size(), words.data()};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
                                                             nullptr, d.subgroup};
    VkPipelineShaderStageCreateInfo stage{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, nullptr, 0, VK_SHADER_STAGE_COMPUTE_BIT, module, "main", &specialization};
    if (d.subgroup != 0) {
      const auto& limits = context_->physical().limits;
      stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
      if (limits.least_subgroup != limits.most_subgroup) stage.pNext = &size;
    }
    VkPipelineCreationFeedback whole{}, of_stage{};
    const VkPipelineCreationFeedbackCreateInfo feedback{VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO, nullptr, &whole, 1,
                                                        &of_stage};
    const VkComputePipelineCreateInfo info{
        VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, &feedback, 0, stage, context_->layout(), VK_NULL_HANDLE, -1};
    VkPipeline p = VK_NULL_HANDLE;
    const auto s = f.CreateComputePipelines(context_->handle(), cache_, 1, &info, nullptr, &p);
    f.DestroyShaderModule(context_->handle(), module, nullptr);
    if (s != VK_SUCCESS) return failed(s, "a pipeline of " + name);
    constexpr VkPipelineCreationFeedbackFlags found =
        VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT | VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
    ++tried_;
    if ((whole.flags & found) == found) ++found_;
    else changed_ = true;
    context_->name(VK_OBJECT_TYPE_PIPELINE, p, name);
    return p;
  }
};

}  // namespace isotope::vulkan
