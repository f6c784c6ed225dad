#pragma once
/// What NCCL reads from the environment of the process, and what must be there so that runs repeat bit for bit.
#include <map>
#include <string>

#include "../core/error.hpp"

namespace isotope {

/// The pinned choices of NCCL, for reports. Ring has every operation; Tree has no reduce_scatter and no all_gather, and NCCL refuses them then.
/// Only `from` makes one, so a communicator cannot exist without them.
class nccl_settings {
 public:
  /// @param environment  the variables of the process, captured at the start of main, before which a program may set them
  /// @error invalid_argument: a variable that is missing, or that leaves NCCL a choice; the line says what to set
  static result<nccl_settings> from(const std::map<std::string, std::string>& environment) {
    const auto value = [&](const char* variable) {
      const auto found = environment.find(variable);
      return found == environment.end() ? std::string() : found->second;
    };
    nccl_settings s;
    s.algorithm_ = value("NCCL_ALGO");
    s.protocol_ = value("NCCL_PROTO");
    std::string wrong;
    const auto complain = [&](const std::string& what) { wrong += (wrong.empty() ? "" : ", ") + what; };
    const auto is = [&](const char* variable) {
      return std::string(variable) + (value(variable).empty() ? " is not set" : " is '" + value(variable) + "'");
    };
    if (value("NCCL_NVLS_ENABLE") != "0") complain(is("NCCL_NVLS_ENABLE"));
    if (!one_choice(s.algorithm_)) complain(is("NCCL_ALGO"));
    if (!one_choice(s.protocol_)) complain(is("NCCL_PROTO"));
    if (wrong.empty()) return s;
    return fail(errc::invalid_argument, wrong + ": runs would not repeat bit for bit, or NVLink multicast would be used", "nccl",
                "set NCCL_NVLS_ENABLE=0, and NCCL_ALGO and NCCL_PROTO to one choice each, such as Ring and Simple, before the program "
                "starts a thread");
  }

  const std::string& algorithm() const { return algorithm_; }
  const std::string& protocol() const { return protocol_; }
  /// For example "Ring, Simple, without NVLink multicast".
  std::string text() const { return algorithm_ + ", " + protocol_ + ", without NVLink multicast"; }

 private:
  std::string algorithm_, protocol_;
  nccl_settings() = default;

  /// A single name: no list, no exclusion, no choice by operation.
  static bool one_choice(const std::string& v) {
    return !v.empty() && v.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == v.npos;
  }
};

}  // namespace isotope
