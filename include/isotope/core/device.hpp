#pragma once
/// How programs choose and describe devices, on every backend.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnostics.hpp"
#include "target.hpp"

namespace isotope {

enum class device_kind : std::uint8_t { cpu, integrated, discrete };
constexpr std::string_view name_of(device_kind k) {
  constexpr std::string_view names[] = {"cpu", "integrated", "discrete"};
  return names[std::size_t(k)];
}

/// A limit or a feature of a device, as text.
struct device_fact {
  std::string name, value;
};

struct device_info {
  std::string name;
  std::string_view backend;
  device_kind kind = device_kind::cpu;
  int index = 0;
  int units = 0;                        // threads of a cpu, multiprocessors of a gpu
  std::string driver = {};              // name and version; empty: none
  std::string problem = {};             // why programs cannot use the device; empty: they can
  std::vector<device_fact> facts = {};  // limits and features
};

/// The options of `device<T>::open`. The application sets them; the library does not read the environment.
struct device_options {
  int threads = 0;              // cpu: 0 is one per processor that this process may use
  std::string name = {};        // part of a device's name, its index, or a kind (cpu, integrated, discrete); empty: the fastest
  std::string cache = {};       // gpu: file that keeps compiled pipelines between runs; empty: none
  double timeout_seconds = 60;  // gpu: a submission that takes longer fails; at least 0, infinity: no limit
  diagnostics diagnose = {};
};

/// Every device of a backend: `for (const auto& d : iso::devices<iso::backend::cpu>()) ...`
template <Backend B> std::vector<device_info> devices() { return B::devices(); }

/// The device of a target's backend: `auto d = iso::device<iso::selected>::open();`
template <Target T> using device = typename T::backend::template device<T>;

}  // namespace isotope
