#pragma once
/// How the connections of a group come about: rank r connects to every lower rank, twice, and accepts those of the higher ones. Both ends say hello and check
/// what the other says. A connection of somebody else is closed and ignored; a rank that is not yet there is tried again until the time is over.
#include <boost/asio/connect.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tcp_links.hpp"
#include "tcp_listener.hpp"

namespace isotope::comm {

/// Its handlers share it, so it lives until the last one has run.
class tcp_joining : public std::enable_shared_from_this<tcp_joining> {
 public:
  tcp_joining(tcp_links& links, const std::vector<tcp_address>& at, const hello& mine)
      : links_(links), at_(at), mine_(mine), acceptor_(links.io()), notes_(at.size()) {}

  /// @error version_mismatch: the other end is not of this group; timeout: ranks that did not come, and why; peer_lost: a rank gave up
  result<void> run(tcp_listener* listener, double seconds) {
    const auto until =
        tcp_links::clock::now() + std::chrono::duration_cast<tcp_links::clock::duration>(std::chrono::duration<double>(seconds));
    if (listener != nullptr) {
      io_error e;
      std::ignore = acceptor_.assign(listener->is_v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), listener->duplicate(), e);
      if (e)
        return finish(cause{
            fail(errc::invalid_argument, "listening at " + listener->at().text() + ": " + e.message(), "tcp", "close some files"), -1});
      accept();
    }
    for (int p = 0; p < links_.rank(); ++p) {
      io_error e;
      asio::ip::tcp::resolver resolver(links_.io());
      const tcp_address& a = at_[std::size_t(p)];
      const auto found = resolver.resolve(a.host, std::to_string(a.port), e);
      if (e)
        return finish(
            cause{fail(errc::not_found, "rank " + std::to_string(p) + " is at " + a.text() + ", which cannot be resolved: " + e.message(),
                       "tcp", "give a name that this machine knows, or a number"),
                  -1});
      for (const channel use : {channel::data, channel::control}) connect(p, use, found);
    }
    while (!links_.complete() && !why_ && !links_.ended())
      if (!links_.run_one(until) && tcp_links::clock::now() >= until) why_ = late(seconds);
    return finish(std::move(why_));
  }

 private:
  using places = asio::ip::tcp::resolver::results_type;
  /// A connection until both ends have said hello.
  struct attempt {
    tcp_socket socket;
    asio::steady_timer timer;
    hello said, heard;
    std::string at;
    explicit attempt(asio::io_context& io) : socket(io), timer(io) {}
  };
  using attempt_pointer = std::shared_ptr<attempt>;

  tcp_links& links_;
  const std::vector<tcp_address> at_;
  const hello mine_;
  asio::ip::tcp::acceptor acceptor_;
  std::vector<std::string> notes_;  // what last kept a rank from joining
  std::vector<std::weak_ptr<attempt>> attempts_;
  std::optional<cause> why_;
  bool done_ = false;

  attempt_pointer begin() {
    auto a = std::make_shared<attempt>(links_.io());
    std::erase_if(attempts_, [](const auto& w) { return w.expired(); });
    attempts_.push_back(a);
    return a;
  }
  /// Closes what is not part of the group, and ends the group where it did not come about.
  result<void> finish(std::optional<cause> why) {
    done_ = true;
    io_error ignored;
    std::ignore = acceptor_.close(ignored);
    for (auto& w : attempts_)
      if (const auto a = w.lock()) {
        std::ignore = a->socket.close(ignored);
        a->timer.cancel();
      }
    if (why) links_.end(*std::move(why));
    if (links_.ended()) return links_.why();
    return {};
  }
  hello to(int p, channel use) const {
    hello h = mine_;
    h.to = p;
    h.use = use;
    return h;
  }

  void connect(int p, channel use, const places& found) {
    auto a = begin();
    a->at = at_[std::size_t(p)].text();
    asio::async_connect(a->socket, found, [self = shared_from_this(), a, p, use, found](const io_error& e, const auto&) {
      if (self->done_) return;
      if (e) return self->again(a, p, use, found, e);
      a->said = self->to(p, use);
      asio::async_write(a->socket, asio::buffer(&a->said, sizeof a->said), [self, a, p, use, found](const io_error& f, std::size_t) {
        if (self->done_) return;
        if (f) return self->again(a, p, use, found, f);
        asio::async_read(a->socket, asio::buffer(&a->heard, sizeof a->heard), [self, a, p, use, found](const io_error& g, std::size_t) {
          if (self->done_) return;
          if (g) return self->again(a, p, use, found, g);
          if (!a->heard.is_ours())
            self->why_ = cause{fail(errc::version_mismatch, "what answers at " + a->at + " is no rank of isotope", "tcp",
                                    "give the address of rank " + std::to_string(p)),
                               -1};
          else if (auto d = hello::difference(a->said, a->heard, a->at)) self->why_ = cause{*std::move(d), -1};
          else self->links_.add(p, use, std::move(a->socket));
        });
      });
    });
  }
  /// Rank p is not there yet, or went away before it said hello.
  void again(const attempt_pointer& a, int p, channel use, const places& found, const io_error& e) {
    notes_[std::size_t(p)] = " (" + a->at + ": " + e.message() + ")";
    io_error ignored;
    std::ignore = a->socket.close(ignored);
    a->timer.expires_after(std::chrono::milliseconds(20));
    a->timer.async_wait([self = shared_from_this(), a, p, use, found](const io_error&) {
      if (!self->done_) self->connect(p, use, found);
    });
  }

  void accept() {
    auto a = begin();
    acceptor_.async_accept(a->socket, [self = shared_from_this(), a](const io_error& e) {
      if (self->done_) return;
      if (e) {
        a->timer.expires_after(std::chrono::milliseconds(20));
        a->timer.async_wait([self, a](const io_error&) {
          if (!self->done_) self->accept();
        });
        return;
      }
      self->accept();
      io_error ignored;
      const auto from = a->socket.remote_endpoint(ignored);
      a->at = "a connection from " + from.address().to_string() + ":" + std::to_string(from.port());
      asio::async_read(a->socket, asio::buffer(&a->heard, sizeof a->heard), [self, a](const io_error& f, std::size_t) {
        if (self->done_ || f || !a->heard.is_ours()) return;  // somebody else: the connection is closed
        self->answer(a);
      });
    });
  }
  void answer(const attempt_pointer& a) {
    const int p = a->heard.rank;
    a->said = to(p, a->heard.use);
    asio::async_write(a->socket, asio::buffer(&a->said, sizeof a->said), [self = shared_from_this(), a, p](const io_error& e, std::size_t) {
      if (self->done_ || e) return;
      const auto number = std::to_string(p);
      if (auto d = hello::difference(a->said, a->heard, a->at)) self->why_ = cause{*std::move(d), -1};
      else if (p <= self->links_.rank() || p >= self->links_.ranks() || std::uint32_t(a->said.use) > 1)
        self->why_ = cause{
            fail(errc::version_mismatch, "rank " + number + " connects to rank " + std::to_string(self->mine_.rank) + ", and should not",
                 "tcp, " + a->at, "give every rank a number of its own"),
            -1};
      else if (self->links_.has(p, a->said.use))
        self->why_ =
            cause{fail(errc::in_use, "rank " + number + " has joined before", "tcp, " + a->at, "give every rank a number of its own"), -1};
      else self->links_.add(p, a->said.use, std::move(a->socket));
    });
  }

  cause late(double seconds) const {
    std::vector<int> missing;
    std::string notes;
    for (int p = 0; p < links_.ranks(); ++p) {
      if (p == links_.rank() || (links_.has(p, channel::data) && links_.has(p, channel::control))) continue;
      missing.push_back(p);
      notes += notes_[std::size_t(p)];
    }
    return {fail(errc::timeout,
                 ranks_text(missing) + " of " + std::to_string(links_.ranks()) + " did not join within " + seconds_text(seconds) + notes,
                 "tcp", "start " + ranks_text(missing) + ", check addresses and firewalls, or give a longer time to join"),
            -1};
  }
};

}  // namespace isotope::comm
