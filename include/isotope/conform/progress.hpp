#pragma once
/// Reports how far a run has come.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace isotope::conform {

struct progress {
  std::uint64_t done = 0, total = 0;  // cases of this shard
  std::int64_t failed = 0, unsupported = 0;
};

class progress_sink {
 public:
  virtual ~progress_sink() = default;
  virtual void at(const progress& p) = 0;
  /// Is called before a batch runs, with the op of its first case.
  virtual void begins(std::string_view) {}
};
class silent_progress final : public progress_sink {
 public:
  void at(const progress&) override {}
};
/// Calls f(progress).
template <class F> class progress_callback final : public progress_sink {
 public:
  explicit progress_callback(F f) : f_(std::move(f)) {}
  void at(const progress& p) override { f_(p); }

 private:
  F f_;
};
inline std::string line_of(const progress& p) {
  return std::to_string(p.done) + " of " + std::to_string(p.total) + " cases, " + std::to_string(p.failed) + " failed, " +
         std::to_string(p.unsupported) + " unsupported";
}

}  // namespace isotope::conform
