#pragma once
/// How programs choose and describe devices, on every backend.
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
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

/// The memory of a device, in bytes, as its driver says; of the processor, as the operating system says. `free` can be allocated at this moment.
struct device_memory {
  std::int64_t free = 0, total = 0;
};

/// How a device chooses among variants of a kernel, such as tiles of a product, and among algorithms of a library.
enum class tuning : std::uint8_t {
  off,     // the fastest by estimate, without a file
  cached,  // what the file or a table of the library says; else the fastest by estimate, which is written to the file
  measure  // what the file says was measured; else all that may be fastest are timed when a plan is loaded, and the choice is written
};
inline constexpr std::array<std::string_view, 3> tuning_names{"off", "cached", "measure"};
constexpr std::string_view name_of(tuning t) { return tuning_names[std::size_t(t)]; }

/// The options of `device<T>::open`; those of a backend are these with its own diagnostics. The application sets them; the library does not read the environment.
template <std::derived_from<diagnostics> D> struct basic_device_options {
  int threads = 0;         // cpu: 0 is one per processor that this process may use
  std::string name = {};   // part of a device's name, its index, or a kind (cpu, integrated, discrete); empty: the fastest
  std::string cache = {};  // file that keeps compiled pipelines and choices among variants between runs; empty: none
  tuning autotune = tuning::cached;
  double timeout_seconds = 60;  // gpu: a submission that takes longer fails; at least 0, infinity: no limit
  D diagnose = {};
};
/// The options that every backend has.
using device_options = basic_device_options<diagnostics>;

/// Copies options to those of a backend that has other diagnostics: fields that both have.
template <Backend B, class D> typename B::options options_for(const basic_device_options<D>& o) {
  typename B::options r{
      .threads = o.threads, .name = o.name, .cache = o.cache, .autotune = o.autotune, .timeout_seconds = o.timeout_seconds};
  using own = decltype(r.diagnose);
  using common = std::conditional_t<std::derived_from<own, D>, D, std::conditional_t<std::derived_from<D, own>, own, diagnostics>>;
  static_cast<common&>(r.diagnose) = o.diagnose;
  return r;
}

/// Every device of a backend: `for (const auto& d : iso::devices<iso::backend::cpu>()) ...`
template <Backend B> std::vector<device_info> devices() { return B::devices(); }

/// The device of a target's backend: `auto d = iso::device<iso::selected>::open();`
template <Target T> using device = typename T::backend::template device<T>;

}  // namespace isotope
