#pragma once
/// Golden samples: what the reference of an op gave for up to 50 inputs when its specification got its version. A reference that gives something else at
/// the same version has a defect, or needs a new version.
///
/// Numbers are compared within one unit in the last place of f32, or 2^-23 of the reference's own bound where it cancels: compilers may or may not
/// contract a product and a sum, and C libraries differ in the last bits of f64.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "case_record.hpp"
#include "enumerate.hpp"
#include "numbers.hpp"
#include "sha256.hpp"

namespace isotope::conform {

inline constexpr std::size_t golden_samples = 50;

/// A result summarised in few numbers. If no number is finite, `sum` and `one` are 0.
struct golden_digest {
  std::int64_t elems = 0;
  std::string odd;              // a hash of which elements are NaN or infinite; empty: none
  double sum = 0, sum_off = 0;  // weighted sum of the finite elements, weights from 1 to 2 by place; how far it may be off
  double one = 0, one_off = 0;  // one element, and how far it may be off
};
/// An input with the reference's results, or the gradients of all operands that have one.
struct golden_sample {
  std::string recipe;        // hash of the case without its seed
  std::int64_t replica = 0;  // selects the numbers that fill the recipe
  std::vector<golden_digest> results;
};

namespace golden_detail {

/// Returns x rounded to f32. volatile, because g++ 12 at -O2 removes two such round trips side by side.
inline double held_in_f32(double x) {
  const volatile float y = float(x);
  return double(y);
}
inline std::string recipe_of(test_case c) {
  c.seed = 0;
  c.scalars.beta1 = held_in_f32(c.scalars.beta1);  // recipes hold scalars in f32
  c.scalars.beta2 = held_in_f32(c.scalars.beta2);
  return sha256::of(record_of(c)).substr(0, 8);
}
inline std::uint64_t seed_of_sample(const golden_sample& s) { return stable_hash().add(s.recipe).add(std::uint64_t(s.replica)).value(); }

inline golden_digest digest_of(const answer& a, std::uint64_t seed) {
  constexpr double ulps = 0x1p-23;
  golden_digest d;
  d.elems = std::int64_t(a.value.size());
  stable_hash odd;
  bool any = false;
  for (std::size_t i = 0; i < a.value.size(); ++i) {
    const double v = a.value[i], granted = i < a.slack.size() && std::isfinite(a.slack[i]) ? std::fabs(a.slack[i]) : 0;
    const double off = ulps * (std::fabs(v) + granted) + 0x1p-149;
    if (!std::isfinite(v)) {
      any = true;
      odd.add(std::uint64_t(i)).add(std::uint64_t(std::isnan(v) ? 0 : v > 0 ? 1 : 2));
      continue;
    }
    const double weight = 1 + double((i * 2654435769u) % 4294967296u) * 0x1p-32;
    d.sum += weight * v;
    d.sum_off += weight * off;
    if (i == seed % a.value.size()) d.one = v, d.one_off = off;
  }
  if (any) d.odd = hex_text(odd.value()).view().substr(8);
  return d;
}

/// Returns the cases that samples are made from: forward and gradient cases of one op in f32, without random shapes, each once. Those with given numbers are
/// among them only if the op has no others.
class recipe_list final : case_visitor {
 public:
  explicit recipe_list(const spec& s) {
    const selection some{{&s}, dtype::f32, strength::standard, 0, 1};
    for_each_case(some, *this);
    given_ = all.empty();
    if (given_) for_each_case(some, *this);
  }
  /// How many samples the cases give: 50, by several fillings if need be, or each case with given numbers once.
  std::size_t samples() const { return given_ ? std::min(all.size(), golden_samples) : golden_samples; }
  struct entry {
    std::string recipe;
    test_case is;
  };
  std::vector<entry> all;

 private:
  bool given_ = false;
  bool visit(test_case&& c) override {
    std::int64_t elems = 0;
    for (const operand_recipe& x : c.in) elems += x.dims.count();
    if ((c.kind != case_kind::forward && c.kind != case_kind::gradient) || elems > 2048 || (c.given != nullptr) != given_) return true;
    std::string r = recipe_of(c);
    if (std::none_of(all.begin(), all.end(), [&](const entry& e) { return e.recipe == r; })) all.push_back({std::move(r), std::move(c)});
    return true;
  }
};

/// Fills s.results. Returns false if the op refuses the case or gives nothing.
inline bool run_reference(test_case c, golden_sample& s) {
  c.seed = seed_of_sample(s);
  const traced_case t = case_tracer::trace_of(c, dtype::f32, {});
  if (!t.g.error.empty()) return false;
  std::vector<array> in, dy;
  for (std::size_t k = 0; k < c.in.size(); ++k) in.push_back(operand_numbers(c, k));
  for (std::size_t k = 0; k < t.cotangent_dims.size(); ++k) dy.push_back(cotangent_numbers(c, t, k));
  const call asked{in, c.attr, c.scalars, {}};
  std::vector<answer> y(c.kind == case_kind::gradient ? in.size() : std::max(t.out.size(), c.of->outputs.size()));
  if (c.kind == case_kind::gradient) c.of->gradient(asked, dy, y);
  else c.of->reference(asked, y);
  for (const answer& a : y)
    if (!a.value.empty()) s.results.push_back(digest_of(a, c.seed));
  return !s.results.empty();
}

inline std::string nine_digits(double x) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, x, std::chars_format::general, 9).ptr};
}
inline std::string difference(const golden_digest& was, const golden_digest& is) {
  if (was.elems != is.elems) return "has " + std::to_string(is.elems) + " elements, had " + std::to_string(was.elems);
  if (was.odd != is.odd) return "has its NaN and infinite elements at other places";
  // nine digits were kept
  const auto far = [](double a, double b, double off) { return !(std::fabs(a - b) <= off + 1e-8 * std::fabs(a)); };
  if (far(was.one, is.one, is.one_off)) return "has an element " + nine_digits(is.one) + ", it was " + nine_digits(was.one);
  if (far(was.sum, is.sum, is.sum_off)) return "has a sum of " + nine_digits(is.sum) + ", it was " + nine_digits(was.sum);
  return "";
}

}  // namespace golden_detail

/// Makes the current samples of an op: recipes spread evenly over all of them, or each with several fillings if there are fewer than 50.
inline std::vector<golden_sample> make_golden(const spec& s) {
  golden_detail::recipe_list recipes(s);
  std::erase_if(recipes.all, [](const auto& e) {
    golden_sample tried{e.recipe, 0, {}};
    return !golden_detail::run_reference(e.is, tried);
  });
  std::vector<golden_sample> out;
  const std::size_t n = recipes.all.size();
  for (std::size_t k = 0; k < recipes.samples() && n > 0; ++k) {
    const auto& from = recipes.all[n < golden_samples ? k % n : k * n / golden_samples];
    golden_sample g{from.recipe, n < golden_samples ? std::int64_t(k / n) : 0, {}};
    golden_detail::run_reference(from.is, g);
    out.push_back(std::move(g));
  }
  return out;
}

/// Returns a file of samples, one per line.
inline std::string golden_text(const spec& s, const std::vector<golden_sample>& samples) {
  const auto digest = [](const golden_digest& d) {
    return "[" + std::to_string(d.elems) + ",\"" + d.odd + "\"," + golden_detail::nine_digits(d.sum) + "," +
           golden_detail::nine_digits(d.one) + "]";
  };
  std::string text = "{\"op\":" + io::json_string(s.name) + ",\"version\":" + std::to_string(s.version) + ",\"samples\":{\n";
  for (const golden_sample& g : samples)
    text += (&g == samples.data() ? "" : ",\n") + io::json_string(g.recipe + "." + std::to_string(g.replica)) + ":" +
            json_array(g.results, digest);
  return text + "\n}}\n";
}

/// Compares a file of samples with the reference.
///
/// @error bad_format; version_mismatch: the file has another version; corrupt: the reference gives something else, or the case no longer exists, with
/// the
///        sample and both numbers; each with what to do
inline result<void> check_golden(const spec& s, std::string_view text, const std::string& where) {
  using namespace golden_detail;
  const std::string write = "isotope-conform golden --write";
  auto j = io::parse_json(text, where);
  if (!j) return std::move(j).error();
  const io::json *op = j->find("op"), *samples = j->find("samples");
  std::int64_t version = 0;
  const recipe_list recipes(s);
  if (op == nullptr || op->text != s.name || samples == nullptr || (samples->members.empty() && !recipes.all.empty()) ||
      !read_whole(j->find("version"), version))
    return fail(errc::bad_format, "holds no samples of " + std::string(s.name), where, write);
  if (version != std::int64_t(s.version))
    return fail(errc::version_mismatch, "is of version " + std::to_string(version) + ", the specification has " + std::to_string(s.version),
                where, write);
  for (const io::json_member& m : samples->members) {
    const auto dot = std::min(m.key.find('.'), m.key.size());
    golden_sample was{m.key.substr(0, dot), 0, {}};
    const std::string replica = m.key.substr(std::min(dot + 1, m.key.size()));
    std::from_chars(replica.data(), replica.data() + replica.size(), was.replica);
    for (const io::json& r : m.value.items) {
      golden_digest d;
      if (r.items.size() != 4 || !read_whole(&r.items[0], d.elems) || !read_number(&r.items[2], d.sum) || !read_number(&r.items[3], d.one))
        return fail(errc::bad_format, "sample " + m.key + " is malformed", where, write);
      d.odd = r.items[1].text;
      was.results.push_back(d);
    }
    const auto found = std::find_if(recipes.all.begin(), recipes.all.end(), [&](const auto& e) { return e.recipe == was.recipe; });
    golden_sample is{was.recipe, was.replica, {}};
    const std::string bump =
        "if that is meant, give op_spec<" + std::string(s.name) + "> version " + std::to_string(s.version + 1) + ", then " + write;
    if (found == recipes.all.end() || !run_reference(found->is, is))
      return fail(errc::corrupt,
                  "sample " + m.key + ": there is no such case any more, and the version is still " + std::to_string(version), where, bump);
    std::string what = is.results.size() == was.results.size()
                           ? ""
                           : "gives " + std::to_string(is.results.size()) + " results, gave " + std::to_string(was.results.size());
    for (std::size_t k = 0; k < is.results.size() && what.empty(); ++k)
      if (const std::string d = difference(was.results[k], is.results[k]); !d.empty()) what = "result " + std::to_string(k) + " " + d;
    if (!what.empty())
      return fail(errc::corrupt,
                  "sample " + m.key + ": the reference changed, and the version is still " + std::to_string(version) + ": " + what, where,
                  bump);
  }
  return {};
}

}  // namespace isotope::conform
