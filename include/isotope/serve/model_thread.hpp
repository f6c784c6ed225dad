#pragma once
/// The one thread that uses a model.
#include <isotope/core/error.hpp>

#include <future>
#include <new>
#include <thread>
#include <utility>

namespace isotope::serve {

/// Opens a model, works on it and, when it is joined, destroys it, all on one thread.
class model_thread {
 public:
  model_thread() = default;
  model_thread(const model_thread&) = delete;
  model_thread& operator=(const model_thread&) = delete;
  ~model_thread() { join(); }

  /// Starts the thread and waits until the model is ready.
  ///
  /// @param open  () -> result<Model>
  /// @param work  (Model&, ready) -> void: calls ready() when it takes jobs
  /// @error as `open`
  template <class Open, class Work> result<void> start(Open open, Work work) {
    std::promise<result<void>> opened;
    auto done = opened.get_future();
    release_ = {};
    thread_ = std::thread(
        [release = release_.get_future(), open = std::move(open), work = std::move(work), opened = std::move(opened)]() mutable {
          auto model = opened_by(open);
          if (!model) return opened.set_value(std::move(model).error());
          work(*model, [&] { opened.set_value({}); });
          release.wait();
        });
    auto r = done.get();
    if (!r) join();
    return r;
  }
  /// Waits until `work` has returned, and ends the model.
  void join() {
    if (!thread_.joinable()) return;
    release_.set_value();
    thread_.join();
  }

 private:
  template <class Open> static auto opened_by(Open& open) -> decltype(open()) {
    try {
      return open();
    } catch (const std::bad_alloc&) {
      return fail(errc::out_of_memory, "has no memory left", "the host, while a model opens", "use a smaller model");
    }
  }

  std::promise<void> release_;
  std::thread thread_;
};

}  // namespace isotope::serve
