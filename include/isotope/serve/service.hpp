#pragma once
/// What a server needs of a model, whatever it is: facts, and a place to leave work.
#include <isotope/core/error.hpp>
#include <isotope/generate/text_piece.hpp>
#include <isotope/generate/text_request.hpp>
#include <isotope/io/tokenizer.hpp>
#include <isotope/serve/chat_template.hpp>
#include <isotope/serve/metrics.hpp>
#include <isotope/worker/bounded_queue.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace isotope::serve {

using worker::accepted;

/// Set by the server when nobody waits for an answer any more.
using cancel_flag = std::shared_ptr<std::atomic<bool>>;

/// A prompt to continue. What it calls is called on the worker's thread, and must not wait.
struct text_job {
  std::vector<std::int32_t> prompt;
  text_request how;
  std::function<void(const text_piece&)> piece;
  std::function<void(const failure&)> failed;
  cancel_flag cancelled;
};
/// Texts to embed, as ids: text k has ids[starts[k], starts[k + 1]).
struct embed_job {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> starts;
  std::function<void(result<std::vector<float>>)> done;  // (N, C)
  cancel_flag cancelled;
};

/// What is known of a model once it is open.
struct model_facts {
  bool embeds = false;                   // or else it continues texts
  std::int32_t vocab = 0;                // ids are below this
  std::size_t most = 0;                  // tokens of a text: the context of a decoder, the limit of an embedder
  std::size_t width = 0;                 // numbers of a vector
  const io::tokenizer* words = nullptr;  // valid until `join`
  std::vector<std::int32_t> ends;
  std::optional<chat_template> chat;
  std::string no_chat;  // why there is none
};

/// A model behind a queue. The functions may be called on any thread.
class service {
 public:
  service() = default;
  service(const service&) = delete;
  service& operator=(const service&) = delete;
  virtual ~service() = default;

  const model_facts& facts() const { return facts_; }
  /// How many jobs wait at most.
  virtual std::size_t room() const = 0;
  /// Leaves all jobs or none.
  virtual accepted submit(std::vector<text_job>) { return accepted::closed; }
  virtual accepted submit(embed_job) { return accepted::closed; }
  /// Takes no more jobs; those that were accepted are finished.
  virtual void close() = 0;
  /// Waits until all is finished, and the model is gone.
  virtual void join() = 0;
  /// Why the model no longer works, as errc::poisoned; none while it does.
  std::optional<failure> broken() const {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

 protected:
  model_facts facts_;
  void set_broken(const failure& f) {
    const std::lock_guard lock(mutex_);
    if (!broken_) broken_ = f;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<failure> broken_;
};

}  // namespace isotope::serve
