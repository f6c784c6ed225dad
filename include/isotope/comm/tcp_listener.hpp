#pragma once
/// The place where a rank listens for the others. A program may open it before it knows the other addresses: with port 0 the system chooses a free port.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include <unistd.h>

#include "tcp_address.hpp"

namespace isotope {

class tcp_listener {
 public:
  /// Listens at a number as it is, at "localhost" on the loopback interface, and at any other name on all interfaces, since a machine's own name often means its
  /// loopback interface to itself.
  /// @error in_use: another process listens there; invalid_argument: no such address on this machine
  static result<std::shared_ptr<tcp_listener>> open(const tcp_address& at) {
    namespace ip = boost::asio::ip;
    boost::system::error_code e;
    ip::address where = ip::make_address(at.host, e);
    if (e) where = at.host == "localhost" ? ip::address(ip::address_v4::loopback()) : ip::address(ip::address_v4::any());
    std::shared_ptr<tcp_listener> l(new tcp_listener);
    const ip::tcp::endpoint endpoint(where, at.port);
    std::ignore = l->acceptor_.open(endpoint.protocol(), e);
    if (!e) std::ignore = l->acceptor_.set_option(boost::asio::socket_base::reuse_address(true), e);
    if (!e) std::ignore = l->acceptor_.bind(endpoint, e);
    if (!e) std::ignore = l->acceptor_.listen(boost::asio::socket_base::max_listen_connections, e);
    if (!e) l->at_ = {at.host, l->acceptor_.local_endpoint(e).port()};
    if (e == boost::asio::error::address_in_use)
      return fail(errc::in_use, at.text() + " is in use: another process listens there", "tcp",
                  "end that process, or give this rank another port");
    if (e)
      return fail(errc::invalid_argument, "listening at " + at.text() + ": " + e.message(), "tcp",
                  "give this rank an address of this machine");
    return l;
  }
  tcp_listener(const tcp_listener&) = delete;
  tcp_listener& operator=(const tcp_listener&) = delete;

  /// With the port that was chosen, where 0 was asked for.
  const tcp_address& at() const { return at_; }
  /// A second handle of the same socket, for another io_context; negative if the system has none left. The caller closes it.
  int duplicate() { return ::dup(acceptor_.native_handle()); }
  bool is_v6() const { return acceptor_.local_endpoint().address().is_v6(); }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  tcp_address at_;
  tcp_listener() = default;
};

}  // namespace isotope
