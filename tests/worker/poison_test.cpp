// labels: threads
/// A device worker whose device fails, by faults that are injected (EN-13), by exceptions, and by jobs that hang.
#include <array>
#include <ctime>
#include <stdexcept>

#include "rig.hpp"

using namespace worker_test;

namespace {

worker::device_worker started_with(const faulty& f, const worker::worker_options& o = one_thread()) {
  return value_of(worker::device_worker::start<here, iso::device<here>, faulty>(o, f));
}
/// The processor, which says that it is another device, so that its destructor counts as one that calls a driver.
struct driven_device : iso::device<here> {
  static constexpr bool on_host = false;
  std::shared_ptr<destructions> to;
  static iso::result<driven_device> open(const options& o) {
    auto d = iso::device<here>::open(o);
    if (!d) return std::move(d).error();
    return driven_device{*std::move(d), record()};
  }
  driven_device(iso::device<here> d, std::shared_ptr<destructions> r) : iso::device<here>(std::move(d)), to(std::move(r)) {}
  driven_device(driven_device&&) = default;
  ~driven_device() {
    if (to != nullptr) to->add("device");
  }
};

}  // namespace

// DW-06, EN-13
TEST(worker_poison, a_failed_device_answers_what_waits_and_what_comes_with_the_first_cause_and_ends_well) {
  for (const auto& [what, code] :
       {std::pair{worker::fault::device_lost, errc::device_lost}, std::pair{worker::fault::poison, errc::poisoned}}) {
    const faulty faults;
    const auto w = started_with(faults);
    const auto m = load_training(w);
    held busy(w);
    faults.strike("step", what);
    auto struck = w.submit(worker::step{m, {batch()}, scalars()});
    auto waiting = w.submit(worker::step{m, {batch()}, scalars()});
    auto dropped = w.submit(worker::drop{m});
    busy.open();
    EXPECT_EQ(code_of(struck.get()), code);
    const auto waited = waiting.get();
    EXPECT_EQ(code_of(waited), errc::poisoned);
    EXPECT_NE(waited.error().line().find("(injected)"), std::string::npos) << "the first cause: " << waited.error().line();
    EXPECT_TRUE(dropped.get().ok());
    const auto later = w.submit(worker::query_memory{}).get();
    EXPECT_EQ(code_of(later), errc::poisoned);
    EXPECT_NE(later.error().line().find("(injected)"), std::string::npos);
    EXPECT_EQ(later.error().line().find('\n'), std::string::npos);
    EXPECT_TRUE(w.submit(worker::drop{m}).get().ok());
    ASSERT_TRUE(w.poisoned().has_value());
    EXPECT_EQ(w.poisoned()->code, code);
    EXPECT_TRUE(w.shut_down().ok());
    EXPECT_EQ(code_of(w.submit(worker::query_memory{}).get()), errc::worker_gone);
  }
}
// DW-06: a submit is answered within a millisecond, since it is answered before it returns, and by less than a millisecond of work.
TEST(worker_poison, a_poisoned_worker_answers_before_submit_returns) {
  const faulty faults;
  const auto w = started_with(faults);
  faults.strike("query memory", worker::fault::device_lost);
  EXPECT_EQ(code_of(w.submit(worker::query_memory{}).get()), errc::device_lost);
  constexpr int submits = 1000;
  const std::clock_t before = std::clock();
  for (int k = 0; k < submits; ++k) ASSERT_TRUE(w.submit(worker::query_memory{}).ready());
  EXPECT_LT(double(std::clock() - before) / CLOCKS_PER_SEC, 1e-3 * submits) << "seconds of the processor";
}
TEST(worker_poison, memory_that_is_refused_fails_one_job_only) {
  const faulty faults;
  const auto w = started_with(faults);
  const auto m = load_training(w);
  faults.strike("step", worker::fault::out_of_memory);
  EXPECT_EQ(code_of(w.submit(worker::step{m, {batch()}, scalars()}).get()), errc::out_of_memory);
  EXPECT_FALSE(w.poisoned().has_value());
  EXPECT_TRUE(w.submit(worker::step{m, {batch()}, scalars()}).get().ok());
}
TEST(worker_poison, an_exception_poisons_and_its_text_is_the_cause) {
  const auto w = started();
  const auto m = value_of(w.submit(load_called([](worker::decode&) -> iso::result<std::vector<worker::named_numbers>> {
                             throw std::runtime_error("a kernel of the test");
                           })).get())
                     .model;
  const auto r = w.submit(worker::decode{m}).get();
  EXPECT_EQ(code_of(r), errc::poisoned);
  EXPECT_NE(r.error().line().find("decode threw an exception: a kernel of the test"), std::string::npos) << r.error().line();
  EXPECT_EQ(code_of(w.submit(worker::query_memory{}).get()), errc::poisoned);
  const auto other = started();
  const auto odd =
      value_of(other.submit(load_called([](worker::decode&) -> iso::result<std::vector<worker::named_numbers>> { throw 7; })).get());
  EXPECT_EQ(code_of(other.submit(worker::decode{odd.model}).get()), errc::poisoned);
}
// DW-06: a failed device is not touched again, not even by destructors; the processor, which has no driver, is destroyed as always.
TEST(worker_poison, what_would_call_the_driver_of_a_failed_device_is_leaked_and_nothing_else) {
  for (const bool fails : {true, false}) {
    const auto to = record() = std::make_shared<destructions>();
    const faulty faults;
    {
      const auto w = value_of(worker::device_worker::start<here, driven_device, faulty>(one_thread(), faults));
      value_of(w.submit(load_called(nothing, to)).get());
      if (fails) faults.strike("query memory", worker::fault::device_lost);
      EXPECT_EQ(w.submit(worker::query_memory{}).get().ok(), !fails);
    }
    EXPECT_EQ(to->names(), fails ? std::vector<std::string>{} : (std::vector<std::string>{"model", "device"}));
  }
  const auto to = std::make_shared<destructions>();
  const faulty faults;
  {
    const auto w = started_with(faults);
    value_of(w.submit(load_called(nothing, to)).get());
    faults.strike("query memory", worker::fault::device_lost);
    EXPECT_FALSE(w.submit(worker::query_memory{}).get().ok());
  }
  EXPECT_EQ(to->names(), std::vector<std::string>{"model"});
}
TEST(worker_poison, a_submitter_that_waits_for_room_is_answered) {
  const faulty faults;
  auto o = one_thread();
  o.queue = {.capacity = 1, .full = worker::when_full::block};
  const auto w = started_with(faults, o);
  held busy(w);
  faults.strike("query memory", worker::fault::device_lost);
  auto struck = w.submit(worker::query_memory{});
  std::thread blocked([&] { EXPECT_FALSE(w.submit(worker::decode{busy.model}).get().ok()); });
  std::thread other([&] { EXPECT_FALSE(w.submit(worker::read{busy.model}).get().ok()); });
  busy.open();
  EXPECT_EQ(code_of(struck.get()), errc::device_lost);
  blocked.join();
  other.join();
}

// DW-16, EN-13: the only job whose time is limited is the one that hangs.
TEST(worker_poison, a_hung_step_is_answered_at_its_timeout_while_its_thread_still_hangs) {
  const faulty faults;
  auto o = one_thread();
  o.watch.step_timeout_seconds = 0.02;
  o.watch.abort_deadline_seconds = 1e6;
  const auto w = started_with(faults, o);
  const auto m = load_training(w);
  faults.strike("step", worker::fault::hung);
  auto hung = w.submit(worker::step{m, {batch()}, scalars()});
  faults.await_hung();
  const auto r = hung.get();
  EXPECT_EQ(code_of(r), errc::timeout);
  EXPECT_NE(r.error().line().find("cpu-dev-0, step took longer than 0.02 s"), std::string::npos) << r.error().line();
  EXPECT_EQ(code_of(w.submit(worker::query_memory{}).get()), errc::poisoned);
  faults.release();
  EXPECT_TRUE(w.shut_down().ok());
}
// DW-16
TEST(worker_poison, a_thread_that_never_returns_is_told_to_the_program_and_left_behind) {
  const faulty faults;
  auto o = one_thread();
  worker::promise<std::string> told;
  auto line = told.get_reply();
  o.watch.step_timeout_seconds = 0.01;
  o.watch.abort_deadline_seconds = 0.01;
  o.watch.on_hung = [to = told.shared()](const iso::failure& f) { to->answer(f.line()); };
  const auto w = started_with(faults, o);
  const auto to = std::make_shared<destructions>();
  const auto m = value_of(w.submit(load_called(nothing, to)).get()).model;
  faults.strike("evaluate", worker::fault::hung);
  EXPECT_EQ(code_of(w.submit(worker::evaluate{m, batch()}).get()), errc::timeout);
  EXPECT_NE(value_of(line.get()).find("cpu-dev-0, evaluate did not end within 0.01 s after its timeout"), std::string::npos);
  EXPECT_EQ(code_of(w.shut_down()), errc::timeout);
  EXPECT_EQ(code_of(w.shut_down()), errc::timeout) << "again";
  faults.release();
  while (to->names().empty()) std::this_thread::yield();  // the thread must not outlive the program
}
TEST(worker_poison, jobs_within_their_time_are_not_disturbed) {
  auto o = one_thread();
  o.watch.step_timeout_seconds = 1e5;
  const auto w = started(o);
  const auto m = load_training(w);
  for (int k = 0; k < 50; ++k) ASSERT_TRUE(w.submit(worker::step{m, {batch()}, scalars()}).get().ok());
}
