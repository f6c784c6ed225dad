#pragma once
/// Embeds texts of many clients: what has come while the device was busy is embedded together.
#include <isotope/generate/embedder.hpp>
#include <isotope/serve/model_service.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace isotope::serve {

/// An embedding model on a device worker. A decode job embeds texts: inputs `ids` of all texts and `starts` (N + 1), as embedder::embed_ids, output `rows` (N, C).
template <Target T> class embed_model final : public worker::loaded_model {
 public:
  explicit embed_model(embedder<T> opened) : opened_(std::move(opened)) {}
  const embedder<T>& opened() const { return opened_; }

  result<std::vector<worker::named_numbers>> decode(worker::decode& job) override {
    const auto ids = ints(job, "ids"), starts = ints(job, "starts");
    if (!ids || !starts || starts->empty())
      return fail(errc::invalid_argument, "are not ids and starts", "the inputs of an embedding", "give both, as int32");
    starts_.assign(starts->begin(), starts->end());
    std::vector<float> rows((starts_.size() - 1) * opened_.width());
    if (auto r = opened_.embed_ids(*ids, starts_, rows); !r) return std::move(r).error();
    std::vector<worker::named_numbers> all;
    all.push_back({"rows", std::move(rows)});
    return all;
  }

 private:
  embedder<T> opened_;
  std::vector<std::size_t> starts_;

  static const std::vector<std::int32_t>* ints(const worker::decode& job, std::string_view name) {
    for (const worker::named_numbers& x : job.inputs)
      if (x.name == name) return std::get_if<std::vector<std::int32_t>>(&x.values);
    return nullptr;
  }
};

/// A request waits for company only while the device works. Vectors do not depend on what is embedded with them.
template <Target T> class embed_service final : public model_service {
 public:
  using open_model = std::function<result<embedder<T>>(const device<T>&)>;

  /// @param open    opens the model, on the worker's thread
  /// @param room    requests that wait while the device works
  /// @param tokens  of requests that are embedded together; a request of more is embedded alone
  /// @error as device_worker::start and `open`
  template <worker::FaultSource Faults = worker::no_faults>
  static result<std::unique_ptr<service>> start(open_model open, std::size_t room, std::size_t tokens, metrics& counts,
                                                const worker::worker_options& o = {}, Faults faults = {}) {
    std::unique_ptr<embed_service> made(new embed_service(room, tokens, counts));
    auto r = made->template load<T>(
        o, std::move(faults),
        [&self = *made, open = std::move(open)](const device<T>& on) -> result<std::unique_ptr<worker::loaded_model>> {
          auto opened = open(on);
          if (!opened) return std::move(opened).error();
          auto model = std::make_unique<embed_model<T>>(*std::move(opened));
          self.describe(model->opened());
          return std::unique_ptr<worker::loaded_model>(std::move(model));
        });
    if (!r) return std::move(r).error();
    return std::unique_ptr<service>(std::move(made));
  }
  ~embed_service() override {
    close();
    join();
  }

  std::size_t room() const override { return waiting_.capacity(); }
  accepted submit(embed_job job) override {
    std::vector<embed_job> one;
    one.push_back(std::move(job));
    return submit_by([&] {
      ++counts_.waiting;
      const accepted r = waiting_.push(one);
      if (r != accepted::yes) --counts_.waiting;
      return r;
    });
  }
  void close() override { waiting_.close(); }

 private:
  worker::bounded_queue<embed_job> waiting_;
  std::size_t tokens_;
  metrics& counts_;
  std::vector<embed_job> together_;  // that the job under way embeds

  embed_service(std::size_t room, std::size_t tokens, metrics& counts) : waiting_(room), tokens_(tokens), counts_(counts) {}

  void describe(const embedder<T>& model) {
    facts_.embeds = true;
    facts_.vocab = model.words().size();
    facts_.most = model.limit();
    facts_.width = model.width();
    facts_.words = &model.words();
    facts_.no_chat = "the model embeds texts";
    counts_.slots = 1;
    counts_.queue = std::int64_t(room());
  }
  /// As many of the requests that wait as fit together.
  std::optional<worker::decode> next(worker::model_handle model) override {
    std::vector<std::int32_t> ids, starts{0};
    const auto fits = [&](const embed_job& j) { return ids.empty() || ids.size() + j.ids.size() <= tokens_; };
    while (auto job = waiting_.pop_if(fits)) {
      --counts_.waiting;
      if (*job->cancelled) {
        ++counts_.cancelled;
        continue;
      }
      for (std::size_t k = 1; k < job->starts.size(); ++k) starts.push_back(std::int32_t(ids.size() + job->starts[k]));
      ids.insert(ids.end(), job->ids.begin(), job->ids.end());
      together_.push_back(*std::move(job));
    }
    if (together_.empty()) return std::nullopt;
    const auto texts = std::int64_t(starts.size()) - 1;
    counts_.running = texts;
    ++counts_.embedding_runs;
    counts_.embedded_texts += texts;
    worker::decode job{model};
    job.inputs.push_back({"ids", std::move(ids)});
    job.inputs.push_back({"starts", std::move(starts)});
    return job;
  }
  void took(std::vector<worker::named_numbers> answer) override {
    counts_.running = 0;
    auto from = std::get<std::vector<float>>(answer[0].values).begin();
    for (embed_job& j : together_) {
      const auto to = from + std::ptrdiff_t((j.starts.size() - 1) * facts_.width);
      j.done(std::vector<float>(from, to));
      from = to;
    }
    together_.clear();
  }
  void fail_all(const failure& f) override {
    counts_.running = 0;
    for (embed_job& j : together_) j.done(f);
    together_.clear();
    for (embed_job& j : waiting_.close_and_take()) --counts_.waiting, j.done(f);
  }
  bool waits() const override { return waiting_.size() != 0; }
};

}  // namespace isotope::serve
