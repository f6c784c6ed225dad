/// Connections of isotope-serve: each is a coroutine, and all run on one thread.
#include "http_server.hpp"

#include "../support/exit_code.hpp"
#include "exchange.hpp"

#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace serve_program {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using isotope::serve::api;
using isotope::serve::api_error;
using isotope::serve::api_reply;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// Asynchronous calls that leave their error in `ec`.
inline auto into(error_code& ec) { return asio::redirect_error(asio::use_awaitable, ec); }

/// Events that wait for a client. A client that reads no faster than they come must not fill the memory.
constexpr std::size_t most_waiting_bytes = 4 << 20;

struct connection {
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  bool fresh = true;                                                                   // no request has come yet
  bool idle = true;                                                                    // no byte of the next one has come
  isotope::serve::cancel_flag cancelled = std::make_shared<std::atomic<bool>>(false);  // of the request that is being answered
};

struct http_server::parts {
  api& answers_from;
  isotope::serve::metrics& counts;
  http_limits limits;
  bool log;
  std::set<connection*> open;
  bool stopping = false, cut_off = false;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::signal_set signals{context};
  asio::steady_timer deadline{context};

  parts(api& a, isotope::serve::metrics& m, const http_limits& l, bool logs) : answers_from(a), counts(m), limits(l), log(logs) {}

  // --- answers
  using reply_message = http::response<http::string_body>;
  template <class Body> void set_head(http::response<Body>& m, const std::string& type, bool keep) const {
    m.set(http::field::server, "isotope-serve");
    m.set(http::field::content_type, type);
    m.set(http::field::cache_control, "no-store");
    m.set("X-Content-Type-Options", "nosniff");
    m.keep_alive(keep);
  }
  reply_message message_of(const api_reply& r, unsigned version, bool keep) const {
    reply_message m(http::status(r.status), version, r.body);
    set_head(m, r.content_type, keep);
    if (r.retry_after > 0) m.set(http::field::retry_after, std::to_string(r.retry_after));
    if (r.status == 401) m.set(http::field::www_authenticate, "Bearer");
    m.prepare_payload();
    return m;
  }
  asio::awaitable<bool> send(connection& c, const api_reply& r, unsigned version, bool keep) {
    const reply_message m = message_of(r, version, keep);
    error_code ec;
    c.stream.expires_after(seconds(limits.write_seconds));
    co_await http::async_write(c.stream, m, into(ec));
    co_return !ec;
  }
  /// Answers a request that is not read to its end. What is still under way is read, or the client might lose the answer to a reset.
  asio::awaitable<void> refuse(connection& c, const api_error& e, unsigned version) {
    if (!co_await send(c, api::reply_of(e), version, false)) co_return;
    error_code ec;
    c.stream.socket().shutdown(tcp::socket::shutdown_send, ec);
    c.stream.expires_after(seconds(2));
    for (std::size_t left = std::size_t(1) << 20; left > 0 && !ec;) {
      c.buffer.clear();
      const std::size_t n = co_await c.stream.async_read_some(c.buffer.prepare(std::min<std::size_t>(left, 1 << 16)), into(ec));
      left -= n;
    }
  }

  // --- clients that go away
  void watch(connection& c, const std::shared_ptr<exchange>& x) {
    c.stream.socket().async_wait(tcp::socket::wait_read, [x, handle = c.stream.socket().native_handle()](error_code ec) {
      char byte = 0;
      if (ec || x->over) return;
      const ssize_t n = ::recv(handle, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;  // the next request is here already
      x->gone = true;
      x->changed.cancel();
    });
  }
  asio::awaitable<void> something(const std::shared_ptr<exchange>& x) {
    error_code woken;
    while (!x->ready()) co_await x->changed.async_wait(into(woken));
  }

  // --- a request
  static std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

  std::optional<api_error> objection(const http::request<http::string_body>& q) const {
    const std::string_view authorization = q[http::field::authorization], path = path_of(q.target());
    if (path != "/health" && !answers_from.allows(authorization))
      return api_error{.status = 401,
                       .message = "the API key is missing or wrong; fix: send the header Authorization: Bearer KEY",
                       .param = {},
                       .code = "invalid_api_key"};
    const std::string_view type = q[http::field::content_type];
    // A page of a browser may send any other type to this machine without asking.
    if (q.method() == http::verb::post && !beast::iequals(type.substr(0, type.find(';')), "application/json"))
      return api_error{.status = 415,
                       .message = "the body is not declared as JSON; fix: send the header Content-Type: application/json",
                       .param = {},
                       .code = "unsupported_media_type"};
    return std::nullopt;
  }
  static std::optional<api_error> reading_error(error_code ec, const http_limits& l) {
    const auto error = [](int status, const std::string& what, const char* fix) {
      return api_error{.status = status, .message = what + "; fix: " + fix, .param = {}, .code = "bad_http"};
    };
    if (ec == http::error::header_limit)
      return error(431, "the header has more than " + std::to_string(l.header_bytes) + " bytes", "shorten it");
    if (ec == http::error::body_limit)
      return error(413, "the body has more than " + std::to_string(l.body_bytes) + " bytes",
                   "send several requests, or raise --body-bytes");
    if (ec.category() == make_error_code(http::error::bad_version).category() && ec != http::error::end_of_stream &&
        ec != http::error::partial_message)
      return error(400, "not HTTP/1.1: " + ec.message(), "send a valid request");
    return std::nullopt;  // closed, or too slow
  }
  void note_answer(std::string_view method, std::string_view path, int status, steady_clock::time_point begin) {
    const double took = std::chrono::duration<double>(steady_clock::now() - begin).count();
    const std::string_view known = api::known_path(path);
    counts.answered(known, status, took);
    if (!log) return;
    char time[40];
    std::snprintf(time, sizeof time, " %d %.1f ms", status, took * 1e3);
    support::note("isotope-serve", std::string(method) + " " + std::string(known) + time);
  }

  /// Sends the events of a stream until the last one. @return whether the connection can take another request
  asio::awaitable<bool> stream_events(connection& c, const std::shared_ptr<exchange>& x, unsigned version, bool keep) {
    const bool chunked = version >= 11;
    http::response<http::empty_body> head(http::status::ok, version);
    set_head(head, "text/event-stream; charset=utf-8", keep && chunked);
    head.chunked(chunked);
    http::response_serializer<http::empty_body> serializer(head);
    error_code ec;
    c.stream.expires_after(seconds(limits.write_seconds));
    co_await http::async_write_header(c.stream, serializer, into(ec));
    while (!ec) {
      const bool last = x->last;
      const std::string events = std::exchange(x->events, {});
      c.stream.expires_after(seconds(limits.write_seconds));
      if (!events.empty() && chunked) co_await asio::async_write(c.stream, http::make_chunk(asio::buffer(events)), into(ec));
      else if (!events.empty()) co_await asio::async_write(c.stream, asio::buffer(events), into(ec));
      if (ec) break;
      if (last) {
        if (chunked) co_await asio::async_write(c.stream, http::make_chunk_last(), into(ec));
        co_return !ec && chunked && keep;
      }
      c.stream.expires_never();
      co_await something(x);
      if (x->gone || x->events.size() > most_waiting_bytes) break;
    }
    co_return false;
  }
  /// Reads and answers one request. @return whether the connection can take another one
  asio::awaitable<bool> request(connection& c) {
    error_code ec;
    if (c.buffer.size() == 0) {
      c.idle = true;
      c.stream.expires_after(seconds(c.fresh ? limits.header_seconds : limits.idle_seconds));
      const std::size_t n = co_await c.stream.async_read_some(c.buffer.prepare(4096), into(ec));
      if (ec) co_return false;
      c.buffer.commit(n);
    }
    c.idle = c.fresh = false;
    http::request_parser<http::string_body> parser;
    parser.header_limit(std::uint32_t(limits.header_bytes));
    parser.body_limit(limits.body_bytes);
    c.stream.expires_after(seconds(limits.header_seconds));
    co_await http::async_read_header(c.stream, c.buffer, parser, into(ec));
    steady_clock::time_point begin = steady_clock::now();
    std::optional<api_error> wrong;
    if (ec) wrong = reading_error(ec, limits);
    else wrong = objection(parser.get());
    if (!ec && !wrong) {
      if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        co_await asio::async_write(c.stream, asio::buffer(go_on), into(ec));
        if (ec) co_return false;
      }
      c.stream.expires_after(seconds(limits.body_seconds));
      if (!parser.is_done()) co_await http::async_read(c.stream, c.buffer, parser, into(ec));
      if (ec) wrong = reading_error(ec, limits);
    }
    if (wrong) {
      const auto& q = parser.get();
      note_answer(ec ? std::string_view("-") : std::string_view(q.method_string()), path_of(q.target()), wrong->status, begin);
      co_await refuse(c, *wrong, 11);
      co_return false;
    }
    if (ec) co_return false;

    const http::request<http::string_body> q = parser.release();
    begin = steady_clock::now();
    c.stream.expires_never();
    const auto x = std::make_shared<exchange>(context);
    c.cancelled = answers_from.handle(
        {.method = q.method_string(), .path = path_of(q.target()), .authorization = q[http::field::authorization], .body = q.body()},
        answers(context, x));
    watch(c, x);
    co_await something(x);
    bool good = false;
    int status = 499;  // the client has closed the connection
    const bool keep = q.keep_alive() && !stopping;
    if (x->streams) {
      status = 200;
      good = co_await stream_events(c, x, q.version(), keep);
    } else if (x->whole) {
      status = x->whole->status;
      good = co_await send(c, *x->whole, q.version(), keep) && keep;
    }
    x->over = true;
    *c.cancelled = true;
    c.stream.socket().cancel(ec);
    note_answer(q.method_string(), path_of(q.target()), status, begin);
    co_return good && !stopping;
  }

  // --- connections
  struct registered {
    parts& of;
    connection& c;
    registered(parts& p, connection& k) : of(p), c(k) { of.open.insert(&c), of.counts.connections = std::int64_t(of.open.size()); }
    ~registered() {
      *c.cancelled = true;
      of.open.erase(&c);
      of.counts.connections = std::int64_t(of.open.size());
      if (of.stopping && of.open.empty()) of.finish();
    }
    registered(const registered&) = delete;
    registered& operator=(const registered&) = delete;
  };
  asio::awaitable<void> serve(tcp::socket socket) {
    connection c{beast::tcp_stream(std::move(socket)), {}};
    const registered here(*this, c);
    error_code ec;
    c.stream.socket().set_option(tcp::no_delay(true), ec);
    if (open.size() > limits.connections) {
      api_error full{.status = 503,
                     .message = "the server has " + std::to_string(limits.connections) + " connections already; fix: try again later",
                     .type = "server_error",
                     .param = {},
                     .code = "overloaded"};
      ++counts.refused;
      co_await refuse(c, full, 11);
    } else {
      while (co_await request(c)) {}
      c.stream.socket().shutdown(tcp::socket::shutdown_send, ec);
    }
    c.stream.close();
  }
  asio::awaitable<void> accept() {
    asio::steady_timer pause(context);
    while (!stopping) {
      error_code ec;
      tcp::socket socket = co_await acceptor.async_accept(into(ec));
      if (stopping) break;
      if (!ec) {
        asio::co_spawn(context, serve(std::move(socket)), asio::detached);
        continue;
      }
      pause.expires_after(std::chrono::milliseconds(50));  // such as too many open files
      co_await pause.async_wait(into(ec));
    }
  }

  // --- the end
  void finish() {
    error_code ec;
    signals.cancel(ec);
    deadline.cancel();
  }
  void stop() {
    stopping = true;
    error_code ec;
    acceptor.close(ec);
    answers_from.close();
    const std::set<connection*> all = open;
    for (connection* c : all)
      if (c->idle) c->stream.close();
    if (open.empty()) return finish();
    deadline.expires_after(seconds(limits.stop_seconds));
    deadline.async_wait([this](error_code e) {
      if (!e) end_now();
    });
    signals.async_wait([this](error_code e, int) {
      if (!e) end_now();
    });
  }
  void end_now() {
    cut_off = true;
    for (connection* c : open) *c->cancelled = true;
    context.stop();
  }
};

http_server::http_server(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
http_server::~http_server() = default;

isotope::result<std::unique_ptr<http_server>> http_server::open(api& api, isotope::serve::metrics& counts, const std::string& host,
                                                                std::uint16_t port, const http_limits& limits, bool log) {
  error_code ec;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
  if (ec)
    return isotope::fail(isotope::errc::invalid_argument, "'" + host + "' is no address", "flag --host",
                         "give one, such as 127.0.0.1, ::1 or 0.0.0.0");
  auto p = std::make_unique<parts>(api, counts, limits, log);
  const tcp::endpoint at(address, port);
  p->acceptor.open(at.protocol(), ec);
  if (!ec) p->acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) p->acceptor.bind(at, ec);
  if (!ec) p->acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) p->signals.add(SIGINT, ec);
  if (!ec) p->signals.add(SIGTERM, ec);
  if (ec)
    return isotope::fail(isotope::errc::in_use, "cannot listen: " + ec.message(), host + ":" + std::to_string(port),
                         "give another --host or --port; port 0 is any free one");
  return std::unique_ptr<http_server>(new http_server(std::move(p)));
}
std::string http_server::address() const {
  const auto at = parts_->acceptor.local_endpoint();
  const std::string host = at.address().to_string();
  return "http://" + (at.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(at.port());
}
bool http_server::loopback() const { return parts_->acceptor.local_endpoint().address().is_loopback(); }

bool http_server::run() {
  parts& p = *parts_;
  p.signals.async_wait([&p](error_code e, int) {
    if (!e) p.stop();
  });
  asio::co_spawn(p.context, p.accept(), asio::detached);
  p.context.run();
  return !p.cut_off;
}

}  // namespace serve_program
