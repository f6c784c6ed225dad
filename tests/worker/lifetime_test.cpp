// labels: threads
/// The life of a device worker: its thread, what is destroyed on it, handles, the bounded queue, and its end.
#include <pthread.h>

#include <array>
#include <atomic>
#include <set>

#include "rig.hpp"

using namespace worker_test;

namespace {

std::string name_of_this_thread() {
  std::array<char, 32> text{};
  pthread_getname_np(pthread_self(), text.data(), text.size());
  return text.data();
}
/// A communicator of one rank, whose destructor is recorded.
class lonely final : public iso::communicator {
 public:
  explicit lonely(std::shared_ptr<destructions> to) : to_(std::move(to)) {}
  ~lonely() override { to_->add("communicator"); }
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  iso::result<void> all_reduce(std::span<std::byte>, iso::dtype, iso::reduction) override { return {}; }
  iso::result<void> all_gather(std::span<const std::byte>, std::span<std::byte>) override { return {}; }
  iso::result<void> reduce_scatter(std::span<std::byte>, std::span<std::byte>, iso::dtype, iso::reduction) override { return {}; }
  iso::result<void> broadcast(std::span<std::byte>, int) override { return {}; }
  iso::result<void> barrier() override { return {}; }
  void abort(iso::failure) noexcept override {}

 private:
  std::shared_ptr<destructions> to_;
};
/// A device of the processor whose destructor is recorded.
struct recording_device : iso::device<here> {
  std::shared_ptr<destructions> to;
  static iso::result<recording_device> open(const options& o) {
    auto d = iso::device<here>::open(o);
    if (!d) return std::move(d).error();
    return recording_device{*std::move(d), record()};
  }
  recording_device(iso::device<here> d, std::shared_ptr<destructions> r) : iso::device<here>(std::move(d)), to(std::move(r)) {}
  recording_device(recording_device&&) = default;
  ~recording_device() {
    if (to != nullptr) to->add("device");
  }
};

struct long_named {
  static constexpr std::string_view name = "abcdefgh";
};
struct short_named {
  static constexpr std::string_view name = "abcdefgh", short_name = "ab";
};

}  // namespace

// DW-01: what runs a job is the thread with this name, and it is one thread.
TEST(worker_lifetime, one_named_thread_runs_all_jobs) {
  std::string seen;
  std::set<std::thread::id> threads;
  const auto note = [&](worker::decode&) {
    seen = name_of_this_thread();
    threads.insert(std::this_thread::get_id());
    return iso::result<std::vector<worker::named_numbers>>(std::vector<worker::named_numbers>{});
  };
  auto o = one_thread();
  o.index = 3;
  const auto w = started(o);
  EXPECT_EQ(w.name(), "cpu-dev-3");
  const auto m = value_of(w.submit(load_called(note)).get()).model;
  for (int k = 0; k < 3; ++k) value_of(w.submit(worker::decode{m}).get());
  EXPECT_EQ(seen, "cpu-dev-3");
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0U);
  EXPECT_EQ(worker::thread_name_of<long_named>(0), "abcdef-dev-0");
  EXPECT_EQ(worker::thread_name_of<short_named>(12), "ab-dev-12");
}

// DW-01: builds with assertions stop at a call of the device on another thread.
TEST(worker_lifetime, a_claimed_device_belongs_to_one_thread_and_those_that_help_it) {
  const iso::thread_owner owner;
  EXPECT_TRUE(owner.here()) << "until it is claimed";
  bool there = true, helping = false, after = true;
  owner.claim();
  std::thread([&] {
    there = owner.here();
    {
      const iso::thread_owner::helper h(owner);
      helping = owner.here();
    }
    after = owner.here();
  }).join();
  EXPECT_TRUE(owner.here());
  EXPECT_FALSE(there);
  EXPECT_TRUE(helping);
  EXPECT_FALSE(after);
}
TEST(worker_lifetime_death_test, a_call_of_the_device_on_another_thread_ends_a_build_with_assertions) {
#ifdef NDEBUG
  GTEST_SKIP() << "this build has no assertions";
#else
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto w = started();
  const iso::device<here>* leaked = nullptr;
  auto job = worker::load_with<here>([&](const iso::device<here>& d, const std::shared_ptr<iso::communicator>&) {
    leaked = &d;
    return iso::result<std::unique_ptr<worker::loaded_model>>(std::make_unique<called_model>(nothing));
  });
  value_of(w.submit(std::move(job)).get());
  EXPECT_DEATH(static_cast<void>(leaked->load(product_plan())), "used on another thread");
#endif
}

// DW-05, DW-09: models, communicators and the device are destroyed on the worker's thread, in this order.
TEST(worker_lifetime, everything_is_destroyed_on_the_thread_that_made_it) {
  const auto to = record() = std::make_shared<destructions>();
  std::thread::id thread;
  {
    const auto w = value_of(worker::device_worker::start<here, recording_device>(one_thread()));
    const auto m = value_of(w.submit(load_called(
                                         [&](worker::decode&) {
                                           thread = std::this_thread::get_id();
                                           return iso::result<std::vector<worker::named_numbers>>(std::vector<worker::named_numbers>{});
                                         },
                                         to))
                                .get())
                       .model;
    value_of(w.submit(worker::decode{m}).get());
    const auto dropped = value_of(w.submit(load_called(nothing, to)).get()).model;
    value_of(w.submit(worker::drop{dropped}).get());
    EXPECT_EQ(to->names(), std::vector<std::string>{"model"});
    value_of(w.submit(worker::join_communicator{[to]() -> iso::result<std::unique_ptr<iso::communicator>> {
                return std::unique_ptr<iso::communicator>(std::make_unique<lonely>(to));
              }}).get());
  }
  EXPECT_EQ(to->names(), (std::vector<std::string>{"model", "model", "communicator", "device"}));
  for (const auto& [what, on] : to->all()) EXPECT_EQ(on, thread) << what;
}
TEST(worker_lifetime, a_communicator_lives_as_long_as_the_models_that_use_it) {
  const auto to = std::make_shared<destructions>();
  const auto w = started();
  const auto group = value_of(w.submit(worker::join_communicator{[to]() -> iso::result<std::unique_ptr<iso::communicator>> {
                                 return std::unique_ptr<iso::communicator>(std::make_unique<lonely>(to));
                               }}).get());
  auto job = load_called(nothing, to);
  job.group = group;
  const auto m = value_of(w.submit(std::move(job)).get()).model;
  value_of(w.submit(worker::drop{group}).get());
  EXPECT_TRUE(to->names().empty());
  EXPECT_EQ(code_of(w.submit(worker::check_communicator{group}).get()), errc::stale_handle);
  value_of(w.submit(worker::drop{m}).get());
  EXPECT_EQ(to->names(), (std::vector<std::string>{"model", "communicator"}));
}

// DW-03
TEST(worker_lifetime, a_stale_handle_is_an_error_even_if_its_place_is_taken_again) {
  const auto w = started();
  const auto first = load_training(w);
  value_of(w.submit(worker::drop{first}).get());
  EXPECT_EQ(code_of(w.submit(worker::evaluate{first, batch()}).get()), errc::stale_handle);
  const auto second = load_training(w);
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_NE(second, first);
  EXPECT_EQ(code_of(w.submit(worker::step{first, {batch()}, scalars()}).get()), errc::stale_handle);
  EXPECT_EQ(code_of(w.submit(worker::drop{first}).get()), errc::stale_handle);
  EXPECT_TRUE(w.submit(worker::step{second, {batch()}, scalars()}).get().ok());
  EXPECT_EQ(code_of(w.submit(worker::read{worker::model_handle{}}).get()), errc::wrong_device) << "a handle that names nothing";
  const auto other = started();
  EXPECT_EQ(code_of(other.submit(worker::read{second}).get()), errc::wrong_device);
}

// DW-20
TEST(worker_lifetime, a_full_queue_refuses_or_waits_as_it_was_told) {
  for (const auto full : {worker::when_full::refuse, worker::when_full::block}) {
    auto o = one_thread();
    o.queue = {.capacity = 2, .full = full};
    const auto w = started(o);
    held busy(w);
    auto first = w.submit(worker::query_memory{}), second = w.submit(worker::query_memory{});
    EXPECT_EQ(w.waiting(), 2U);
    if (full == worker::when_full::refuse) {
      const auto refused = w.submit(worker::query_memory{}).get();
      EXPECT_EQ(code_of(refused), errc::queue_full);
      EXPECT_NE(refused.error().line().find("2 jobs wait, and the queue holds 2"), std::string::npos) << refused.error().line();
      busy.open();
    } else {
      std::atomic<bool> submitted = false;
      std::thread third([&] {
        auto r = w.submit(worker::query_memory{});
        submitted = true;
        EXPECT_TRUE(r.get().ok());
      });
      EXPECT_FALSE(submitted) << "there is no room before the gate opens";
      busy.open();
      third.join();
    }
    EXPECT_TRUE(first.get().ok());
    EXPECT_TRUE(second.get().ok());
  }
}
TEST(worker_lifetime, the_worker_itself_never_waits_for_room_in_its_queue) {
  auto o = one_thread();
  o.queue = {.capacity = 1, .full = worker::when_full::block};
  const auto w = started(o);
  worker::promise<std::monostate> tried;
  auto outcome = tried.get_reply();
  held busy(w);
  busy.running.then([&](auto) {
    static_cast<void>(w.submit(worker::query_memory{}));
    const auto r = w.submit(worker::query_memory{}).get();
    tried.answer(r ? iso::result<std::monostate>(std::monostate{}) : iso::result<std::monostate>(r.error()));
  });
  busy.open();
  EXPECT_EQ(code_of(outcome.get()), errc::queue_full);
}

// DW-07
TEST(worker_lifetime, jobs_that_wait_at_the_end_run_or_are_refused_and_the_end_may_come_again) {
  for (const auto waiting : {worker::waiting_jobs::run, worker::waiting_jobs::refuse}) {
    const auto w = started();
    held busy(w);
    std::vector<worker::reply<iso::device_memory>> all;
    for (int k = 0; k < 5; ++k) all.push_back(w.submit(worker::query_memory{}));
    auto ended = w.submit(worker::shut_down{waiting});
    EXPECT_EQ(code_of(w.submit(worker::query_memory{}).get()), errc::worker_gone);
    EXPECT_TRUE(w.submit(worker::shut_down{}).get().ok());
    EXPECT_TRUE(w.submit(worker::drop{busy.model}).get().ok()) << "nothing is there any more";
    busy.open();
    EXPECT_TRUE(busy.running.get().ok()) << "what runs is not interrupted";
    for (auto& r : all) {
      const auto x = r.get();
      if (waiting == worker::waiting_jobs::run) EXPECT_TRUE(x.ok());
      else EXPECT_EQ(code_of(x), errc::worker_gone);
    }
    EXPECT_TRUE(ended.get().ok());
    for (int k = 0; k < 3; ++k) EXPECT_TRUE(w.shut_down().ok());
  }
}
// DW-07, under the thread sanitizer: every job is answered, and nothing after the last shutdown runs.
TEST(worker_lifetime, submits_from_many_threads_race_with_shutdowns_from_many) {
  for (int round = 0; round < 8; ++round) {
    auto o = one_thread();
    o.queue = {.capacity = 3, .full = round % 2 == 0 ? worker::when_full::block : worker::when_full::refuse};
    const auto w = started(o);
    std::atomic<int> submitted = 0, answered = 0, wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (bool gone = false; !gone;) {
          ++submitted;
          const auto r = w.submit(worker::query_memory{}).get();
          ++answered;
          gone = !r && r.error().code == errc::worker_gone;
          if (!r && !gone && r.error().code != errc::queue_full) ++wrong;
        }
      });
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        while (answered < 20 * (round + 1)) std::this_thread::yield();
        EXPECT_TRUE(w.shut_down(round % 3 == 0 ? worker::waiting_jobs::refuse : worker::waiting_jobs::run).ok());
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(submitted, answered);
    EXPECT_EQ(wrong, 0);
  }
}
TEST(worker_lifetime, a_worker_that_goes_answers_what_waits) {
  worker::reply<iso::device_memory> waiting;
  std::shared_ptr<gate> at;
  std::thread opener;
  {
    const auto w = started();
    held busy(w);
    waiting = w.submit(worker::query_memory{});
    at = busy.at;
    opener = std::thread([&waiting, at] {
      waiting.wait();  // which is answered before the worker's thread has ended
      at->open();
    });
  }
  opener.join();
  EXPECT_EQ(code_of(waiting.get()), errc::worker_gone);
}
