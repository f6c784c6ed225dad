// labels: threads
#include <isotope/comm/mesh.hpp>
#include <isotope/comm/tcp_group.hpp>

#include <algorithm>
#include <array>
#include <thread>

#include "operations.hpp"
#include "tcp_ranks.hpp"

namespace tcp_group_test {

using namespace comm_test;
namespace asio = boost::asio;
using isotope::comm::hello;

class tcp_group : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, tcp_group, ::testing::Values(1, 2, 3, 4, 5), ::testing::PrintToStringParamName());

TEST_P(tcp_group, every_operation_gives_the_bits_of_a_plain_loop) { every_operation_at_awkward_sizes<tcp_ranks>(GetParam()); }
TEST_P(tcp_group, two_hundred_operations_in_random_order_are_right) { two_hundred_operations_in_random_order<tcp_ranks>(GetParam()); }
TEST_P(tcp_group, is_sane) { a_group_is_sane<tcp_ranks>(GetParam()); }

TEST(tcp_group_failures, a_call_that_does_not_fit_ends_the_group) { a_call_that_does_not_fit_ends_the_group<tcp_ranks>(3); }
TEST(tcp_group_failures, calls_that_differ_end_the_group) { calls_that_differ_end_the_group<tcp_ranks>(3); }
TEST(tcp_group_failures, an_abort_wakes_every_rank) { an_abort_wakes_every_rank<tcp_ranks>(4); }
TEST(tcp_group_failures, an_abort_ends_a_blocked_call) { an_abort_ends_a_blocked_call<tcp_ranks>(3); }
TEST(tcp_group_failures, a_rank_that_left_is_named) { a_rank_that_left_is_named<tcp_ranks>(4); }
TEST(tcp_group_failures, a_rank_that_hangs_is_named) { a_rank_that_hangs_is_named<tcp_ranks>(4); }

/// Many times what the buffers of a connection hold, in both directions at the same time, and several slices of each rank.
TEST(tcp_group, large_messages_do_not_wait_for_each_other) {
  tcp_ranks group(3);
  on_ranks(
      3, [&](int r) { return group.join(r); },
      [](communicator& c) {
        const std::size_t elems = 1'500'001;
        std::vector<std::int32_t> x(elems), whole(3 * elems);
        const auto fill = [&] {
          for (std::size_t i = 0; i < elems; ++i) x[i] = std::int32_t(i) * (c.rank() + 1);
        };
        const auto b = [](auto& v) { return std::as_writable_bytes(std::span(v)); };
        const auto wrong = [&](std::int32_t factor) {
          std::size_t n = 0;
          for (std::size_t i = 0; i < elems; ++i) n += x[i] != std::int32_t(i) * factor;
          return n;
        };
        fill();
        expect_ok(c.all_reduce(b(x), dtype::i32, reduction::sum), "all_reduce");
        EXPECT_EQ(wrong(6), 0u);
        fill();
        expect_ok(c.all_gather(b(x), b(whole)), "all_gather");
        expect_ok(c.reduce_scatter(b(whole), b(x), dtype::i32, reduction::sum), "reduce_scatter");
        EXPECT_EQ(wrong(3 * (c.rank() + 1)), 0u);
        expect_ok(c.broadcast(b(x), 2), "broadcast");
        EXPECT_EQ(wrong(9), 0u);
      });
}

TEST(tcp_group, the_groups_of_a_mesh_share_a_listener) {
  constexpr isotope::device_mesh mesh{2, 2};
  const tcp_ranks group(mesh.ranks());
  std::vector<std::thread> ranks;
  for (int r = 0; r < mesh.ranks(); ++r)
    ranks.emplace_back([&, r] {
      const auto make = [&](const std::string& name, const std::vector<int>& members) {
        std::vector<isotope::tcp_address> at;
        for (const int m : members) at.push_back(group.at[std::size_t(m)]);
        auto o = group.options;
        o.group = name;
        return std::make_unique<isotope::tcp_group>(at, o, group.listeners[std::size_t(r)]);
      };
      isotope::mesh_group<isotope::tcp_group> of_rank(mesh, make, r);
      auto c = of_rank.join(r);
      ASSERT_TRUE(c.ok()) << c.error().line();
      const auto sum = [&](communicator& in) {
        std::int32_t x[1] = {1 << r};
        expect_ok(in.all_reduce(std::as_writable_bytes(std::span(x)), dtype::i32, reduction::sum), "a sum of bits");
        return x[0];
      };
      EXPECT_EQ(sum(*c->all), 15);
      EXPECT_EQ(sum(*c->tensor), r < 2 ? 3 : 12);
      EXPECT_EQ(sum(*c->data), 5 << r % 2);
      expect_ok(c->all->barrier(), "a barrier before the end");
    });
  for (auto& t : ranks) t.join();
}

/// Both lines of two ranks that cannot join each other.
std::array<std::string, 2> lines_of(const isotope::tcp_group& first, const isotope::tcp_group& second, errc code) {
  std::array<std::string, 2> lines;
  const auto joins = [&](isotope::tcp_group g, int r) {
    auto c = g.join(r);
    ASSERT_FALSE(c.ok()) << "rank " << r << " joined";
    EXPECT_EQ(c.error().code, code);
    lines[std::size_t(r)] = c.error().line();
  };
  std::thread other([&] { joins(second, 1); });
  joins(first, 0);
  other.join();
  return lines;
}
void expect_words(const std::string& line, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(line.find(w), std::string::npos) << line;
}

TEST(tcp_join, another_run_id_is_refused_on_both_sides) {
  const tcp_ranks group(2);
  const auto lines = lines_of(isotope::tcp_group(group.at, {.run_id = "monday"}, group.listeners[0]),
                              isotope::tcp_group(group.at, {.run_id = "tuesday"}, group.listeners[1]), errc::version_mismatch);
  expect_words(lines[0], {"rank 1 has run id 'tuesday', and rank 0 has run id 'monday'", "a connection from 127.0.0.1:"});
  expect_words(lines[1], {"rank 0 has run id 'monday', and rank 1 has run id 'tuesday'", group.at[0].text().c_str()});
}
TEST(tcp_join, another_number_of_ranks_is_refused_on_both_sides) {
  const tcp_ranks group(3);
  const auto lines = lines_of(isotope::tcp_group({group.at[0], group.at[1]}, {}, group.listeners[0]),
                              isotope::tcp_group(group.at, {}, group.listeners[1]), errc::version_mismatch);
  expect_words(lines[0], {"rank 1 has a number of ranks of 3, and rank 0 has a number of ranks of 2"});
  expect_words(lines[1], {"rank 0 has a number of ranks of 2, and rank 1 has a number of ranks of 3"});
}
TEST(tcp_join, another_group_of_the_mesh_is_refused) {
  const tcp_ranks group(2);
  const auto lines = lines_of(isotope::tcp_group(group.at, {.group = "data group 0"}, group.listeners[0]),
                              isotope::tcp_group(group.at, {.group = "data group 1"}, group.listeners[1]), errc::version_mismatch);
  expect_words(lines[0], {"group 'data group 1'", "group 'data group 0'"});
}
/// A connection of the test's own to a rank.
struct stranger {
  asio::io_context io;
  asio::ip::tcp::socket socket{io};
  explicit stranger(const isotope::tcp_address& at) {
    boost::system::error_code e;
    socket.connect({asio::ip::make_address(at.host), at.port}, e);
    EXPECT_FALSE(e) << e.message();
  }
  void say(const hello& h) {
    boost::system::error_code e;
    asio::write(socket, asio::buffer(&h, sizeof h), e);
    EXPECT_FALSE(e) << e.message();
  }
  hello hears() {
    hello h;
    boost::system::error_code e;
    asio::read(socket, asio::buffer(&h, sizeof h), e);
    EXPECT_FALSE(e) << e.message();
    return h;
  }
};
hello hello_of(int rank, int to, int ranks) {
  hello h;
  h.ranks = ranks;
  h.rank = rank;
  h.to = to;
  isotope::comm::put_text(h.run_id, "test");
  isotope::comm::put_text(h.group, "all");
  return h;
}

TEST(tcp_join, another_version_is_refused_with_both_numbers) {
  const tcp_ranks group(2);
  stranger other(group.at[0]);
  hello h = hello_of(1, 0, 2);
  h.version = 7;
  other.say(h);
  auto c = group.join(0);
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, errc::version_mismatch);
  expect_words(c.error().line(), {"rank 1 has protocol version 7, and rank 0 has protocol version 1"});
  EXPECT_EQ(other.hears().version, 1u);
}
TEST(tcp_join, lists_in_another_order_are_refused) {
  const tcp_ranks group(3);
  stranger other(group.at[0]);
  other.say(hello_of(2, 1, 3));
  auto c = group.join(0);
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, errc::version_mismatch);
  expect_words(c.error().line(), {"rank 2 takes this end for rank 1, and this end is rank 0", "in the same order"});
}
TEST(tcp_join, a_rank_twice_is_refused) {
  const tcp_ranks group(3);
  stranger one(group.at[0]), two(group.at[0]);
  one.say(hello_of(1, 0, 3));
  two.say(hello_of(1, 0, 3));
  auto c = group.join(0);
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, errc::in_use);
  expect_words(c.error().line(), {"rank 1 has joined before"});
}
TEST(tcp_join, numbers_of_ranks_out_of_range_are_refused) {
  for (const int rank : {-1, 0, 2, 1 << 30}) {
    const tcp_ranks group(2);
    stranger other(group.at[0]);
    other.say(hello_of(rank, 0, 2));
    auto c = group.join(0);
    ASSERT_FALSE(c.ok());
    EXPECT_EQ(c.error().code, errc::version_mismatch) << c.error().line();
  }
}
TEST(tcp_join, strangers_and_half_open_connections_are_ignored) {
  const tcp_ranks group(2);
  stranger silent(group.at[0]), gone(group.at[0]), rude(group.at[0]), half(group.at[0]);
  gone.socket.close();
  hello h;
  h.magic.fill('G');
  rude.say(h);
  asio::write(half.socket, asio::buffer("isotope\n", 8));
  on_ranks(2, [&](int r) { return group.join(r); }, [](communicator& c) { expect_ok(isotope::check_group(c), "the check"); });
}
TEST(tcp_join, a_peer_that_is_no_rank_is_named) {
  const tcp_ranks group(2);
  asio::io_context io;
  asio::ip::tcp::acceptor fake(io, {asio::ip::make_address("127.0.0.1"), 0});
  std::thread answers([&] {
    for (int i = 0; i < 2; ++i) {
      boost::system::error_code e;
      auto s = fake.accept(e);
      hello h;
      h.magic.fill('H');
      asio::write(s, asio::buffer(&h, sizeof h), e);
      asio::read(s, asio::buffer(&h, sizeof h), e);
    }
  });
  const isotope::tcp_address at{"127.0.0.1", fake.local_endpoint().port()};
  auto c = isotope::tcp_group({at, group.at[1]}, {.run_id = "test"}).join(1);
  answers.join();
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, errc::version_mismatch);
  expect_words(c.error().line(), {"what answers at 127.0.0.1:", "is no rank of isotope"});
}
TEST(tcp_join, a_port_in_use_is_named) {
  const tcp_ranks group(1);
  auto again = isotope::tcp_listener::open(group.at[0]);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, errc::in_use);
  expect_words(again.error().line(), {group.at[0].text().c_str(), "is in use"});
  auto joined = isotope::tcp_group({group.at[0], {"127.0.0.1", 1}}).join(0);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, errc::in_use);
}
/// A port that is bound and not listened at refuses connections, and no other process can take it.
TEST(tcp_join, ranks_that_do_not_come_are_named_with_the_reason) {
  asio::io_context io;
  asio::ip::tcp::acceptor bound(io);
  bound.open(asio::ip::tcp::v4());
  bound.bind({asio::ip::make_address("127.0.0.1"), 0});
  const isotope::tcp_address nobody{"127.0.0.1", bound.local_endpoint().port()};
  const tcp_ranks group(2);
  auto c = isotope::tcp_group({nobody, group.at[0], group.at[1]}, {.join_seconds = 0.1}, group.listeners[0]).join(1);
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, errc::timeout);
  expect_words(c.error().line(), {"ranks 0, 2 of 3 did not join within 0.1 s", nobody.text().c_str(), "Connection refused"});
}
TEST(tcp_join, options_out_of_range_are_refused) {
  const auto code = [](const isotope::tcp_options& o, int rank) {
    auto c = isotope::tcp_group({{"127.0.0.1", 0}}, o).join(rank);
    return c.ok() ? errc::stale_handle : c.error().code;
  };
  EXPECT_EQ(code({}, 1), errc::invalid_argument);
  EXPECT_EQ(code({.run_id = std::string(96, 'x')}, 0), errc::invalid_argument);
  EXPECT_EQ(code({.join_seconds = -1}, 0), errc::invalid_argument);
  EXPECT_EQ(code({.timeout_seconds = -1}, 0), errc::invalid_argument);
  EXPECT_EQ(isotope::tcp_group({}).join(0).error().code, errc::invalid_argument);
}

TEST(tcp_address, lists_of_addresses_are_read) {
  const auto list = isotope::parse_addresses("a:1,[::1]:65535,10.0.0.7:0");
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[1].host, "::1");
  EXPECT_EQ((*list)[1].text(), "[::1]:65535");
  EXPECT_EQ((*list)[2].port, 0);
  for (const char* bad : {"", "a", "a:", ":1", "a:65536", "a:1,", "a:-1", "::1:5", "a:1x", "a: 1"})
    EXPECT_EQ(isotope::parse_addresses(bad).error().code, errc::bad_format) << bad;
  EXPECT_EQ(isotope::parse_addresses("a:1,b:1,a:1").error().line(),
            "address of a rank: ranks 0 and 2 are both at a:1 (fix: give every rank a port of its own)");
}

}  // namespace tcp_group_test
