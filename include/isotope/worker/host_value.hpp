#pragma once
/// What may leave a device worker: plain values of the host. A tensor of the device, a session, a buffer, a communicator, a pointer or a span cannot be a
/// reply, so that nothing of a device is used or destroyed on another thread.
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../core/step.hpp"

namespace isotope::worker {

namespace detail {

/// The size of a struct of these members in this order.
template <class... Members> constexpr std::size_t bytes_of_struct() {
  std::size_t at = 0, most = 1;
  const auto place = [&](std::size_t bytes, std::size_t align) {
    at = (at + align - 1) / align * align + bytes;
    most = align > most ? align : most;
  };
  (place(sizeof(Members), alignof(Members)), ...);
  return (at + most - 1) / most * most;
}

template <class T> struct plain : std::bool_constant<std::is_arithmetic_v<T> || std::is_enum_v<T>> {};
template <> struct plain<std::string> : std::true_type {};
template <> struct plain<std::monostate> : std::true_type {};
template <class T> struct plain<std::vector<T>> : plain<T> {};
template <class T> struct plain<std::optional<T>> : plain<T> {};
template <class T, std::size_t N> struct plain<std::array<T, N>> : plain<T> {};
template <class A, class B> struct plain<std::pair<A, B>> : std::bool_constant<plain<A>::value && plain<B>::value> {};
template <class... T> struct plain<std::variant<T...>> : std::bool_constant<(plain<T>::value && ...)> {};

/// `host_members` ties every member: what is missing would make the struct larger than its members, for a pointer does not fit into padding.
template <class T, class Tied> struct whole : std::false_type {};
template <class T, class... Members>
struct whole<T, std::tuple<const Members&...>>
    : std::bool_constant<(plain<Members>::value && ...) && sizeof(T) == bytes_of_struct<Members...>()> {};

template <class T>
concept TiesMembers = requires(const T& x) { host_members(x); };
template <class T> requires(std::is_aggregate_v<T> && TiesMembers<T>)
struct plain<T> : whole<T, decltype(host_members(std::declval<const T&>()))> {};

}  // namespace detail

/// A number, a text, a container of host values, or an aggregate of them with a function `host_members`, which ties all its members:
///
///     struct answer { double loss; std::string note; };
///     constexpr auto host_members(const answer& a) { return std::tie(a.loss, a.note); }
template <class T>
concept HostValue = detail::plain<T>::value;
/// What a job may reply: a host value, or nothing.
template <class T>
concept HostReply = std::is_void_v<T> || HostValue<T>;

static_assert(HostValue<std::vector<float>> && !HostValue<float*>);

}  // namespace isotope::worker

namespace isotope {

constexpr auto host_members(const step_report& r) { return std::tie(r.loss, r.grad_norm, r.skipped); }
static_assert(worker::HostValue<step_report>);

}  // namespace isotope
