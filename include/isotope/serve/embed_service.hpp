#pragma once
/// Embeds texts of many clients: what has come while the device was busy is embedded together.
#include <isotope/generate/embedder.hpp>
#include <isotope/serve/model_thread.hpp>
#include <isotope/serve/service.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope::serve {

/// A request waits for company only while the device works. Vectors do not depend on what is embedded with them. After an error of the device, all waiting and
/// further requests fail with it.
template <Target T> class embed_service final : public service {
 public:
  using open_model = std::function<result<embedder<T>>()>;

  /// @param open    opens the model, on the thread that will use it
  /// @param room    requests that wait while the device works
  /// @param tokens  of requests that are embedded together; a request of more is embedded alone
  /// @error as `open`
  static result<std::unique_ptr<service>> start(open_model open, std::size_t room, std::size_t tokens, metrics& counts) {
    std::unique_ptr<embed_service> made(new embed_service(room, tokens, counts));
    auto r = made->thread_.start(std::move(open), [&self = *made](embedder<T>& model, const auto& ready) { self.work(model, ready); });
    if (!r) return std::move(r).error();
    return std::unique_ptr<service>(std::move(made));
  }
  ~embed_service() override {
    close();
    join();
  }

  std::size_t room() const override { return jobs_.room(); }
  accepted submit(embed_job job) override {
    std::vector<embed_job> one;
    one.push_back(std::move(job));
    ++counts_.waiting;
    const accepted r = jobs_.push(std::move(one));
    if (r != accepted::yes) --counts_.waiting;
    return r;
  }
  void close() override { jobs_.close(); }
  void join() override { thread_.join(); }

 private:
  job_queue<embed_job> jobs_;
  std::size_t tokens_;
  metrics& counts_;
  model_thread thread_;  // the last member: it uses the others

  embed_service(std::size_t room, std::size_t tokens, metrics& counts) : jobs_(room), tokens_(tokens), counts_(counts) {}

  template <class Ready> void work(embedder<T>& model, const Ready& ready) {
    facts_.embeds = true;
    facts_.vocab = model.words().size();
    facts_.most = model.limit();
    facts_.width = model.width();
    facts_.words = &model.words();
    facts_.no_chat = "the model embeds texts";
    counts_.slots = 1;
    counts_.queue = std::int64_t(jobs_.room());
    ready();
    std::vector<embed_job> some;
    std::vector<std::int32_t> ids;
    std::vector<std::size_t> starts;
    std::vector<float> rows;
    while (jobs_.wait()) {
      some.clear();
      ids.clear();
      starts.assign(1, 0);
      const auto fits = [&](const embed_job& j) { return ids.empty() || ids.size() + j.ids.size() <= tokens_; };
      while (auto job = jobs_.pop_if(fits)) {
        --counts_.waiting;
        if (*job->cancelled) {
          ++counts_.cancelled;
          continue;
        }
        for (std::size_t k = 1; k < job->starts.size(); ++k) starts.push_back(ids.size() + job->starts[k]);
        ids.insert(ids.end(), job->ids.begin(), job->ids.end());
        some.push_back(*std::move(job));
      }
      if (some.empty()) continue;
      counts_.running = std::int64_t(starts.size()) - 1;
      ++counts_.embedding_runs;
      counts_.embedded_texts += std::int64_t(starts.size()) - 1;
      rows.resize((starts.size() - 1) * model.width());
      const auto r = model.embed_ids(ids, starts, rows);
      counts_.running = 0;
      std::size_t first = 0;
      for (embed_job& j : some) {
        const std::size_t n = (j.starts.size() - 1) * model.width();
        if (r) j.done(std::vector<float>(rows.begin() + std::ptrdiff_t(first), rows.begin() + std::ptrdiff_t(first + n)));
        else j.done(r.error());
        first += n;
      }
      if (!r) return fail_all(r.error());
    }
  }
  /// Answers what there is and what comes with the failure, until the queue is closed.
  void fail_all(const failure& f) {
    set_broken(f);
    while (jobs_.wait())
      if (const auto job = jobs_.pop()) --counts_.waiting, job->done(f);
  }
};

}  // namespace isotope::serve
