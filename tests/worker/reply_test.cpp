// labels: threads
/// Replies: what may leave a worker (DW-04), and the three ways to get it (DW-24): waiting, a function, a coroutine.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <coroutine>

#include <isotope/eager/device_tensor.hpp>

#include "rig.hpp"

using namespace worker_test;

// DW-04, DW-27: nothing of a device is a host value, nor is what refers to memory that another thread may change.
namespace reply_test {

using session = iso::device<here>::session;
using queue = iso::device<here>::queue_type;
static_assert(!worker::HostValue<session> && !worker::HostValue<std::unique_ptr<session>> && !worker::HostValue<std::shared_ptr<session>>);
static_assert(!worker::HostValue<iso::device<here>> && !worker::HostValue<queue> && !worker::HostValue<queue::memory>);
static_assert(!worker::HostValue<iso::buffer<float, queue>> && !worker::HostValue<iso::device_tensor<queue>>);
static_assert(!worker::HostValue<iso::communicator> && !worker::HostValue<std::unique_ptr<iso::communicator>>);
static_assert(!worker::HostValue<float*> && !worker::HostValue<std::span<const float>> && !worker::HostValue<std::string_view>);
static_assert(!worker::HostValue<std::vector<session>> && !worker::HostValue<std::optional<float*>> &&
              !worker::HostValue<std::variant<float, float*>>);
static_assert(worker::HostValue<double> && worker::HostValue<std::string> && worker::HostValue<std::vector<std::vector<float>>>);
static_assert(worker::HostReply<void> && !worker::HostReply<void*>);
static_assert(!std::is_copy_constructible_v<iso::communicator> && !std::is_move_constructible_v<iso::communicator>);
static_assert(!worker::Job<int> && worker::Job<worker::step>);

struct hides_a_pointer {
  double loss = 0;
  session* kept = nullptr;
};
constexpr auto host_members(const hides_a_pointer& x) { return std::tie(x.loss); }
struct refers {
  std::span<const float> values;
};
constexpr auto host_members(const refers& x) { return std::tie(x.values); }
struct untied {
  double loss = 0;
};
struct plain_answer {
  char letter = 0;
  double loss = 0;
  std::string note;
};
constexpr auto host_members(const plain_answer& x) { return std::tie(x.letter, x.loss, x.note); }
static_assert(!worker::HostValue<hides_a_pointer>, "a member that is not tied");
static_assert(!worker::HostValue<refers> && !worker::HostValue<untied> && worker::HostValue<plain_answer>);

}  // namespace reply_test

TEST(worker_reply, the_first_answer_counts_and_is_taken_once) {
  const worker::promise<int> p;
  auto r = p.get_reply(), again = p.get_reply();
  EXPECT_TRUE(r.valid());
  EXPECT_FALSE(r.ready());
  EXPECT_FALSE(r.wait_for(0));
  EXPECT_TRUE(p.answer(1));
  EXPECT_FALSE(p.answer(2));
  EXPECT_TRUE(r.ready());
  EXPECT_TRUE(r.wait_for(0));
  EXPECT_EQ(value_of(r.get()), 1);
  EXPECT_FALSE(r.valid());
  EXPECT_EQ(code_of(again.get()), errc::invalid_argument);
}
TEST(worker_reply, a_promise_that_goes_answers_that_the_worker_is_gone) {
  worker::reply<int> r;
  {
    const worker::promise<int> p;
    r = p.get_reply();
  }
  EXPECT_EQ(code_of(r.get()), errc::worker_gone);
}
TEST(worker_reply, a_function_is_called_once_before_or_after_the_answer) {
  int calls = 0, seen = 0;
  const auto note = [&](iso::result<int> x) { ++calls, seen = value_of(std::move(x)); };
  const worker::promise<int> early, late;
  early.get_reply().then(note);
  EXPECT_EQ(calls, 0);
  early.answer(1);
  EXPECT_EQ(seen, 1);
  late.answer(2);
  late.get_reply().then(note);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(calls, 2);
}

// DW-24: an event loop with one thread serves many requests, and no thread waits for any of them.
TEST(worker_reply, an_event_loop_serves_requests_without_a_waiting_thread) {
  boost::asio::io_context loop;
  const auto work = boost::asio::make_work_guard(loop);
  const auto w = started();
  const auto m = load_training(w);
  constexpr int requests = 20;
  int served = 0;
  std::vector<std::thread::id> threads;
  for (int k = 0; k < requests; ++k)
    w.submit(worker::evaluate{m, batch(float(k))}).then([&](iso::result<double> loss) {
      boost::asio::post(loop, [&, loss = std::move(loss)] {
        EXPECT_TRUE(loss.ok());
        threads.push_back(std::this_thread::get_id());
        if (++served == requests) loop.stop();
      });
    });
  loop.run();
  EXPECT_EQ(served, requests);
  for (const auto id : threads) EXPECT_EQ(id, std::this_thread::get_id());
}

namespace {
/// The least that a coroutine needs: it starts at once, and nobody waits for it.
struct started_coroutine {
  struct promise_type {
    started_coroutine get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { FAIL() << "an exception"; }
  };
};
started_coroutine train_twice(const worker::device_worker& w, worker::model_handle m, worker::promise<double> done) {
  const worker::step job{m, {batch()}, scalars()};
  const auto first = co_await w.submit(job);
  const auto second = co_await w.submit(job);
  if (!first || !second) done.answer((first ? second : first).error());
  else done.answer(first->loss - second->loss);
}
}  // namespace
TEST(worker_reply, a_coroutine_goes_on_when_the_answer_is_there) {
  const auto w = started();
  worker::promise<double> done;
  auto fell_by = done.get_reply();
  train_twice(w, load_training(w), std::move(done));
  EXPECT_GT(value_of(fell_by.get()), 0);
}
