#pragma once
/// Continues texts of many clients at once: continuous batching in the decode jobs of a device worker.
#include <isotope/generate/text_generator.hpp>
#include <isotope/serve/model_service.hpp>
#include <isotope/serve/text_table.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace isotope::serve {

/// A decoder on a device worker. A decode job, which needs no inputs, ends the texts of clients that are gone, gives free slots to waiting texts, and draws the next
/// tokens of all: one `batcher::advance`.
template <Target T> class text_model final : public worker::loaded_model {
 public:
  text_model(text_generator<T> opened, std::shared_ptr<text_table> texts)
      : opened_(std::move(opened)), batch_(opened_.batch(), opened_.tokenizer(), opened_.ends()), texts_(std::move(texts)) {
    texts_->set_slots(std::size_t(opened_.batch().slots()));
  }
  const text_generator<T>& opened() const { return opened_; }

  result<std::vector<worker::named_numbers>> decode(worker::decode&) override {
    texts_->cancel_gone([&](int slot) { batch_.cancel(slot); });
    while (batch_.has_room()) {
      auto job = texts_->next();
      if (!job) break;
      const auto slot = batch_.admit(job->prompt, job->how);
      if (!slot) job->failed(slot.error());
      else texts_->put(std::size_t(*slot), *std::move(job));
    }
    auto r = batch_.advance([&](std::size_t slot, const text_piece& piece) { return texts_->deliver(slot, piece); });
    if (!r) return std::move(r).error();
    return std::vector<worker::named_numbers>();
  }

 private:
  text_generator<T> opened_;
  text_batch<T> batch_;  // of it
  std::shared_ptr<text_table> texts_;
};

/// A text takes a free slot between two tokens of the others, and gives it back with its last token or when its client is gone. Its tokens are those that it would
/// have alone.
template <Target T> class text_service final : public model_service {
 public:
  using open_model = std::function<result<text_generator<T>>(const device<T>&)>;

  /// @param open  opens the model, on the worker's thread
  /// @param room  texts that wait while no slot is free
  /// @error as device_worker::start and `open`; bad_format: a damaged tokenizer_config.json
  template <worker::FaultSource Faults = worker::no_faults>
  static result<std::unique_ptr<service>> start(open_model open, const std::string& folder, std::size_t room, metrics& counts,
                                                const worker::worker_options& o = {}, Faults faults = {}) {
    std::unique_ptr<text_service> made(new text_service(room, counts));
    auto chat = read_chat_template(folder, made->facts_.no_chat);
    if (!chat) return std::move(chat).error();
    made->facts_.chat = *std::move(chat);
    auto r = made->template load<T>(
        o, std::move(faults),
        [&self = *made, &counts, open = std::move(open)](const device<T>& on) -> result<std::unique_ptr<worker::loaded_model>> {
          auto opened = open(on);
          if (!opened) return std::move(opened).error();
          auto model = std::make_unique<text_model<T>>(*std::move(opened), self.texts_);
          self.describe(model->opened(), counts);
          return std::unique_ptr<worker::loaded_model>(std::move(model));
        });
    if (!r) return std::move(r).error();
    return std::unique_ptr<service>(std::move(made));
  }
  ~text_service() override {
    close();
    join();
  }

  std::size_t room() const override { return texts_->room(); }
  accepted submit(std::vector<text_job> jobs) override {
    return submit_by([&] { return texts_->add(std::move(jobs)); });
  }
  void close() override { texts_->close(); }

 private:
  std::shared_ptr<text_table> texts_;

  text_service(std::size_t room, metrics& counts) : texts_(std::make_shared<text_table>(room, counts)) {}

  void describe(const text_generator<T>& model, metrics& counts) {
    facts_.vocab = std::min(model.batch().vocab(), model.tokenizer().size());
    facts_.most = std::size_t(model.batch().context());
    facts_.words = &model.tokenizer();
    facts_.ends = model.ends();
    counts.slots = model.batch().slots();
    counts.queue = std::int64_t(room());
  }
  std::optional<worker::decode> next(worker::model_handle model) override {
    if (!texts_->busy()) return std::nullopt;
    return worker::decode{model};
  }
  void took(std::vector<worker::named_numbers>) override {}  // pieces went to the clients as they came
  void fail_all(const failure& f) override { texts_->fail_all(f); }
  bool waits() const override { return texts_->busy(); }
};

}  // namespace isotope::serve
