#pragma once
/// Expected failures are values: `result<T>` holds a T or a `failure` that says what, where and what to do.
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace isotope {

enum class errc : std::uint8_t {
  invalid_argument,  // a value outside its documented range
  invalid_model,     // the model does not trace: shapes, names, missing kernels
  over_budget,       // the plan needs more memory than it may use
  not_compiled_in,   // the program was built without the backend asked for
  no_device,         // nothing that this backend can run on
  unknown_device,    // no device of the name, kind or index asked for
  wrong_device,      // a buffer of one device used on another
  missing_feature,   // the processor or device lacks what the program was compiled for
  out_of_memory,     // an allocation failed
  not_found,         // no such file, key or tensor
  unreadable,        // the file exists but cannot be read
  bad_format,        // malformed text, number, file or header
  truncated,         // the file ends too early
  corrupt,           // a checksum differs
  version_mismatch,  // written by another format version
  model_mismatch,    // a checkpoint of another model
  unknown_key,       // a configuration key that no field has
  missing_value,     // a configuration field without a value in any layer
  write_failed,      // disk full or no permission
  in_use,            // another process writes there
  non_finite,        // NaN or infinity where a number is needed
  interrupted,       // stopped by a signal or a limit
  device_lost,       // the driver reports the device as lost; it must be opened again
  timeout,           // the device, or another rank, did not finish in the time allowed
  peer_lost,         // another rank of the group failed, ended or left
  poisoned,          // the device worker refuses work since its device failed
  worker_gone,       // the device worker was shut down
  queue_full,        // the queue of a device worker has no room
  stale_handle,      // what the handle named was dropped
};

constexpr std::string_view name_of(errc c) {
  switch (c) {
    case errc::invalid_argument: return "invalid argument";
    case errc::invalid_model: return "invalid model";
    case errc::over_budget: return "over budget";
    case errc::not_compiled_in: return "not compiled in";
    case errc::no_device: return "no device";
    case errc::unknown_device: return "unknown device";
    case errc::wrong_device: return "wrong device";
    case errc::missing_feature: return "missing feature";
    case errc::out_of_memory: return "out of memory";
    case errc::not_found: return "not found";
    case errc::unreadable: return "unreadable";
    case errc::bad_format: return "bad format";
    case errc::truncated: return "truncated";
    case errc::corrupt: return "corrupt";
    case errc::version_mismatch: return "version mismatch";
    case errc::model_mismatch: return "model mismatch";
    case errc::unknown_key: return "unknown key";
    case errc::missing_value: return "missing value";
    case errc::write_failed: return "write failed";
    case errc::in_use: return "in use";
    case errc::non_finite: return "non-finite value";
    case errc::interrupted: return "interrupted";
    case errc::device_lost: return "device lost";
    case errc::timeout: return "timeout";
    case errc::peer_lost: return "peer lost";
    case errc::poisoned: return "poisoned";
    case errc::worker_gone: return "worker gone";
    case errc::queue_full: return "queue full";
    case errc::stale_handle: return "stale handle";
  }
  return "unknown error";
}

/// What failed, where (a file:line, tensor, option or step), and what to do about it.
struct failure {
  errc code{};
  std::string what;
  std::string where;
  std::string fix;

  /// One line: `where: what (fix: ...)`.
  std::string line() const {
    std::string s = where.empty() ? what : where + ": " + what;
    return fix.empty() ? s : s + " (fix: " + fix + ")";
  }
};

/// A T, or the failure that occurred instead. `result<void>` holds success or a failure.
/// Reading the value of a failed result is a programming error: check first, as with std::optional.
template <class T> class [[nodiscard]] result {
  using stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  result() requires std::is_void_v<T> = default;
  template <class U = stored> requires(!std::is_void_v<T> && std::is_constructible_v<stored, U &&> &&
                                       !std::is_same_v<std::remove_cvref_t<U>, result> && !std::is_same_v<std::remove_cvref_t<U>, failure>)
  result(U&& value) : held_(std::in_place_index<0>, std::forward<U>(value)) {}
  result(failure e) : held_(std::in_place_index<1>, std::move(e)) {}

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  stored& value() & { return *std::get_if<0>(&held_); }
  const stored& value() const& { return *std::get_if<0>(&held_); }
  stored&& value() && { return std::move(*std::get_if<0>(&held_)); }
  stored& operator*() & { return value(); }
  const stored& operator*() const& { return value(); }
  stored&& operator*() && { return std::move(*this).value(); }
  stored* operator->() { return std::get_if<0>(&held_); }
  const stored* operator->() const { return std::get_if<0>(&held_); }

  const failure& error() const& { return *std::get_if<1>(&held_); }
  failure&& error() && { return std::move(*std::get_if<1>(&held_)); }

 private:
  std::variant<stored, failure> held_;
};

/// `return fail(errc::not_found, "no such file", "x.txt", "check the path");`: every error says what to do.
inline failure fail(errc code, std::string what, std::string where, std::string fix) {
  return {code, std::move(what), std::move(where), std::move(fix)};
}

/// A diagnosis of the planner or a backend. Its line contains the place and the fix already, since the compiler prints it too.
inline failure diagnosed(errc code, std::string line) { return {code, std::move(line), {}, {}}; }

}  // namespace isotope
