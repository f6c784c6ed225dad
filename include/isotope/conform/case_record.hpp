#pragma once
/// Writes a case as JSON and reads it back: a failure's record is enough to run the case again.
#include <string>
#include <utility>

#include "canonical_json.hpp"
#include "case_result.hpp"
#include "crossing.hpp"
#include "registry.hpp"

namespace isotope::conform {

inline std::string json_of(const shape& s) {
  std::string r = "[";
  for (int k = 0; k < s.rank; ++k) r += (k > 0 ? "," : "") + std::to_string(s[k]);
  return r + "]";
}
inline bool format_named(std::string_view name, dtype& t) {
  for (int k = 0; k < dtype_count; ++k)
    if (name_of(dtype(k)) == name) {
      t = dtype(k);
      return true;
    }
  return false;
}
inline std::string record_of(const test_case& c) {
  json_object o;
  o.text("op", c.of->name).whole("version", c.of->version).text("kind", name_of(c.kind)).whole("law", c.law);
  o.set("i", json_array(c.attr.i, [](std::int64_t x) { return std::to_string(x); }));
  o.set("f", json_array(c.attr.f, [](double x) { return io::json_number(x); }));
  o.text("seed", hex_text(c.seed).view()).set("ill_conditioned", c.ill_conditioned ? "true" : "false");
  if (c.stream != 0) o.whole("stream", c.stream);
  if (!c.made_by.empty()) o.text("made_by", c.made_by);
  const step_scalars& x = c.scalars;
  json_object s;
  s.text("seed", hex_text(x.seed).view()).whole("counter", std::int64_t(x.counter)).whole("optimizer_step", x.optimizer_step);
  s.number("learning_rate", x.learning_rate).number("beta1", x.beta1).number("beta2", x.beta2).number("epsilon", x.epsilon);
  s.number("weight_decay", x.weight_decay).number("momentum", x.momentum).number("clip_norm", x.clip_norm);
  s.number("clip_value", x.clip_value).number("gradient_scale", x.gradient_scale);
  o.set("scalars", s.str());
  o.set("in", json_array(c.in, [](const operand_recipe& r) {
          json_object p;
          p.set("dims", json_of(r.dims))
              .text("dtype", name_of(r.type))
              .text("generator", r.from->name)
              .number("low", r.low)
              .number("high", r.high);
          p.set("order", json_array(r.order, [](std::int8_t k) { return std::to_string(k); }));
          return p.str();
        }));
  const auto numbers = [](const std::vector<array>& all) {
    return json_array(all, [](const array& a) { return json_array(a.at, [](double v) { return io::json_number(v); }); });
  };
  if (c.given != nullptr) o.set("given", numbers(*c.given));
  return o.str();
}

namespace record_detail {
inline failure malformed(std::string_view what) {
  return fail(errc::bad_format, "a case without a usable '" + std::string(what) + "'", "case record",
              "replay a file that isotope-conform wrote");
}
inline bool read_hex(const io::json* j, std::uint64_t& x) {
  if (j == nullptr || j->text.size() != 16) return false;
  const auto [end, error] = std::from_chars(j->text.data(), j->text.data() + 16, x, 16);
  return error == std::errc() && end == j->text.data() + 16;
}
inline bool read_scalars(const io::json* j, step_scalars& x) {
  if (j == nullptr) return false;
  std::int64_t counter = 0;
  bool ok = read_hex(j->find("seed"), x.seed) && read_whole(j->find("counter"), counter) &&
            read_whole(j->find("optimizer_step"), x.optimizer_step);
  x.counter = std::uint64_t(counter);
  for (const auto& [key, to] :
       {std::pair("learning_rate", &x.learning_rate), std::pair("epsilon", &x.epsilon), std::pair("weight_decay", &x.weight_decay),
        std::pair("momentum", &x.momentum), std::pair("clip_norm", &x.clip_norm), std::pair("clip_value", &x.clip_value),
        std::pair("gradient_scale", &x.gradient_scale)}) {
    double v = 0;
    ok = ok && read_number(j->find(key), v);
    *to = float(v);
  }
  return ok && read_number(j->find("beta1"), x.beta1) && read_number(j->find("beta2"), x.beta2);
}
inline bool read_operand(const io::json& j, operand_recipe& r) {
  const io::json *dims = j.find("dims"), *type = j.find("dtype"), *from = j.find("generator"), *order = j.find("order");
  if (dims == nullptr || dims->items.size() > std::size_t(max_rank) || type == nullptr || from == nullptr || order == nullptr ||
      order->items.size() != std::size_t(max_rank))
    return false;
  for (const io::json& d : dims->items) {
    std::int64_t n = 0;
    if (!read_whole(&d, n) || n < 0 || n > (std::int64_t(1) << 31)) return false;
    r.dims.push(n);
  }
  unsigned seen = 0;
  for (std::size_t k = 0; k < std::size_t(max_rank); ++k) {
    std::int64_t n = 0;
    if (!read_whole(&order->items[k], n) || n < 0 || n >= max_rank) return false;
    r.order[k] = std::int8_t(n);
    if (int(k) < r.dims.rank) seen |= n < r.dims.rank ? 1u << n : 0u;
  }
  r.from = find_generator(from->text);
  return seen == (1u << r.dims.rank) - 1 && r.from != nullptr && format_named(type->text, r.type) && read_number(j.find("low"), r.low) &&
         read_number(j.find("high"), r.high) && r.dims.count() <= (std::int64_t(1) << 24);
}
}  // namespace record_detail

/// @error bad_format naming the member; version_mismatch if the specification has another version
inline result<test_case> read_record(const io::json& j) {
  using namespace record_detail;
  test_case c;
  const io::json *op = j.find("op"), *kind = j.find("kind"), *in = j.find("in"), *i = j.find("i"), *f = j.find("f"),
                 *ill = j.find("ill_conditioned");
  if (op == nullptr || (c.of = find_spec(op->text)) == nullptr) return malformed("op");
  std::int64_t version = 0, law = 0;
  if (!read_whole(j.find("version"), version)) return malformed("version");
  if (version != c.of->version)
    return fail(errc::version_mismatch,
                "a case of version " + std::to_string(version) + ", the specification has " + std::to_string(c.of->version), op->text,
                "make the case again");
  if (!read_whole(j.find("law"), law) || law >= std::int64_t(c.of->laws.size())) return malformed("law");
  c.law = std::int32_t(law);
  bool known = false;
  for (const case_kind k : {case_kind::forward, case_kind::gradient, case_kind::law, case_kind::refusal})
    if (kind != nullptr && kind->text == name_of(k)) c.kind = k, known = true;
  if (!known || (c.kind == case_kind::gradient && c.of->gradient == nullptr) || (c.kind == case_kind::law && c.law < 0))
    return malformed("kind");
  if (i == nullptr || i->items.size() != c.attr.i.size()) return malformed("i");
  for (std::size_t k = 0; k < c.attr.i.size(); ++k)
    if (!read_whole(&i->items[k], c.attr.i[k])) return malformed("i");
  if (f == nullptr || f->items.size() != c.attr.f.size()) return malformed("f");
  for (std::size_t k = 0; k < c.attr.f.size(); ++k)
    if (!read_number(&f->items[k], c.attr.f[k])) return malformed("f");
  if (!read_hex(j.find("seed"), c.seed)) return malformed("seed");
  if (!read_scalars(j.find("scalars"), c.scalars)) return malformed("scalars");
  if (std::int64_t stream = 0; j.find("stream") != nullptr) {
    if (!read_whole(j.find("stream"), stream) || stream < 0 || stream > 1 << 20) return malformed("stream");
    c.stream = std::uint32_t(stream);
  }
  c.ill_conditioned = ill != nullptr && ill->boolean;
  if (const io::json* made_by = j.find("made_by"); made_by != nullptr) c.made_by = case_generator_named(made_by->text);
  if (in == nullptr || in->items.size() > std::size_t(max_inputs)) return malformed("in");
  for (const io::json& x : in->items) {
    operand_recipe r;
    if (!read_operand(x, r)) return malformed("in");
    c.in.push_back(r);
  }
  if (const io::json* given = j.find("given"); given != nullptr) {
    auto all = std::make_shared<std::vector<array>>();
    if (given->items.size() != c.in.size()) return malformed("given");
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      array a(c.in[k].dims, c.in[k].type);
      if (given->items[k].items.size() != a.at.size()) return malformed("given");
      for (std::size_t n = 0; n < a.at.size(); ++n)
        if (!read_number(&given->items[k].items[n], a.at[n])) return malformed("given");
      all->push_back(std::move(a));
    }
    c.given = std::move(all);
  }
  return c;
}

/// Returns a failure as data: where it ran, the case, what was seen, and one line that ends in "Fix: ...".
inline std::string failure_record(const test_case& c, const case_result& o, std::string_view backend, std::string_view precision,
                                  std::string_view kernels) {
  json_object r;
  r.text("backend", backend)
      .text("precision", precision)
      .text("kernels", kernels)
      .set("case", record_of(c))
      .whole("id", std::int64_t(c.id));
  r.text("reason", o.reason).text("track", name_of(c.of->on));
  r.set("variants", json_array(o.variants, [](const std::string& v) { return io::json_string(v); }));
  std::string line = std::string(c.of->name) + " " + std::string(name_of(c.kind));
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    fixed_string<64> dims;
    dims << c.in[k].dims;
    line += (k == 0 ? " of " : " and ") + std::string(dims.view());
  }
  r.text("line", line + ": " + o.reason + ". Fix: " + (o.fix.empty() ? "see the reason" : o.fix));
  return r.str();
}

}  // namespace isotope::conform
