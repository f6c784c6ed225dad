#pragma once
/// Measures how long each dispatch takes, by events of the device.
#include <array>
#include <vector>

#include "../queue/launch_times.hpp"
#include "plan_recorder.hpp"

namespace isotope::cuda {

/// Runs dispatches one after the other with an event before and after each. @error device_lost, out_of_memory, missing_feature
inline result<std::vector<launch_time>> time_launches(plan_recorder& recorder, std::span<const dispatch> all) {
  context& c = *recorder.device;
  std::vector<event_handle> events(all.size() + 1, nullptr);
  const auto here = c.current();
  const auto measure = [&]() -> result<std::vector<launch_time>> {
    for (auto& e : events)
      if (const auto s = c.f()->create_event(&e, 0); s != status::success) return c.failed(s, "an event");
    if (auto r = recorder.load(all); !r) return r.error();
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (const auto s = c.f()->record_event(events[i], c.stream()); s != status::success) return c.failed(s, "timing a kernel");
      auto value = recorder.run(all.subspan(i, 1));
      if (!value) return value.error();
      last = *value;
    }
    if (const auto s = c.f()->record_event(events.back(), c.stream()); s != status::success) return c.failed(s, "timing a kernel");
    if (auto r = c.wait(last); !r) return r.error();
    if (const auto s = c.f()->synchronize_stream(c.stream()); s != status::success) return c.failed(s, "timing kernels");
    std::vector<launch_time> times;
    for (std::size_t i = 0; i < all.size(); ++i) {
      float milliseconds = 0;
      if (const auto s = c.f()->elapsed_milliseconds(&milliseconds, events[i], events[i + 1]); s != status::success)
        return c.failed(s, "reading the time of a kernel");
      times.push_back({all[i].step, all[i].function, all[i].set, all[i].reason, double(milliseconds) * 1e3, bytes_of(all[i])});
    }
    return times;
  };
  auto r = measure();
  for (auto e : events)
    if (e != nullptr) c.f()->destroy_event(e);
  return r;
}

}  // namespace isotope::cuda
