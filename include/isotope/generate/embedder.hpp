#pragma once
/// Embeds sentences: texts become vectors whose directions tell how close they are in meaning.
#include <isotope/backend/session/session_memory.hpp>
#include <isotope/core/device.hpp>
#include <isotope/generate/token_packing.hpp>
#include <isotope/interop/bert_folder.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/io/tokenizer_file.hpp>
#include <isotope/model/bert.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope {

/// What happens with a text of more tokens than the model's limit: it loses its end, or it is an error.
enum class long_texts : std::uint8_t { truncate, refuse };

struct embedder_options {
  int tokens = 0;  // of the largest run, at least the model's limit; 0: 1024, or 16384 where kernels do not work in host memory
  std::vector<int> buckets = {16, 64, 256, 1024};  // tokens of smaller runs; a last or short run takes the smallest one that it fits
  bool finer = true;                               // if there are buckets: fine_sizes, too, where kernels work in host memory
  long_texts longer = long_texts::truncate;
  io::specials special = io::specials::parse;  // whether [SEP] in a text is the special token
  std::int64_t budget = 0;                     // bytes; 0: no limit
  bool decompose_all = false;                  // as the parameter of plan_inference
  weight_storage stored = nullptr;             // likewise
  bool a8 = false;                             // likewise
  bool pack = true;                            // likewise
  bool batch_invariant = true;  // likewise; without it, a short text takes less time on Hopper, and last bits depend on the batch
};

/// The tokens of a text: those that were embedded, and those that were cut off.
struct text_tokens {
  std::int32_t used = 0, cut = 0;
};

/// Vectors of texts, in the order of the texts.
struct embeddings {
  std::size_t width = 0;
  std::vector<float> values;       // (N, C)
  std::vector<text_tokens> texts;  // (N)

  std::size_t size() const { return texts.size(); }
  std::span<const float> row(std::size_t k) const { return std::span(values).subspan(k * width, width); }
};

/// The inner product of two vectors: the cosine of their angle if they have unit length.
inline double similarity(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

/// A loaded model of sentences with its tokenizer. There is a plan for each size of runs; they share weights and one arena.
///
/// Texts are packed one after the other, without padding, and sorted by length into runs. A text has the same bits in any batch and any run, if plans are
/// `batch_invariant` (plan/dynamic.hpp), as they are unless the options say otherwise.
template <Target T> class embedder {
 public:
  using session = typename device<T>::session;
  using storage = typename T::precision::storage;

  /// @error as open_model and the other `open`
  static result<embedder> open(const std::string& folder, const embedder_options& o = {}) {
    auto on = device<T>::open();
    if (!on) return std::move(on).error();
    return open(*on, folder, o);
  }
  static result<embedder> open(const device<T>& on, const std::string& folder, const embedder_options& o = {}) {
    auto model = io::open_model(folder);
    if (!model) return std::move(model).error();
    return open(on, *model, o);
  }
  /// Loads the model of an opened folder. @error as read_bert_config, open_tokenizer, plans, match_bert and load_weights; model_mismatch: a tokenizer of
  /// more ids than the model
  static result<embedder> open(const device<T>& on, const io::model_folder& folder, const embedder_options& o = {}) {
    auto config = interop::read_bert_config(folder);
    if (!config) return std::move(config).error();
    auto words = io::open_tokenizer(folder.path);
    if (!words) return std::move(words).error();
    if (words->size() > config->size.vocab)
      return fail(
          errc::model_mismatch,
          "has ids up to " + std::to_string(words->size() - 1) + ", and the model has " + std::to_string(config->size.vocab) + " tokens",
          folder.path + "/tokenizer.json", "fetch the folder again");
    auto made = plans(*config, o);
    if (!made) return std::move(made).error();
    auto loaded = on.load(std::move(made->plans));
    if (!loaded) return std::move(loaded).error();
    const auto match = interop::match_bert(folder, loaded->parameters());
    if (!match) return match.error();
    if (auto r = interop::accept(folder, *match, false); !r) return std::move(r).error();
    if (auto r = interop::load_weights(*loaded, folder, *match); !r) return std::move(r).error();
    return embedder(*std::move(loaded), *std::move(words), *config, std::move(made->buckets), o);
  }

  struct sized_plans {
    std::vector<token_bucket> buckets;
    std::vector<owned_plan> plans;  // one of each bucket
  };
  /// Makes the plans. @error as plan_inference; invalid_argument: no run has room for the longest text, a size is below 1, or weights in q4_0
  static result<sized_plans> plans(const interop::bert_config& config, const embedder_options& o) {
    const int limit = config.sentence.most_tokens, most = o.tokens != 0 ? o.tokens : std::max(limit, usual_tokens);
    if (most < limit)
      return fail(errc::invalid_argument,
                  "is " + std::to_string(o.tokens) + ", and texts have up to " + std::to_string(config.sentence.most_tokens) + " tokens",
                  "embedder_options::tokens", "give " + std::to_string(config.sentence.most_tokens) + " or more");
    if (o.stored == &weights::q4_0)
      return fail(errc::invalid_argument, "is q4_0, which costs vectors of sentences 4 to 7 % of their cosine", "embedder_options::stored",
                  "choose q8_0, bf16 or f16");
    sized_plans all;
    std::vector<int> sizes = o.buckets;
    if (session::host_memory && o.finer && !sizes.empty()) {
      const auto fine = fine_sizes(most);
      sizes.insert(sizes.end(), fine.begin(), fine.end());
    }
    sizes.push_back(most);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const int n : sizes) {
      if (n < 1) return fail(errc::invalid_argument, "is not positive", "embedder_options::buckets", "give 1 or more");
      if (n > most) break;
      const token_bucket b{n, (n + 7) / 8};
      auto p = plan_inference<T>(
          model::bert_embeddings_of{config.size, b.tokens, b.sequences, config.sentence.pooling, config.sentence.normalise}, o.budget, true,
          o.decompose_all, o.stored, nullptr, o.batch_invariant, o.a8, {}, o.pack);
      if (!p) return std::move(p).error();
      all.buckets.push_back(b);
      all.plans.push_back({"embed " + std::to_string(n), *std::move(p)});
    }
    return all;
  }

  /// The numbers of a vector.
  std::size_t width() const { return width_; }
  /// The tokens of a text that are embedded at most, those around it included.
  std::size_t limit() const { return limit_; }
  const io::tokenizer& words() const { return words_; }
  const token_packing& packing() const { return packing_; }
  session& loaded() { return session_; }
  const session& loaded() const { return session_; }

  /// Embeds texts. A text without tokens becomes zeros. @error invalid_argument naming the text, counted from 1: it is longer than the limit, if such texts
  /// are to be refused; as the device reports
  /// @param before  how many texts came before these, for messages
  result<embeddings> embed(std::span<const std::string_view> texts, std::size_t before = 0) { return embed_all(texts, before); }
  result<embeddings> embed(std::span<const std::string> texts, std::size_t before = 0) { return embed_all(texts, before); }

  /// Embeds token ids. Allocates nothing for numbers of texts that it has seen before.
  ///
  /// @param ids     of all texts, with those around them
  /// @param starts  (N + 1)  text k has ids[starts[k], starts[k + 1])
  /// @param rows    (N, C)  receives the vectors
  /// @error invalid_argument: sizes that do not fit, an id that is none of the model's, a text longer than the limit; as the device reports
  result<void> embed_ids(std::span<const std::int32_t> ids, std::span<const std::size_t> starts, std::span<float> rows) {
    if (auto r = take_lengths(ids, starts, rows); !r) return r;
    packing_.pack(lengths_);
    for (std::size_t k = 0; k < lengths_.size(); ++k)
      if (lengths_[k] == 0) std::fill_n(rows.begin() + std::ptrdiff_t(k * width_), width_, 0.0f);
    for (const packed_run& run : packing_.runs()) {
      if (auto r = put(run, ids, starts); !r) return r;
      if (auto r = session_.run_plan(run.bucket); !r) return r;
      const auto out = session_.template output<storage>("output", run.bucket);  // (B, C)
      if (!out) return out.error();
      for (std::size_t k = run.first; k < run.last; ++k) {
        const auto from = out->subspan((k - run.first) * width_, width_);
        std::transform(from.begin(), from.end(), rows.begin() + std::ptrdiff_t(packing_.order()[k] * width_),
                       [](storage x) { return float(x); });
      }
    }
    return {};
  }

 private:
  session session_;
  io::tokenizer words_;
  std::size_t width_, limit_;
  std::int32_t vocab_;
  embedder_options options_;
  token_packing packing_;
  std::vector<std::int32_t> ids_, lengths_;
  std::vector<std::size_t> starts_;

  /// What a run costs besides its tokens, in tokens. MiniLM on an H200: 0.2 ms, and 0.08 ms for each 1,024 tokens.
  static constexpr int usual_tokens = session::host_memory ? 1024 : 16384, overhead = session::host_memory ? 16 : 2560;

  embedder(session loaded, io::tokenizer words, const interop::bert_config& config, std::vector<token_bucket> buckets,
           const embedder_options& o)
      : session_(std::move(loaded)),
        words_(std::move(words)),
        width_(std::size_t(config.size.width)),
        limit_(std::size_t(config.sentence.most_tokens)),
        vocab_(config.size.vocab),
        options_(o),
        packing_(std::move(buckets), overhead) {}

  template <class Text> result<embeddings> embed_all(std::span<const Text> texts, std::size_t before) {
    embeddings all{.width = width_, .values = std::vector<float>(texts.size() * width_), .texts = {}};
    all.texts.reserve(texts.size());
    ids_.clear();
    starts_.assign(1, 0);
    const io::encode_options o{.special = options_.special,
                               .limit = limit_,
                               .over = options_.longer == long_texts::refuse ? io::over_limit::refuse : io::over_limit::cut};
    for (const std::string_view text : texts) {
      const auto made = words_.encode(text, o);
      if (!made) {
        failure f = made.error();
        f.where = "text " + std::to_string(before + all.size() + 1);
        f.fix = "shorten it, or let long texts be truncated";
        return f;
      }
      ids_.insert(ids_.end(), made->ids.begin(), made->ids.end());
      starts_.push_back(ids_.size());
      all.texts.push_back({std::int32_t(made->ids.size()), std::int32_t(made->cut)});
    }
    if (auto r = embed_ids(ids_, starts_, all.values); !r) return std::move(r).error();
    return all;
  }

  result<void> take_lengths(std::span<const std::int32_t> ids, std::span<const std::size_t> starts, std::span<const float> rows) {
    const auto refuse = [](std::string what, const char* where, const char* fix) {
      return fail(errc::invalid_argument, std::move(what), where, fix);
    };
    if (starts.empty() || starts.front() != 0 || starts.back() != ids.size() || !std::is_sorted(starts.begin(), starts.end()))
      return refuse("do not divide the ids into texts", "embed_ids: starts", "give 0, the end of each text, and the number of ids at last");
    if (rows.size() != (starts.size() - 1) * width_)
      return refuse("has room for " + std::to_string(rows.size()) + " numbers, not for " + std::to_string(starts.size() - 1) +
                        " vectors of " + std::to_string(width_),
                    "embed_ids: rows", "give a row for each text");
    for (const std::int32_t id : ids)
      if (id < 0 || id >= vocab_)
        return refuse("has " + std::to_string(id) + ", and the model has " + std::to_string(vocab_) + " tokens", "embed_ids: ids",
                      "give ids of the model's own tokenizer");
    lengths_.clear();
    for (std::size_t k = 0; k + 1 < starts.size(); ++k) {
      const std::size_t n = starts[k + 1] - starts[k];
      if (n > limit_)
        return refuse("text " + std::to_string(k + 1) + " has " + std::to_string(n) + " ids, and the limit is " + std::to_string(limit_),
                      "embed_ids", "shorten it");
      lengths_.push_back(std::int32_t(n));
    }
    return {};
  }

  /// Fills the inputs of a run. Rows after its last text belong to no sequence.
  result<void> put(const packed_run& run, std::span<const std::int32_t> ids, std::span<const std::size_t> starts) {
    const auto in = [&](std::string_view label) { return session_.template input<std::int32_t>(label, run.bucket); };
    const auto tokens = in("tokens"), position = in("position"), first = in("starts");
    for (const auto* r : {&tokens, &position, &first})
      if (!*r) return r->error();
    std::size_t row = 0, s = 0;
    for (std::size_t k = run.first; k < run.last; ++k, ++s) {
      (*first)[s] = std::int32_t(row);
      const std::size_t text = packing_.order()[k], begin = starts[text], end = starts[text + 1];
      for (std::size_t i = begin; i < end; ++i, ++row) (*tokens)[row] = ids[i], (*position)[row] = std::int32_t(i - begin);
    }
    std::fill(first->begin() + std::ptrdiff_t(s), first->end(), std::int32_t(row));
    for (; row < tokens->size(); ++row) (*tokens)[row] = 0, (*position)[row] = 0;
    return {};
  }
};

}  // namespace isotope
