#pragma once
/// NCCL, opened at run time: the few entry points that communicators call, in our own declarations. Names and numbers are those of NVIDIA's nccl.h; a test
/// compares them where that header is installed.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../../backend/cuda/driver.hpp"
#include "../../core/error.hpp"
#include "../../core/precision.hpp"
#include "../communicator.hpp"

namespace isotope::nccl {

using handle = struct comm_object*;
struct unique_id {
  std::array<char, 128> bytes{};
  bool operator==(const unique_id&) const = default;
};
enum class status : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7
};
enum class data_type : int { u8 = 1, i32 = 2, i64 = 4, f16 = 6, f32 = 7, f64 = 8, bf16 = 9 };
enum class operation : int { sum = 0, max = 2 };

/// Precondition: comm::combines(t)
constexpr data_type type_of(dtype t) {
  switch (t) {
    case dtype::f32: return data_type::f32;
    case dtype::f64: return data_type::f64;
    case dtype::bf16: return data_type::bf16;
    case dtype::f16: return data_type::f16;
    case dtype::i32: return data_type::i32;
    case dtype::i64: return data_type::i64;
    default: return data_type::u8;
  }
}
constexpr operation operation_of(reduction how) { return how == reduction::sum ? operation::sum : operation::max; }

struct table {
  template <class... A> using call = status (*)(A...);
  call<int*> version = nullptr;
  const char* (*error_text)(status) = nullptr;
  const char* (*last_error)(handle) = nullptr;
  call<unique_id*> make_id = nullptr;
  call<handle*, int, unique_id, int> create = nullptr;
  call<handle> destroy = nullptr;
  call<handle> abort = nullptr;
  call<handle, status*> async_error = nullptr;
  call<const void*, void*, std::size_t, data_type, operation, handle, cuda::stream_handle> all_reduce = nullptr;
  call<const void*, void*, std::size_t, data_type, handle, cuda::stream_handle> all_gather = nullptr;
  call<const void*, void*, std::size_t, data_type, operation, handle, cuda::stream_handle> reduce_scatter = nullptr;
  call<const void*, void*, std::size_t, data_type, int, handle, cuda::stream_handle> broadcast = nullptr;
  call<> begin_group = nullptr;
  call<> end_group = nullptr;

  template <class Each> void for_each(const Each& each) {
    each(version, "ncclGetVersion");
    each(error_text, "ncclGetErrorString");
    each(last_error, "ncclGetLastError");
    each(make_id, "ncclGetUniqueId");
    each(create, "ncclCommInitRank");
    each(destroy, "ncclCommDestroy");
    each(abort, "ncclCommAbort");
    each(async_error, "ncclCommGetAsyncError");
    each(all_reduce, "ncclAllReduce");
    each(all_gather, "ncclAllGather");
    each(reduce_scatter, "ncclReduceScatter");
    each(broadcast, "ncclBroadcast");
    each(begin_group, "ncclGroupStart");
    each(end_group, "ncclGroupEnd");
  }
};

/// The opened library. It is never closed, since it has threads of its own.
class library {
 public:
  static constexpr int oldest = 21800;  // 10000 * major + 100 * minor + patch

  /// @param file  a path, or empty for the libnccl.so.2 that the loader finds
  /// @error missing_feature: there is none, it lacks an entry point, or it is older than 2.18
  static result<std::shared_ptr<const library>> open(const std::string& file) {
    const std::string name = file.empty() ? "libnccl.so.2" : file;
    void* const opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return unusable("NCCL is not installed: the loader finds no " + name);
    std::shared_ptr<library> l(new library);
    std::string absent;
    l->table_.for_each([&](auto& entry, const char* symbol) {
      void* const found = dlsym(opened, symbol);
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(found);
      if (found == nullptr && absent.empty()) absent = symbol;
    });
    if (!absent.empty()) return unusable(name + " lacks " + absent);
    l->table_.version(&l->version_);
    if (auto r = check_version(l->version_); !r) return r.error();
    return std::shared_ptr<const library>(std::move(l));
  }
  /// @error missing_feature: older than 2.18
  static result<void> check_version(int v) {
    if (v >= oldest) return {};
    return unusable("NCCL " + version_text(v) + " is too old: " + version_text(oldest) + " is needed");
  }
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  const table* operator->() const { return &table_; }
  int version() const { return version_; }
  /// For example "2.28.9".
  static std::string version_text(int v) {
    return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
  }

  /// `asked` says what was tried; `h` may be null.
  failure failed(status s, std::string asked, handle h) const {
    const char* const text = table_.error_text(s);
    const char* const last = table_.last_error(h);
    std::string what = std::move(asked) + ": " + (text == nullptr ? "an unnamed result" : text) + " (" + std::to_string(int(s)) + ")";
    if (last != nullptr && *last != '\0') what += ", " + std::string(last);
    for (char& c : what)
      if (c == '\n') c = ' ';
    return fail(s == status::remote_error ? errc::peer_lost : errc::device_lost, std::move(what), "nccl",
                "run with NCCL_DEBUG=WARN to see more, and start again from the last checkpoint");
  }

 private:
  table table_;
  int version_ = 0;
  library() = default;

  static failure unusable(std::string what) {
    return fail(errc::missing_feature, std::move(what), "nccl",
                "install libnccl2 (or nvidia-nccl-cu13 from PyPI, and give the path of its libnccl.so.2)");
  }
};

/// An id as 256 hexadecimal digits, to pass it between processes as text.
inline std::string to_hex(const unique_id& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string s;
  for (const char c : id.bytes) {
    const auto b = static_cast<unsigned char>(c);
    s += digits[b >> 4];
    s += digits[b & 15];
  }
  return s;
}
/// @error bad_format: not 256 hexadecimal digits
inline result<unique_id> from_hex(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  unique_id id;
  bool valid = text.size() == 2 * id.bytes.size();
  for (std::size_t i = 0; valid && i < id.bytes.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    valid = high >= 0 && low >= 0;
    id.bytes[i] = char(high * 16 + low);
  }
  if (!valid)
    return fail(errc::bad_format, "an id of " + std::to_string(text.size()) + " characters that is not 256 hexadecimal digits", "nccl",
                "pass the text that rank 0 printed");
  return id;
}

}  // namespace isotope::nccl
