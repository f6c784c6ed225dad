#pragma once
/// Errors as clients of OpenAI's interface read them.
#include <isotope/core/error.hpp>
#include <isotope/io/json_text.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace isotope::serve {

/// An error with its HTTP status. The message ends in "fix: ..."; `param` is the field of the request that is wrong, if one is.
struct api_error {
  int status = 400;
  std::string message, type = "invalid_request_error", param, code;

  /// {"error": {"message", "type", "param", "code"}}; empty ones of the last two are null.
  std::string body() const {
    const auto or_null = [](const std::string& s) { return s.empty() ? std::string("null") : io::json_string(s); };
    return "{\"error\":{\"message\":" + io::json_string(message) + ",\"type\":" + io::json_string(type) + ",\"param\":" + or_null(param) +
           ",\"code\":" + or_null(code) + "}}";
  }
};

/// An error of the request: 404 for a model that is not there, else 400. @param param  the field that is wrong; empty: the whole request
inline api_error bad_request(std::string param, const std::string& what, const std::string& fix, std::string code = {}) {
  std::string where = param.empty() ? std::string("the request") : param;
  return {.status = code == "model_not_found" ? 404 : 400,
          .message = std::move(where) + ": " + what + "; fix: " + fix,
          .param = std::move(param),
          .code = std::move(code)};
}
/// An error of the server: 503 where another try, maybe at another server, can succeed, else 500.
inline api_error server_error(const failure& f) {
  const bool fails = f.code == errc::poisoned || f.code == errc::device_lost || f.code == errc::timeout,
             busy = f.code == errc::queue_full || f.code == errc::worker_gone;
  return {.status = fails || busy ? 503 : 500,
          .message = (f.where.empty() ? std::string() : f.where + ": ") + f.what +
                     "; fix: " + (f.fix.empty() ? "look into the server's log" : f.fix),
          .type = "server_error",
          .param = {},
          .code = busy    ? "overloaded"
                  : fails ? "device_failed"
                          : "internal_error"};
}

}  // namespace isotope::serve
