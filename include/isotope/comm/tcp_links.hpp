#pragma once
/// The connections of one rank to all others, and the exchange of messages over them. One thread runs everything; `abort` alone may be called from others.
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tcp_wire.hpp"

namespace isotope::comm {

namespace asio = boost::asio;
using tcp_socket = asio::ip::tcp::socket;
using io_error = boost::system::error_code;

/// A message of one exchange.
struct outgoing {
  int peer = 0;
  std::span<const std::byte> body;
};
struct incoming {
  int peer = 0;
  std::span<std::byte> body;
};

class tcp_links {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr const char* name = "tcp";

  tcp_links(int rank, int ranks, double timeout_seconds)
      : rank_(rank), timeout_(span_of(timeout_seconds)), seconds_(timeout_seconds), peers_(std::size_t(ranks)) {}
  tcp_links(const tcp_links&) = delete;
  tcp_links& operator=(const tcp_links&) = delete;
  /// Leaves the group: what was sent still arrives, and later operations of the others fail.
  ~tcp_links() {
    if (!cause_) tell_all({});
  }

  asio::io_context& io() { return io_; }
  int rank() const { return rank_; }
  int ranks() const { return int(peers_.size()); }
  bool has(int p, channel use) const { return socket(p, use).has_value(); }
  bool complete() const {
    for (int p = 0; p < ranks(); ++p)
      if (p != rank_ && !(has(p, channel::data) && has(p, channel::control))) return false;
    return true;
  }
  /// Takes a connection over which both ends have said hello.
  void add(int p, channel use, tcp_socket s) {
    io_error ignored;
    std::ignore = s.set_option(asio::ip::tcp::no_delay(true), ignored);
    std::ignore = s.set_option(asio::socket_base::keep_alive(true), ignored);
    std::ignore = s.non_blocking(true, ignored);
    const std::lock_guard lock(mutex_);
    socket(p, use).emplace(std::move(s));
    if (use == channel::data) return;
    peer& other = at(p);
    asio::async_read(*other.control, asio::buffer(&other.word, sizeof other.word), [this, p](const io_error& e, std::size_t) {
      at(p).control_over = true;
      if (e) return;
      if (at(p).word.what == last_word::kind::left) at(p).reason = comm::left(p, name).why;
      else end(at(p).word.told());
    });
  }

  /// Ends the group, unless it has ended before, and tells everybody.
  void end(cause why) {
    take_request();
    if (cause_) return;
    cause_ = std::move(why);
    tell_all(cause_);
    for (auto& p : peers_) {
      io_error ignored;
      if (p.data) std::ignore = p.data->close(ignored);
    }
  }
  /// From any thread. The others are told at once, whatever this rank's own thread is doing.
  void abort(cause why) {
    {
      const std::lock_guard lock(mutex_);
      if (requested_) return;
      requested_ = std::move(why);
      has_request_.store(true);
      tell(requested_);
    }
    asio::post(io_, [] {});
  }
  /// Whether the group has ended; then `why` says it.
  bool ended() {
    take_request();
    return cause_.has_value();
  }
  failure why() const { return cause_->seen_by(rank_); }
  /// Hears what others have said, without waiting.
  result<void> state() {
    io_.restart();
    io_.poll();
    if (ended()) return why();
    return {};
  }

  /// Sends and receives all these messages at the same time, at most one in each direction for a peer. Afterwards nothing refers to the bodies.
  /// @error peer_lost, timeout: no byte moved for as long as the timeout; invalid_argument: another rank calls something else
  result<void> exchange(const call& c, std::uint64_t number, std::uint32_t step, std::span<const outgoing> out,
                        std::span<const incoming> in) {
    if (auto s = state(); !s) return s;  // numbers that were sent before the group ended are no answer
    call_ = &c, number_ = number;
    progress_ = clock::now();
    for (const auto& m : in) receive(m, message_header::of(c, number, step, m.body.size()));
    for (const auto& m : out) send(m, message_header::of(c, number, step, m.body.size()));
    while ((pending_ > 0 || lost_ >= 0) && !ended()) {
      const auto until = lost_ >= 0 ? lost_at_ + std::min(timeout_, span_of(last_word_seconds)) : progress_ + timeout_;
      if (lost_ >= 0 && at(lost_).control_over) end(lost());
      else if (!run_one(until) && clock::now() >= until) end(lost_ >= 0 ? lost() : late());
    }
    while (pending_ > 0) run_one(clock::time_point::max());  // the operations of closed sockets end at once
    if (cause_) return why();
    return {};
  }
  /// Runs what is ready, or waits for it until then. Whether something ran.
  bool run_one(clock::time_point until) {
    io_.restart();
    return io_.run_one_until(until) != 0;
  }

 private:
  /// How long a rank whose data connection broke may take to say why.
  static constexpr double last_word_seconds = 1;
  static constexpr std::size_t everything = std::size_t(1) << 30;  // bytes of one system call at most

  struct peer {
    std::optional<tcp_socket> data, control;
    message_header said, heard, expected;
    bool checked = false, receiving = false;
    last_word word;
    bool control_over = false;
    std::optional<failure> reason;  // why it left
  };

  const int rank_;
  const clock::duration timeout_;
  const double seconds_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> busy_{io_.get_executor()};
  std::vector<peer> peers_;
  std::optional<cause> cause_;
  int pending_ = 0;
  clock::time_point progress_{};
  int lost_ = -1;  // the first peer whose data connection broke
  clock::time_point lost_at_{};
  std::string lost_by_;
  const call* call_ = nullptr;  // of the exchange in progress
  std::uint64_t number_ = 0;

  std::mutex mutex_;  // of the control connections, for sending, and of the request
  std::optional<cause> requested_;
  std::atomic<bool> has_request_{false};

  static clock::duration span_of(double seconds) {
    constexpr double longest = 1e8;  // what can be added to the clock without an overflow
    return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds < longest ? seconds : longest));
  }
  peer& at(int p) { return peers_[std::size_t(p)]; }
  std::optional<tcp_socket>& socket(int p, channel use) { return use == channel::data ? at(p).data : at(p).control; }
  const std::optional<tcp_socket>& socket(int p, channel use) const {
    const peer& other = peers_[std::size_t(p)];
    return use == channel::data ? other.data : other.control;
  }
  std::string now_doing() const { return " in " + call_->text() + ", operation " + std::to_string(number_); }

  void take_request() {
    if (!has_request_.load() || cause_) return;
    {
      const std::lock_guard lock(mutex_);
      cause_ = requested_;
    }
    for (auto& p : peers_) {
      io_error ignored;
      if (p.data) std::ignore = p.data->close(ignored);
    }
  }
  void tell_all(const std::optional<cause>& why) {
    const std::lock_guard lock(mutex_);
    tell(why);
  }
  /// Says the last word, once, or that this rank leaves. It fits into the empty buffer of the connection, so nothing waits here.
  void tell(const std::optional<cause>& why) {
    const last_word w = why ? last_word::of(*why) : last_word{};
    for (auto& p : peers_) {
      if (!p.control) continue;
      io_error ignored;
      p.control->send(asio::buffer(&w, sizeof w), 0, ignored);
      std::ignore = p.control->shutdown(asio::socket_base::shutdown_send, ignored);
    }
  }

  void send(const outgoing& m, const message_header& h) {
    peer& p = at(m.peer);
    p.said = h;
    ++pending_;
    const std::array<asio::const_buffer, 2> parts{asio::buffer(&p.said, sizeof p.said), asio::buffer(m.body.data(), m.body.size())};
    asio::async_write(
        *p.data, parts,
        [this](const io_error& e, std::size_t) {
          progress_ = clock::now();
          return e ? 0 : everything;
        },
        [this, peer = m.peer](const io_error& e, std::size_t) {
          --pending_;
          if (e) lose(peer, e);
        });
  }
  void receive(const incoming& m, const message_header& h) {
    peer& p = at(m.peer);
    p.expected = h;
    p.checked = false;
    p.receiving = true;
    ++pending_;
    const std::array<asio::mutable_buffer, 2> parts{asio::buffer(&p.heard, sizeof p.heard), asio::buffer(m.body.data(), m.body.size())};
    asio::async_read(
        *p.data, parts,
        [this, &p](const io_error& e, std::size_t n) {
          progress_ = clock::now();
          if (e) return std::size_t(0);
          if (!p.checked && n >= sizeof p.heard) {
            p.checked = true;
            if (p.heard != p.expected) return std::size_t(0);
          }
          return everything;
        },
        [this, peer = m.peer](const io_error& e, std::size_t) {
          --pending_;
          auto& other = at(peer);
          other.receiving = false;
          if (e) lose(peer, e);
          else if (other.heard != other.expected) end({disagreement(peer), -1});
        });
  }
  void lose(int p, const io_error& e) {
    if (e == asio::error::operation_aborted || lost_ >= 0) return;
    lost_ = p;
    lost_at_ = clock::now();
    lost_by_ = e == asio::error::eof ? "it closed the connection" : e.message();
  }
  cause lost() const {
    const auto& reason = peers_[std::size_t(lost_)].reason;
    if (reason) return {*reason, -1};
    return {fail(errc::peer_lost, "rank " + std::to_string(lost_) + " is lost" + now_doing() + ": " + lost_by_, name,
                 "see the output of that rank: it ended, or its machine did"),
            -1};
  }
  cause late() const {
    std::vector<int> silent;
    for (int p = 0; p < ranks(); ++p)
      if (peers_[std::size_t(p)].receiving) silent.push_back(p);
    const std::string what = silent.empty() ? "no rank took numbers" : ranks_text(silent) + " sent nothing";
    return {fail(errc::timeout, what + " for " + seconds_text(seconds_) + now_doing(), name,
                 "look for what holds " + (silent.empty() ? std::string("the other ranks") : ranks_text(silent)) +
                     ", or give a longer timeout"),
            -1};
  }
  failure disagreement(int p) const {
    const auto& heard = peers_[std::size_t(p)].heard;
    const auto one = [](int r, const call& c, std::uint64_t n) {
      return "rank " + std::to_string(r) + " calls " + c.text() + ", operation " + std::to_string(n);
    };
    const std::string mine = one(rank_, *call_, number_), theirs = one(p, heard.called(), heard.number);
    return fail(errc::invalid_argument, p < rank_ ? theirs + ", and " + mine : mine + ", and " + theirs, name,
                "let all ranks call the same operations in the same order with the same sizes");
  }
};

}  // namespace isotope::comm
