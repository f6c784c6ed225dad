#pragma once
/// Where ranks listen: "host:port,host:port,...", of which entry r is rank r.
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"

namespace isotope {

struct tcp_address {
  std::string host;  // a name or a number; an IPv6 number has brackets in texts
  std::uint16_t port = 0;

  std::string text() const { return (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + std::to_string(port); }
  bool operator==(const tcp_address&) const = default;
};

/// @error bad_format: an entry without a host or a port from 0 to 65535
inline result<tcp_address> parse_address(std::string_view text) {
  const auto bad = [&](const char* what) {
    return fail(errc::bad_format, "'" + std::string(text) + "' " + what, "address of a rank",
                "write host:port, for example 10.0.0.7:29500 or [::1]:29500");
  };
  const auto colon = text.rfind(':');
  if (colon == text.npos) return bad("has no port");
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  else if (host.find(':') != host.npos) return bad("has several colons outside brackets");
  if (host.empty()) return bad("has no host");
  tcp_address a{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), a.port);
  if (error != std::errc{} || end != port.data() + port.size() || port.empty()) return bad("has no port from 0 to 65535");
  return a;
}

/// @error bad_format: an entry that is no address; in_use: two entries that are equal
inline result<std::vector<tcp_address>> parse_addresses(std::string_view list) {
  std::vector<tcp_address> all;
  for (;;) {
    const auto comma = list.find(',');
    auto one = parse_address(list.substr(0, comma));
    if (!one) return one.error();
    for (std::size_t r = 0; r < all.size(); ++r)
      if (all[r] == *one)
        return fail(errc::in_use, "ranks " + std::to_string(r) + " and " + std::to_string(all.size()) + " are both at " + one->text(),
                    "address of a rank", "give every rank a port of its own");
    all.push_back(*std::move(one));
    if (comma == list.npos) return all;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace isotope
