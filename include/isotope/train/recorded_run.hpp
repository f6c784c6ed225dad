#pragma once
/// A training run recorded elsewhere, with everything needed to repeat it: docs/TRACES.md has the file's format and the model's formulas.
#include <isotope/core/error.hpp>
#include <isotope/core/step.hpp>
#include <isotope/io/safetensors_file.hpp>
#include <isotope/model/gpt.hpp>
#include <isotope/train/batch.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace isotope::train {

/// The name of the only tensor of a recorded run that is not a weight.
inline constexpr std::string_view recorded_tokens = "tokens";

struct recorded_run {
  std::string path;
  model::gpt size;
  step_scalars scalars;  // of every step; optimizer_step counts the steps
  std::int64_t steps = 0, batch = 0, length = 0;
  std::vector<std::int32_t> tokens;  // (steps, batch, length + 1)
  io::safetensors_file file;         // every other tensor is an initial weight, read on demand
};

/// The tokens of a step and, shifted by one, the targets.
struct recorded_step {
  std::vector<std::int32_t> tokens, targets;  // (batch, length)
};
inline recorded_step step_of(const recorded_run& r, std::int64_t step) {
  recorded_step s;
  for (std::int64_t b = 0; b < r.batch; ++b) {
    const std::int32_t* row = r.tokens.data() + (step * r.batch + b) * (r.length + 1);
    s.tokens.insert(s.tokens.end(), row, row + r.length);
    s.targets.insert(s.targets.end(), row + 1, row + r.length + 1);
  }
  return s;
}

namespace detail {

using io::dims_text;

/// Reads the metadata of a recorded run and keeps the first failure.
class recorded_notes {
 public:
  recorded_notes(const io::safetensors_index& file, const std::string& path) : file_(file), path_(path) {}

  std::int32_t size(std::string_view key, std::int32_t most) {
    const std::string_view text = note(key);
    std::int32_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size() || n < 1 || n > most)
      refuse(key, "a whole number from 1 to " + std::to_string(most));
    return n;
  }
  /// Reads a number in [low, high) after rounding to f32, which is what the optimizer takes.
  float number(std::string_view key, float low, float high, const char* range) {
    std::string_view text = note(key);
    const auto x = next(text);
    const auto value = float(x.value);
    if (!x.good || !text.empty() || !(value >= low && value < high)) refuse(key, range);
    return value;
  }
  /// Reads "0.9,0.999", with or without blanks and brackets.
  std::pair<double, double> betas(std::string_view key) {
    std::string_view text = note(key);
    if (text.size() > 1 && ((text.front() == '[' && text.back() == ']') || (text.front() == '(' && text.back() == ')')))
      text = text.substr(1, text.size() - 2);
    const auto a = next(text);
    const bool comma = !text.empty() && text[0] == ',';
    if (comma) text.remove_prefix(1);
    const auto b = next(text);
    const auto good = [](const read_number& x) { return x.good && x.value >= 0 && x.value < 1; };
    if (!good(a) || !comma || !good(b) || !text.empty()) refuse(key, "two numbers in [0, 1) with a comma between them");
    return {a.value, b.value};
  }
  result<void> status() const {
    if (failed_.what.empty()) return {};
    return failed_;
  }

 private:
  struct read_number {
    double value = 0;
    bool good = false;
  };
  const io::safetensors_index& file_;
  const std::string& path_;
  failure failed_;

  std::string_view note(std::string_view key) const {
    const std::string* text = file_.note(key);
    return text == nullptr ? std::string_view() : trim(*text);
  }
  void refuse(std::string_view key, const std::string& wanted) {
    if (!failed_.what.empty()) return;
    const std::string* text = file_.note(key);
    const std::string where = path_ + ": metadata '" + std::string(key) + "'";
    failed_ = text == nullptr ? fail(errc::not_found, "is missing", where, "give " + wanted)
                              : fail(errc::bad_format, "is '" + *text + "'", where, "give " + wanted);
  }
  static std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
  }
  /// Removes a number and the blanks around it from the front.
  static read_number next(std::string_view& text) {
    text = trim(text);
    double x = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (error != std::errc()) return {};
    text = trim(text.substr(std::size_t(end - text.data())));
    return {x, true};
  }
};

}  // namespace detail

/// Reads and checks everything except the weights, which check_weights compares with the model.
///
/// @error as read_safetensors; not_found, bad_format: metadata or `tokens`, with the name, what is there and what is needed
inline result<recorded_run> read_recorded_run(const std::string& path) {
  auto file = io::open_safetensors(path);
  if (!file) return std::move(file).error();
  recorded_run r;
  r.path = path;
  r.file = *std::move(file);

  // These bounds keep the arithmetic of shapes within 63 bits.
  constexpr float any = 1e30f;
  detail::recorded_notes notes(r.file, r.path);
  r.size.layers = notes.size("layers", 1000);
  r.size.heads = notes.size("heads", 10000);
  r.size.width = notes.size("width", 1000000);
  r.size.vocab = notes.size("vocab", 1000000000);
  r.size.context = notes.size("context", 1000000);
  r.scalars.learning_rate = notes.number("lr", 0, any, "a number in [0, 1e30)");
  std::tie(r.scalars.beta1, r.scalars.beta2) = notes.betas("betas");
  r.scalars.epsilon = notes.number("eps", std::numeric_limits<float>::min(), any, "a number in [1.2e-38, 1e30)");
  r.scalars.weight_decay = notes.number("decay", 0, any, "a number in [0, 1e30)");
  r.scalars.clip_norm = notes.number("clip", 0, any, "a number in [0, 1e30); 0 does not clip");
  if (auto status = notes.status(); !status) return std::move(status).error();
  if (const auto wrong = model::validate(r.size); !wrong.empty())
    return fail(errc::bad_format, std::string(wrong.view()), path + ": metadata", "record the run again");

  const std::string where = path + ": tensor 'tokens'";
  const io::tensor_entry* t = r.file.find(recorded_tokens);
  if (t == nullptr) return fail(errc::not_found, "is missing", where, "give token numbers (steps, batch, length + 1) as I64");
  if (t->type.name != "I64")
    return fail(errc::bad_format, "is " + std::string(t->type.name) + ", not I64", where, "store token numbers as 64-bit integers");
  if (t->dims.size() != 3 || t->dims[0] < 1 || t->dims[1] < 1 || t->dims[2] < 2)
    return fail(errc::bad_format, "has the shape " + detail::dims_text(t->dims), where,
                "give (steps, batch, length + 1) with at least one step, one window and two tokens");
  r.steps = t->dims[0], r.batch = t->dims[1], r.length = t->dims[2] - 1;
  if (r.length > r.size.context)
    return fail(errc::bad_format,
                detail::dims_text(t->dims) + " has windows of " + std::to_string(r.length) + " tokens, the context is " +
                    std::to_string(r.size.context),
                where, "shorten the windows or widen the context");
  if (r.batch > std::numeric_limits<std::int32_t>::max() / r.length)
    return fail(errc::bad_format, detail::dims_text(t->dims) + " has more than 2^31 tokens a step", where, "give fewer windows");
  std::vector<std::int64_t> tokens(std::size_t(t->elems()));
  if (auto read = r.file.read(*t, std::as_writable_bytes(std::span(tokens))); !read) return std::move(read).error();
  r.tokens.resize(tokens.size());
  for (std::size_t i = 0; i < r.tokens.size(); ++i) {
    const std::int64_t x = tokens[i];
    if (x < 0 || x >= r.size.vocab)
      return fail(errc::bad_format,
                  "element " + std::to_string(i) + " is " + std::to_string(x) + ", the vocabulary has " + std::to_string(r.size.vocab),
                  where, "give numbers from 0 to " + std::to_string(r.size.vocab - 1));
    r.tokens[i] = static_cast<std::int32_t>(x);
  }
  return r;
}

/// A parameter of a model: its path in the state dict, and its dimensions.
struct named_dims {
  std::string name;
  std::vector<std::int64_t> dims;
};

/// Checks that the weights of the file match the model's by name, shape and format and are finite in f32.
///
/// @error not_found: a weight is missing; bad_format: another shape, a format without fractions, a number that is not finite; unknown_key: a
/// tensor that is no parameter; each with the names and numbers
inline result<void> check_weights(const recorded_run& r, std::span<const named_dims> model) {
  const auto where = [&](const std::string& name) { return r.path + ": tensor '" + name + "'"; };
  std::vector<float> values;
  for (const named_dims& p : model) {
    const io::tensor_entry* t = r.file.find(p.name);
    if (t == nullptr) return fail(errc::not_found, "is missing", where(p.name), "give " + detail::dims_text(p.dims) + " in F32");
    if (t->dims != p.dims)
      return fail(errc::bad_format, "has the shape " + detail::dims_text(t->dims) + ", the model's is " + detail::dims_text(p.dims),
                  where(p.name), p.dims.size() == 2 ? "give weights of linear layers as (out,in)" : "");
    values.resize(std::size_t(t->elems()));
    if (auto read = r.file.read_f32(*t, values); !read) {
      if (read.error().code != errc::invalid_argument) return read;
      return fail(errc::bad_format, std::move(read).error().what, where(p.name), "store weights as F32");
    }
    const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (bad != values.end())
      return fail(errc::bad_format, "element " + std::to_string(bad - values.begin()) + " is " + io::number_text(*bad), where(p.name),
                  "give finite numbers");
  }
  for (const io::tensor_entry& t : r.file.tensors) {
    const bool known =
        t.name == recorded_tokens || std::any_of(model.begin(), model.end(), [&](const named_dims& p) { return p.name == t.name; });
    if (!known)
      return fail(errc::unknown_key, detail::dims_text(t.dims) + " is no parameter of the model", where(t.name),
                  "leave it out, or name it as in docs/TRACES.md: " + model.front().name + ", ...");
  }
  return {};
}

}  // namespace isotope::train
