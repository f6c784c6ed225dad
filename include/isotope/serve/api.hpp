#pragma once
/// Answers requests of OpenAI's interface, without a network: a request in, an answer or the events of a stream out.
#include <isotope/io/utf8.hpp>
#include <isotope/serve/api_error.hpp>
#include <isotope/serve/completion_answer.hpp>
#include <isotope/serve/completion_request.hpp>
#include <isotope/serve/embedding_request.hpp>
#include <isotope/serve/replies.hpp>
#include <isotope/serve/service.hpp>
#include <isotope/serve/token_request.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace isotope::serve {

struct api_request {
  std::string_view method, path;   // without a query
  std::string_view authorization;  // the header of this name
  std::string_view body;
};

struct api_options {
  std::string model;              // the id that clients name
  std::vector<std::string> keys;  // one of them must be in `Authorization: Bearer KEY`; none: anybody may ask
  std::uint64_t seed = 0;         // of requests that bring none: they count up from it
  std::function<std::int64_t()> now = [] { return std::int64_t(0); };  // seconds since 1970
};

/// What the server answers. All calls of `handle` and `close` come from one thread; answers of the model come from its thread.
class api {
 public:
  static constexpr std::array<std::string_view, 8> paths{
      "/health", "/metrics", "/v1/models", "/v1/embeddings", "/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"};

  api(service& model, metrics& counts, api_options o)
      : model_(model), counts_(counts), options_(std::move(o)), next_seed_(options_.seed), started_(options_.now()) {}

  /// One of `paths` for counts and logs, or "other".
  static std::string_view known_path(std::string_view path) {
    if (path.starts_with("/v1/models/")) return "/v1/models";
    const auto at = std::find(paths.begin(), paths.end(), path);
    return at == paths.end() ? "other" : *at;
  }

  /// Answers through `to`, at once or later. If nobody waits for the answer any more, the caller sets the flag that is returned.
  cancel_flag handle(const api_request& r, answer_to to) {
    auto cancelled = std::make_shared<std::atomic<bool>>(false);
    if (auto e = answer(r, to, cancelled)) to.whole(reply_of(*e));
    return cancelled;
  }
  /// Whether a request has the right key, or needs none.
  bool allows(std::string_view authorization) const {
    constexpr std::string_view scheme = "Bearer ";
    const std::string_view given = authorization.starts_with(scheme) ? authorization.substr(scheme.size()) : std::string_view();
    bool any = options_.keys.empty();
    for (const std::string& key : options_.keys) {  // in a time that does not tell how much of a key is right
      unsigned char differs = key.size() == given.size() ? 0 : 1;
      for (std::size_t i = 0; i < given.size(); ++i) differs |= static_cast<unsigned char>(given[i] ^ key[i % key.size()]);
      any |= differs == 0;
    }
    return any;
  }
  /// Refuses what comes from then on; what was accepted is finished.
  void close() {
    closing_ = true;
    model_.close();
  }
  static api_reply reply_of(const api_error& e) {
    return {.status = e.status, .body = e.body(), .retry_after = e.code == "overloaded" ? 1 : 0};
  }

 private:
  service& model_;
  metrics& counts_;
  api_options options_;
  std::uint64_t next_seed_, next_id_ = 0;
  std::int64_t started_;
  bool closing_ = false;

  std::optional<api_error> answer(const api_request& r, const answer_to& to, const cancel_flag& cancelled) {
    const bool reads = r.path == "/health" || r.path == "/metrics" || r.path == "/v1/models" || r.path.starts_with("/v1/models/");
    if (known_path(r.path) == "other")
      return api_error{
          .status = 404, .message = "no such path; fix: see GET /v1/models and docs/SERVING.md", .param = {}, .code = "not_found"};
    if (r.method != (reads ? "GET" : "POST"))
      return api_error{.status = 405,
                       .message = "the path takes " + std::string(reads ? "GET" : "POST") + "; fix: use it",
                       .param = {},
                       .code = "method_not_allowed"};
    if (r.path == "/health") return health(to);
    if (!allows(r.authorization))
      return api_error{.status = 401,
                       .message = "the API key is missing or wrong; fix: send the header Authorization: Bearer KEY",
                       .param = {},
                       .code = "invalid_api_key"};
    if (r.path == "/metrics") return to.whole({.content_type = "text/plain; version=0.0.4", .body = counts_.text()}), std::nullopt;
    if (reads) return models(r.path, to);
    if (closing_) return unavailable(accepted::closed);
    if (r.path == "/tokenize") return tokenize(r.body, to);
    if (r.path == "/detokenize") return detokenize(r.body, to);
    if (model_.broken()) return unavailable(accepted::closed);
    if (r.path == "/v1/embeddings") return embed(r.body, to, cancelled);
    return complete(r.body, r.path == "/v1/chat/completions", to, cancelled);
  }

  api_error unavailable(accepted why) {
    ++counts_.refused;
    if (why == accepted::full)
      return server_error(
          fail(errc::queue_full, "the queue has room for " + std::to_string(model_.room()) + " and is full", "", "try again later"));
    if (const auto cause = model_.broken()) return server_error(*cause);
    return server_error(fail(errc::worker_gone, "the server is stopping", "", "try again when it has started anew"));
  }
  std::optional<api_error> health(const answer_to& to) const {
    if (const auto cause = model_.broken())
      return to.whole({.status = 503, .body = "{\"status\":\"failed\",\"reason\":" + io::json_string(cause->line()) + "}"}), std::nullopt;
    to.whole({.status = closing_ ? 503 : 200, .body = closing_ ? "{\"status\":\"stopping\"}" : "{\"status\":\"ok\"}"});
    return std::nullopt;
  }
  std::optional<api_error> models(std::string_view path, const answer_to& to) const {
    const model_facts& m = model_.facts();
    std::vector<std::pair<std::string, std::int64_t>> numbers{{"vocab", m.vocab}, {m.embeds ? "limit" : "context", std::int64_t(m.most)}};
    if (m.embeds) numbers.emplace_back("width", std::int64_t(m.width));
    const std::string model = model_json(options_.model, started_, numbers);
    if (path == "/v1/models") return to.whole({.body = models_reply(model)}), std::nullopt;
    if (path.substr(11) == options_.model) return to.whole({.body = model}), std::nullopt;
    return api_error{.status = 404,
                     .message = "no such model; fix: GET /v1/models lists the one that is served",
                     .param = "model",
                     .code = "model_not_found"};
  }
  std::optional<api_error> tokenize(std::string_view body, const answer_to& to) const {
    tokenize_request q;
    if (auto e = read_tokenize_request(body, q)) return e;
    const auto made = model_.facts().words->encode(
        q.content, {.special = q.parse_special ? io::specials::parse : io::specials::plain, .framed = q.add_special});
    if (!made) return bad_request("content", made.error().what, made.error().fix);
    return to.whole({.body = tokenize_reply(made->ids)}), std::nullopt;
  }
  std::optional<api_error> detokenize(std::string_view body, const answer_to& to) const {
    token_ids ids;
    if (auto e = read_detokenize_request(body, model_.facts().words->size(), ids)) return e;
    const auto text = model_.facts().words->decode(ids);
    if (!text) return bad_request("tokens", text.error().what, text.error().fix);
    return to.whole({.body = detokenize_reply(*text)}), std::nullopt;
  }

  std::optional<api_error> embed(std::string_view body, const answer_to& to, const cancel_flag& cancelled) {
    const model_facts& m = model_.facts();
    if (!m.embeds)
      return bad_request("", "the model continues texts and has no vectors of them", "use /v1/completions, or serve an embedding model");
    embedding_request q;
    if (auto e = read_embedding_request(body, options_.model, m.vocab, q)) return e;
    embed_job job{{}, {0}, {}, cancelled};
    for (std::size_t k = 0; k < q.texts.size(); ++k) {
      if (const auto* text = std::get_if<std::string>(&q.texts[k])) {
        const auto made = m.words->encode(*text, {.special = io::specials::plain, .limit = m.most, .over = io::over_limit::refuse});
        if (!made)
          return bad_request("input", "text " + std::to_string(k + 1) + ": " + made.error().what, "shorten the text",
                             "context_length_exceeded");
        job.ids.insert(job.ids.end(), made->ids.begin(), made->ids.end());
      } else {
        const auto& ids = std::get<token_ids>(q.texts[k]);
        if (ids.size() > m.most)
          return bad_request(
              "input",
              "text " + std::to_string(k + 1) + " has " + std::to_string(ids.size()) + " ids, and the limit is " + std::to_string(m.most),
              "shorten it", "context_length_exceeded");
        job.ids.insert(job.ids.end(), ids.begin(), ids.end());
      }
      job.starts.push_back(job.ids.size());
    }
    const token_usage used{std::int64_t(job.ids.size()), 0};
    job.done = [to, used, base64 = q.base64, width = m.width, model = options_.model](const result<std::vector<float>>& rows) {
      to.whole(rows ? api_reply{.body = embeddings_reply(*rows, width, base64, model, used)} : reply_of(server_error(rows.error())));
    };
    if (const accepted a = model_.submit(std::move(job)); a != accepted::yes) return unavailable(a);
    counts_.prompt_tokens += used.prompt;
    return std::nullopt;
  }

  /// The ids of a prompt. A text without tokens is continued after an end-of-text token.
  std::optional<api_error> prompt_ids(const text_input& in, token_ids& ids) const {
    const model_facts& m = model_.facts();
    if (const auto* given = std::get_if<token_ids>(&in)) return ids = *given, std::nullopt;
    auto made = m.words->encode(std::get<std::string>(in), {.special = io::specials::plain});
    if (!made) return bad_request("prompt", made.error().what, made.error().fix);
    ids = std::move(made->ids);
    if (ids.empty() && !m.ends.empty()) ids.push_back(m.ends[0]);
    if (ids.empty()) return bad_request("prompt", "has no tokens", "give a text");
    return std::nullopt;
  }
  std::optional<api_error> complete(std::string_view body, bool chat, const answer_to& to, const cancel_flag& cancelled) {
    const model_facts& m = model_.facts();
    if (m.embeds) return bad_request("", "the model embeds texts and continues none", "use /v1/embeddings, or serve a decoder");
    if (chat && !m.chat)
      return bad_request("", m.no_chat, "use /v1/completions, or serve a model whose chat template is Llama 3's or ChatML",
                         "no_chat_template");
    completion_request q;
    if (auto e = chat ? read_chat_request(body, options_.model, q) : read_completion_request(body, options_.model, m.vocab, q)) return e;
    std::vector<token_ids> prompts;
    if (chat) {
      auto ids = chat_ids(*m.chat, q.messages, *m.words);
      if (!ids) return server_error(ids.error());
      prompts.push_back(*std::move(ids));
      if (const std::int32_t end = chat_end(*m.chat, *m.words); end >= 0) q.how.ends.push_back(end);
    }
    for (const text_input& p : q.prompts)
      if (auto e = prompt_ids(p, prompts.emplace_back())) return e;
    if (prompts.size() > model_.room())
      return bad_request("prompt",
                         "has " + std::to_string(prompts.size()) + " texts, and the queue has room for " + std::to_string(model_.room()),
                         "send them in several requests");
    token_usage used;
    std::size_t longest = 0;
    for (const token_ids& p : prompts) used.prompt += std::int64_t(p.size()), longest = std::max(longest, p.size());
    if (q.how.tokens < 0) q.how.tokens = std::int64_t(m.most) - std::int64_t(longest);
    if (q.how.tokens < 1 || std::int64_t(longest) + q.how.tokens > std::int64_t(m.most))
      return bad_request(chat ? "messages" : "prompt",
                         "has " + std::to_string(longest) + " tokens, and with max_tokens " +
                             std::to_string(std::max<std::int64_t>(q.how.tokens, 1)) + " that is more than the context of " +
                             std::to_string(m.most),
                         "shorten it, or lower max_tokens", "context_length_exceeded");
    if (!q.seeded) q.how.seed = next_seed_++;
    const std::string id = (chat ? "chatcmpl-" : "cmpl-") + std::to_string(started_) + "-" + std::to_string(++next_id_);
    const auto shared = std::make_shared<completion_answer>(completion_head{chat, id, options_.now(), options_.model}, prompts.size(), used,
                                                            q.stream, q.include_usage, to);
    std::vector<text_job> jobs;
    for (std::size_t k = 0; k < prompts.size(); ++k)
      jobs.push_back({std::move(prompts[k]), q.how, [shared, k](const text_piece& piece) { shared->add(k, piece); },
                      [shared, cancelled](const failure& f) {
                        shared->failed(f);
                        *cancelled = true;
                      },
                      cancelled});
    if (const accepted a = model_.submit(std::move(jobs)); a != accepted::yes) return unavailable(a);
    counts_.prompt_tokens += used.prompt;
    return std::nullopt;
  }
};

}  // namespace isotope::serve
