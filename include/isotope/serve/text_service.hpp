#pragma once
/// Continues texts of many clients at once: continuous batching on the thread of the model.
#include <isotope/generate/text_generator.hpp>
#include <isotope/serve/model_thread.hpp>
#include <isotope/serve/service.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace isotope::serve {

/// A text takes a free slot between two tokens of the others, and gives it back with its last token or when its client is gone. Its tokens are those that it would
/// have alone. After an error of the device, all waiting and further texts fail with it.
template <Target T> class text_service final : public service {
 public:
  using open_model = std::function<result<text_generator<T>>()>;

  /// @param open  opens the model, on the thread that will use it
  /// @param room  texts that wait while no slot is free
  /// @error as `open`; bad_format: a damaged tokenizer_config.json
  static result<std::unique_ptr<service>> start(open_model open, const std::string& folder, std::size_t room, metrics& counts) {
    std::unique_ptr<text_service> made(new text_service(room, counts));
    auto chat = read_chat_template(folder, made->facts_.no_chat);
    if (!chat) return std::move(chat).error();
    made->facts_.chat = *std::move(chat);
    auto r =
        made->thread_.start(std::move(open), [&self = *made](text_generator<T>& model, const auto& ready) { self.work(model, ready); });
    if (!r) return std::move(r).error();
    return std::unique_ptr<service>(std::move(made));
  }
  ~text_service() override {
    close();
    join();
  }

  std::size_t room() const override { return jobs_.room(); }
  accepted submit(std::vector<text_job> jobs) override {
    const auto n = std::int64_t(jobs.size());
    counts_.waiting += n;
    const accepted r = jobs_.push(std::move(jobs));
    if (r != accepted::yes) counts_.waiting -= n;
    return r;
  }
  void close() override { jobs_.close(); }
  void join() override { thread_.join(); }

 private:
  job_queue<text_job> jobs_;
  metrics& counts_;
  model_thread thread_;  // the last member: it uses the others

  text_service(std::size_t room, metrics& counts) : jobs_(room), counts_(counts) {}

  std::optional<text_job> taken() {
    auto job = jobs_.pop();
    if (job) --counts_.waiting;
    return job;
  }
  template <class Ready> void work(text_generator<T>& model, const Ready& ready) {
    facts_.vocab = std::min(model.batch().vocab(), model.tokenizer().size());
    facts_.most = std::size_t(model.batch().context());
    facts_.words = &model.tokenizer();
    facts_.ends = model.ends();
    counts_.slots = model.batch().slots();
    counts_.queue = std::int64_t(jobs_.room());
    text_batch<T> batch(model.batch(), model.tokenizer(), model.ends());
    std::vector<std::optional<text_job>> live(std::size_t(model.batch().slots()));  // by slot
    ready();
    while (batch.busy() || jobs_.wait()) {
      auto r = step(batch, live);
      if (!r) return fail_all(r.error(), live);
    }
  }
  result<void> step(text_batch<T>& batch, std::vector<std::optional<text_job>>& live) {
    for (std::size_t slot = 0; slot < live.size(); ++slot)
      if (live[slot] && *live[slot]->cancelled) {
        batch.cancel(int(slot));
        live[slot].reset();
        ++counts_.cancelled;
      }
    while (batch.has_room()) {
      auto job = taken();
      if (!job) break;
      if (*job->cancelled) {
        ++counts_.cancelled;
        continue;
      }
      const auto slot = batch.admit(job->prompt, job->how);
      if (!slot) job->failed(slot.error());
      else live[std::size_t(*slot)] = std::move(job);
    }
    counts_.running = std::int64_t(batch.live());
    auto r = batch.advance([&](std::size_t slot, const text_piece& piece) {
      ++counts_.generated_tokens;
      if (piece.end == text_end::failed) live[slot]->failed(*piece.wrong);
      else live[slot]->piece(piece);
      if (piece.last()) live[slot].reset();
      return true;
    });
    counts_.running = std::int64_t(batch.live());
    return r;
  }
  /// Answers what there is and what comes with the failure, until the queue is closed.
  void fail_all(const failure& f, std::vector<std::optional<text_job>>& live) {
    set_broken(f);
    for (auto& job : live)
      if (job) job->failed(f), job.reset();
    counts_.running = 0;
    while (jobs_.wait())
      if (const auto job = taken()) job->failed(f);
  }
};

}  // namespace isotope::serve
