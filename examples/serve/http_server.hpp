#pragma once
/// The sockets of isotope-serve: HTTP/1.1 on one thread, by Boost.Beast and Boost.Asio.
#include <isotope/core/error.hpp>
#include <isotope/serve/api.hpp>
#include <isotope/serve/metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace serve_program {

struct http_limits {
  std::size_t connections = 1024;       // further ones are answered 503 and closed
  std::size_t header_bytes = 16 << 10;  // of a request
  std::size_t body_bytes = 8 << 20;
  std::int64_t header_seconds = 10;  // from the first byte of a request to the end of its header
  std::int64_t body_seconds = 60;    // from there to the end of its body
  std::int64_t idle_seconds = 75;    // between two requests of a connection
  std::int64_t write_seconds = 30;   // for a client to take an answer, or an event of a stream
  std::int64_t stop_seconds = 30;    // for running answers after SIGTERM
};

class http_server {
 public:
  /// Binds and listens. @param host  an address, or localhost. @param port  0: any free one. @param log  a line on stderr for each answer
  /// @error invalid_argument: no address; in_use or unreadable: cannot listen there
  static isotope::result<std::unique_ptr<http_server>> open(isotope::serve::api& api, isotope::serve::metrics& counts,
                                                            const std::string& host, std::uint16_t port, const http_limits& limits,
                                                            bool log);
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// Such as http://127.0.0.1:8080.
  std::string address() const;
  bool loopback() const;
  /// Serves until SIGINT or SIGTERM, and then until what runs is answered. A second signal ends it at once. The thread of the model must have ended before this
  /// object does. @return whether all was answered
  bool run();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
  explicit http_server(std::unique_ptr<parts> p);
};

}  // namespace serve_program
