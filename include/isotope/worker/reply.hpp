#pragma once
/// The future answer of a job.
///
/// It is not a std::future: that has no continuation, so a server would need a waiting thread for each request, and it reports a lost promise by an
/// exception. Here an answer is a `result`, every job is answered exactly once (a promise that is destroyed answers worker_gone), and there are
/// three ways to get the answer: `get` waits, `then` calls a function without blocking any thread, `co_await` resumes a coroutine.
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "../core/error.hpp"
#include "host_value.hpp"

namespace isotope::worker {

namespace detail {

/// What a promise and its reply share.
template <class T> class answer_state {
 public:
  struct continuation {
    continuation() = default;
    continuation(const continuation&) = delete;
    continuation& operator=(const continuation&) = delete;
    virtual ~continuation() = default;
    virtual void call(result<T> answer) noexcept = 0;
  };

  /// The first answer counts. False: there was one.
  bool answer(result<T> value) {
    std::unique_ptr<continuation> next;
    {
      const std::lock_guard lock(mutex_);
      if (answered_) return false;
      answered_ = true;
      ready_.notify_all();  // under the lock: whoever waits may destroy this object as soon as it has the answer
      if (next_ == nullptr) {
        value_.emplace(std::move(value));
        return true;
      }
      next = std::move(next_);
    }
    next->call(std::move(value));
    return true;
  }
  bool answered() const {
    const std::lock_guard lock(mutex_);
    return answered_;
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return answered_; });
  }
  bool wait_for(double seconds) const {
    std::unique_lock lock(mutex_);
    return ready_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return answered_; });
  }
  result<T> take() {
    wait();
    const std::lock_guard lock(mutex_);
    if (!value_) return fail(errc::invalid_argument, "the answer was taken already", "reply", "call get once");
    result<T> value = *std::move(value_);
    value_.reset();
    return value;
  }
  void then(std::unique_ptr<continuation> next) {
    std::optional<result<T>> value;
    {
      const std::lock_guard lock(mutex_);
      if (!answered_) {
        next_ = std::move(next);
        return;
      }
      value = std::move(value_);
      value_.reset();
    }
    if (value) next->call(*std::move(value));
    else next->call(fail(errc::invalid_argument, "the answer was taken already", "reply", "call then instead of get, and once"));
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable ready_;
  bool answered_ = false;
  std::optional<result<T>> value_;
  std::unique_ptr<continuation> next_;
};

}  // namespace detail

template <HostReply T> class promise;

/// The answer that a job will have. One thread at a time uses it. It may be thrown away: the job runs all the same.
template <HostReply T> class [[nodiscard]] reply {
 public:
  reply() = default;

  /// Whether there is an answer to come: false for a default reply, and after `get` and `then`.
  bool valid() const { return state_ != nullptr; }
  /// Whether `get` would not wait.
  bool ready() const { return state_->answered(); }
  void wait() const { state_->wait(); }
  /// Waits at most so long. False: there is no answer yet.
  bool wait_for(double seconds) const { return state_->wait_for(seconds); }
  /// Waits for the answer and takes it. @error what the job failed with; poisoned, worker_gone, queue_full
  result<T> get() {
    const auto state = std::move(state_);
    return state->take();
  }
  /// Calls f(result<T>) once, when the answer is there: on the worker's thread, which must not be blocked there, or on this one if the answer is there
  /// already. An event loop posts it on: `r.then([&](auto x) { boost::asio::post(loop, [x = std::move(x)] { ... }); })`. `f` must not throw (an exception
  /// ends the program), and may submit jobs.
  template <class F> void then(F f) {
    struct called final : detail::answer_state<T>::continuation {
      F f;
      explicit called(F given) : f(std::move(given)) {}
      void call(result<T> answer) noexcept override { f(std::move(answer)); }
    };
    const auto state = std::move(state_);
    state->then(std::make_unique<called>(std::move(f)));
  }

  /// `result<T> x = co_await worker.submit(job);`: the coroutine goes on where `then` would call its function.
  auto operator co_await() {
    struct awaiter {
      reply self;
      std::optional<result<T>> answer = {};
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> waiting) {
        self.then([this, waiting](result<T> x) {
          answer.emplace(std::move(x));
          waiting.resume();
        });
      }
      result<T> await_resume() { return *std::move(answer); }
    };
    return awaiter{std::move(*this)};
  }

 private:
  friend promise<T>;
  explicit reply(std::shared_ptr<detail::answer_state<T>> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::answer_state<T>> state_;
};

/// The other end of a reply.
template <HostReply T> class promise {
 public:
  promise() : state_(std::make_shared<detail::answer_state<T>>()) {}
  promise(promise&&) noexcept = default;
  promise& operator=(promise&&) = delete;
  ~promise() {
    if (state_ != nullptr) answer(fail(errc::worker_gone, "the job was not run", "device worker", "submit it to another worker"));
  }

  reply<T> get_reply() const { return reply<T>(state_); }
  /// The first answer counts. False: there was one.
  bool answer(result<T> value) const {
    const auto state = state_;  // this object may go as soon as the answer is there
    return state->answer(std::move(value));
  }
  /// The same for other threads, which may answer while this object is moved.
  auto shared() const { return state_; }

 private:
  std::shared_ptr<detail::answer_state<T>> state_;
};

/// A reply that is there already.
template <HostReply T> reply<T> answered(result<T> value) {
  const promise<T> p;
  p.answer(std::move(value));
  return p.get_reply();
}

}  // namespace isotope::worker
