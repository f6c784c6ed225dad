#pragma once
/// What /metrics shows, in the text format of Prometheus 0.0.4.
/// Source: prometheus.io/docs/instrumenting/exposition_formats
#include <isotope/io/json_text.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace isotope::serve {

/// Counters of the server and of the thread of the model. Any thread may add to them.
class metrics {
 public:
  std::atomic<std::int64_t> prompt_tokens = 0, generated_tokens = 0, embedded_texts = 0, embedding_runs = 0, cancelled = 0, refused = 0;
  std::atomic<std::int64_t> waiting = 0, running = 0, connections = 0;  // at this time
  std::int64_t slots = 0, queue = 0;                                    // constants

  /// Counts an answer. @param endpoint  one of the server's own paths, or "other"
  void answered(std::string_view endpoint, int status, double seconds) {
    const std::lock_guard lock(mutex_);
    ++answers_[{std::string(endpoint), status}];
    durations& d = durations_[std::string(endpoint)];
    for (std::size_t k = 0; k < limits.size(); ++k) d.at_most[k] += seconds <= limits[k] ? 1 : 0;
    d.sum += seconds;
    ++d.count;
  }

  std::string text() const {
    std::string s;
    const auto one = [&](std::string_view name, std::string_view kind, std::string_view help, std::int64_t value) {
      s += "# HELP isotope_" + std::string(name) + " " + std::string(help) + "\n# TYPE isotope_" + std::string(name) + " " +
           std::string(kind) + "\nisotope_" + std::string(name) + " " + io::number_text(value) + "\n";
    };
    one("prompt_tokens_total", "counter", "Tokens of prompts and of texts to embed.", prompt_tokens);
    one("generated_tokens_total", "counter", "Tokens that were drawn.", generated_tokens);
    one("embedded_texts_total", "counter", "Texts that were embedded.", embedded_texts);
    one("embedding_runs_total", "counter", "Times that waiting requests were embedded together.", embedding_runs);
    one("cancelled_total", "counter", "Texts whose client closed the connection.", cancelled);
    one("refused_total", "counter", "Requests that found the queue full or the server stopping.", refused);
    one("waiting", "gauge", "Texts in the queue.", waiting);
    one("running", "gauge", "Texts that the model works on.", running);
    one("slots", "gauge", "Texts that the model continues at once.", slots);
    one("queue", "gauge", "Texts that the queue has room for.", queue);
    one("connections", "gauge", "Open connections.", connections);
    const std::lock_guard lock(mutex_);
    s += "# HELP isotope_requests_total Answers by path and status.\n# TYPE isotope_requests_total counter\n";
    for (const auto& [key, n] : answers_)
      s += "isotope_requests_total{path=\"" + key.first + "\",status=\"" + io::number_text(key.second) + "\"} " + io::number_text(n) + "\n";
    s += "# HELP isotope_request_seconds Time from a request's last byte to the end of its answer.\n# TYPE isotope_request_seconds "
         "histogram\n";
    for (const auto& [path, d] : durations_) {
      const auto bucket = [&](const std::string& limit, std::int64_t n) {
        s += "isotope_request_seconds_bucket{path=\"" + path + "\",le=\"" + limit + "\"} " + io::number_text(n) + "\n";
      };
      for (std::size_t k = 0; k < limits.size(); ++k) bucket(io::number_text(limits[k]), d.at_most[k]);
      bucket("+Inf", d.count);
      s += "isotope_request_seconds_sum{path=\"" + path + "\"} " + io::number_text(d.sum) + "\nisotope_request_seconds_count{path=\"" +
           path + "\"} " + io::number_text(d.count) + "\n";
    }
    return s;
  }

 private:
  static constexpr std::array<double, 9> limits{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300};  // seconds
  struct durations {
    std::array<std::int64_t, limits.size()> at_most{};
    double sum = 0;
    std::int64_t count = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::int64_t> answers_;
  std::map<std::string, durations> durations_;
};

}  // namespace isotope::serve
