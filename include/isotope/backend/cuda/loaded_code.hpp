#pragma once
/// Device code that was loaded into a context: each file once, each function once. It stays loaded until the device is closed.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "launch.hpp"

namespace isotope::cuda {

class loaded_code : public code_store {
 public:
  explicit loaded_code(std::shared_ptr<context> c) : context_(std::move(c)) {}
  loaded_code(const loaded_code&) = delete;
  loaded_code& operator=(const loaded_code&) = delete;
  ~loaded_code() override {
    if (context_->lost()) return;
    const auto here = context_->current();
    for (const auto& [code, library] : libraries_) context_->f()->unload_library(library);
  }

  /// The function that a dispatch runs, loaded if it was not. @error missing_feature, out_of_memory, with the function's name
  result<function_handle> of(const dispatch& d) {
    const std::lock_guard lock(mutex_);
    const auto here = context_->current();
    auto& f = functions_[{d.code, std::string(d.function)}];
    if (f.kernel == nullptr) {
      auto library = library_of(*d.code);
      if (!library) return library.error();
      const std::string name(d.function);
      if (const auto s = context_->f()->library_kernel(&f.kernel, *library, name.c_str()); s != status::success) {
        f.kernel = nullptr;
        return context_->failed(s, "finding the kernel " + name + " in " + std::string(d.code->name));
      }
      if (const auto s = context_->f()->kernel_function(&f.function, f.kernel); s != status::success) {
        f.kernel = nullptr;
        return context_->failed(s, "loading the kernel " + name);
      }
    }
    constexpr std::int64_t without_opt_in = 48 << 10;
    if (d.count.shared_bytes > std::max(f.shared_bytes, without_opt_in)) {
      const auto s = context_->f()->set_kernel_attribute(kernel_attribute::dynamic_shared_bytes, int(d.count.shared_bytes), f.kernel,
                                                         context_->physical().handle);
      if (s != status::success)
        return context_->failed(s, std::string(d.function) + " with " + std::to_string(d.count.shared_bytes) + " bytes of shared memory");
      f.shared_bytes = d.count.shared_bytes;
    }
    constexpr std::uint32_t portable_cluster = 8;  // blocks that every device with clusters takes
    if (d.count.cluster > portable_cluster && !f.large_clusters) {
      const auto s = context_->f()->set_kernel_attribute(kernel_attribute::non_portable_cluster, 1, f.kernel, context_->physical().handle);
      if (s != status::success)
        return context_->failed(s, std::string(d.function) + " in clusters of " + std::to_string(d.count.cluster) + " blocks");
      f.large_clusters = true;
    }
    return f.function;
  }

  /// How many clusters of a dispatch's blocks run on the device at the same time; 0 where the driver does not say. @error as of()
  result<int> clusters_that_fit(const dispatch& d) {
    auto function = of(d);
    if (!function) return function.error();
    if (context_->f()->clusters_that_fit == nullptr) return 0;
    const auto here = context_->current();
    launch_attribute cluster;
    cluster.value = {d.count.cluster, 1, 1};
    launch_config how{.grid_x = d.count.x, .block_x = d.count.threads};
    how.shared_bytes = unsigned(d.count.shared_bytes);
    how.attributes = &cluster;
    how.attribute_count = 1;
    int n = 0;
    const auto s = context_->f()->clusters_that_fit(&n, *function, &how);
    if (s != status::success) return context_->failed(s, "asking for the clusters of " + std::string(d.function) + " that fit");
    return n;
  }

  const device_code* keep(std::string_view name, std::string ptx) override {
    const std::lock_guard lock(mutex_);
    for (const auto& g : generated_)
      if (g->text == ptx) return &g->description;
    generated_.push_back(std::make_unique<generated_code>());
    auto& g = *generated_.back();
    g.name = name;
    g.text = std::move(ptx);
    g.description = {.name = g.name, .source = {}, .bytes = {g.text.c_str(), g.text.size() + 1}};  // the driver wants the closing zero
    return &g.description;
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return functions_.size();
  }

 private:
  struct generated_code {
    std::string name, text;
    device_code description;
  };
  struct loaded_function {
    kernel_handle kernel = nullptr;
    function_handle function = nullptr;
    std::int64_t shared_bytes = 0;  // opted in
    bool large_clusters = false;    // opted in
  };
  std::shared_ptr<context> context_;
  mutable std::mutex mutex_;
  std::map<const device_code*, library_handle> libraries_;
  std::map<std::pair<const device_code*, std::string>, loaded_function> functions_;
  std::vector<std::unique_ptr<generated_code>> generated_;

  result<library_handle> library_of(const device_code& code) {
    if (const auto at = libraries_.find(&code); at != libraries_.end()) return at->second;
    if (!code.there())
      return fail(errc::missing_feature, "the code " + std::string(code.name) + " is not in this build", "cuda",
                  "configure with -DCUDA_ARCHS that has " + std::string(code.missing));
    library_handle library = nullptr;
    if (const auto s = context_->f()->load_library(&library, code.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        s != status::success)
      return context_->failed(s, "loading the code " + std::string(code.name) +
                                     (code.architectures.empty() ? std::string() : " (built for " + std::string(code.architectures) + ")"));
    ++context_->counters.objects;
    libraries_.emplace(&code, library);
    return library;
  }
};

}  // namespace isotope::cuda
