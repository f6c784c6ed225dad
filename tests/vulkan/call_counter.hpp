#pragma once
/// Counts the calls of a device's Vulkan functions.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <isotope/backend/vulkan/context.hpp>
#include <string_view>
#include <utility>

namespace isotope::vulkan_test {

#define NAME_OF_CALL(name) std::string_view(#name),
inline constexpr std::array device_calls{ISOTOPE_VULKAN_DEVICE(NAME_OF_CALL)};
#undef NAME_OF_CALL

consteval std::size_t number_of(std::string_view call) {
  for (std::size_t i = 0; i < device_calls.size(); ++i)
    if (device_calls[i] == call) return i;
  throw "isotope has no such entry point";
}

/// Counts the calls of one device while this object lives. A process may have one such object at a time.
class call_counter {
 public:
  explicit call_counter(vulkan::context& c) : table_(c.f()) {
    driver_ = table_;
    for (auto& n : counts_) n = 0;
#define COUNT_CALL(name) table_.name = counted<&vulkan::functions::name, number_of(#name)>(table_.name);
    ISOTOPE_VULKAN_DEVICE(COUNT_CALL)
#undef COUNT_CALL
  }
  call_counter(const call_counter&) = delete;
  call_counter& operator=(const call_counter&) = delete;
  ~call_counter() { table_ = driver_; }

  std::int64_t of(std::initializer_list<std::string_view> calls) const {
    std::int64_t n = 0;
    for (const auto call : calls)
      for (std::size_t i = 0; i < device_calls.size(); ++i)
        if (device_calls[i] == call) n += counts_[i];
    return n;
  }
  /// The calls of all functions of the device except those of extensions.
  std::int64_t all() const {
    std::int64_t n = 0;
    for (const auto& k : counts_) n += k;
    return n;
  }
  void start_over() {
    for (auto& n : counts_) n = 0;
  }

 private:
  vulkan::functions& table_;
  static inline vulkan::functions driver_;
  static inline std::array<std::atomic<std::int64_t>, device_calls.size()> counts_{};

  template <auto Member, std::size_t Number, class R, class... A> static auto counted(R (*)(A...)) -> R (*)(A...) {
    return [](A... a) -> R {
      ++counts_[Number];
      return (driver_.*Member)(a...);
    };
  }
};

}  // namespace isotope::vulkan_test
