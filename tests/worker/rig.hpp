#pragma once
/// What the tests of device workers share: a small model, its inputs, and objects that record the thread that destroys them.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/worker/device_worker.hpp>
#include <isotope/worker/load.hpp>
#include <isotope/worker/pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace worker_test {

namespace iso = isotope;
namespace worker = isotope::worker;
using here = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;
using iso::errc;

/// y = x W, and the mean of (y - target)^2; x and target have 4 rows of 2 numbers.
template <bool with_loss> struct line {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto type = s.machine->program();
    const auto y = matmul(s.input("x", {4, 2}, type), s.param("w", {2, 2}, iso::init::normal(1)));
    if constexpr (with_loss) return mean(square(y - s.input("target", {4, 2}, type)));
    else return y;
  }
};
template <iso::Target T = here> iso::dynamic_plan training_plan(bool accumulate = false) {
  return *iso::plan_training<T>(line<true>{},
                                {.optimizer = iso::optimizer_kind::sgd, .clip = iso::clipping::none, .accumulate = accumulate});
}
template <iso::Target T = here> iso::dynamic_plan evaluation_plan() { return *iso::plan_inference<T>(line<true>{}); }
template <iso::Target T = here> iso::dynamic_plan product_plan() { return *iso::plan_inference<T>(line<false>{}); }

inline std::vector<worker::named_numbers> batch(float shift = 0) {
  std::vector<float> x, target;
  for (int i = 0; i < 8; ++i) x.push_back(float(i % 3) - 1 + shift), target.push_back(float(i % 2));
  return {{"x", x}, {"target", target}};
}
inline iso::step_scalars scalars() {
  iso::step_scalars x;
  x.learning_rate = 0.1f;
  x.optimizer_step = 0;
  return x;
}
inline worker::worker_options one_thread() {
  worker::worker_options o;
  o.device.threads = 1;
  return o;
}
/// Ends the test as failed if there is no value.
template <class T> T value_of(iso::result<T> r) {
  if (r) {
    if constexpr (std::is_void_v<T>) return;
    else return *std::move(r);
  }
  [&] { FAIL() << r.error().line(); }();
  throw testing::AssertionException(
      testing::TestPartResult(testing::TestPartResult::kFatalFailure, __FILE__, __LINE__, r.error().line().c_str()));
}
template <class T> errc code_of(const iso::result<T>& r) {
  EXPECT_FALSE(r.ok());
  return r.ok() ? errc{} : r.error().code;
}

template <iso::Target T = here> worker::device_worker started(const worker::worker_options& o = one_thread()) {
  return value_of(worker::device_worker::start<T>(o));
}
template <iso::Target T = here> worker::model_handle load_training(const worker::device_worker& w) {
  auto job = worker::load_plans<T>(training_plan<T>(), evaluation_plan<T>());
  job.seed = 3;
  return value_of(w.submit(std::move(job)).get()).model;
}

/// Which threads called destructors, by the name of what was destroyed.
class destructions {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.emplace_back(what, std::this_thread::get_id());
  }
  std::vector<std::pair<std::string, std::thread::id>> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> r;
    for (const auto& [what, thread] : all()) r.push_back(what);
    return r;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, std::thread::id>> all_;
};

/// The destructions that devices of the current test record.
inline std::shared_ptr<destructions>& record() {
  static auto all = std::make_shared<destructions>();
  return all;
}

using faulty = worker::planned_faults;

/// A model whose decode calls a function, and whose destructor is recorded.
class called_model final : public worker::loaded_model {
 public:
  using call = std::function<iso::result<std::vector<worker::named_numbers>>(worker::decode&)>;
  explicit called_model(call f, std::shared_ptr<destructions> to = nullptr) : call_(std::move(f)), to_(std::move(to)) {}
  ~called_model() override {
    if (to_ != nullptr) to_->add("model");
  }
  iso::result<std::vector<worker::named_numbers>> decode(worker::decode& job) override { return call_(job); }

 private:
  call call_;
  std::shared_ptr<destructions> to_;
};
inline iso::result<std::vector<worker::named_numbers>> nothing(worker::decode&) { return std::vector<worker::named_numbers>{}; }
template <iso::Target T = here> worker::load load_called(called_model::call f, std::shared_ptr<destructions> to = nullptr) {
  return worker::load_with<T>([f = std::move(f), to = std::move(to)](const iso::device<T>&, const std::shared_ptr<iso::communicator>&) {
    return iso::result<std::unique_ptr<worker::loaded_model>>(std::make_unique<called_model>(f, to));
  });
}

/// A gate that a job waits at, so that a test decides when it goes on.
class gate {
 public:
  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    arrived_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_; });
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool arrived_ = false, open_ = false;
};
/// A worker that is busy until `open`.
struct held {
  std::shared_ptr<gate> at = std::make_shared<gate>();
  worker::model_handle model;
  worker::reply<std::vector<worker::named_numbers>> running;
  explicit held(const worker::device_worker& w) {
    model = value_of(w.submit(load_called([at = at](worker::decode&) {
                        at->arrive_and_wait();
                        return iso::result<std::vector<worker::named_numbers>>(std::vector<worker::named_numbers>{});
                      })).get())
                .model;
    running = w.submit(worker::decode{model});
    at->await_arrival();
  }
  void open() { at->open(); }
};

}  // namespace worker_test
