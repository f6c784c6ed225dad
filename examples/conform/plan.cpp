/// isotope-conform plan: lists what would run, and the names of the ops.
#include "context.hpp"
#include "policy_table.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"

namespace conform_program {
namespace {

class counted_cases final : public conform::case_visitor {
 public:
  explicit counted_cases(const conform::shard_of& shard) : shard_(shard) {}
  bool visit(conform::test_case&& c) override {
    if (shard_.takes(c.id)) counted.count(c, {});
    return true;
  }
  conform::counts counted;

 private:
  conform::shard_of shard_;
};

std::string standard_of(const conform::attribute_field& a) {
  using conform::attribute_kind;
  switch (a.kind) {
    case attribute_kind::flag: return a.standard != 0 ? "true" : "false";
    case attribute_kind::axes: return "[]";
    case attribute_kind::extents:
    case attribute_kind::order: return "null";
    case attribute_kind::format: return a.required ? "null" : "\"" + std::string(name_of(iso::dtype(int(a.standard)))) + "\"";
    case attribute_kind::format_or_none: return "null";
    default: return a.required ? "null" : iso::io::json_number(a.standard);
  }
}
std::string json_of(const conform::spec& s, const conform::op_counts& t) {
  using conform::json_array, conform::json_object;
  const auto holds_text = [](conform::holds h) {
    constexpr std::string_view names[] = {"floating", "accumulated", "any", "i32", "bool"};
    return names[std::size_t(h)];
  };
  return json_object()
      .text("op", s.name)
      .whole("version", s.version)
      .text("track", name_of(s.on))
      .whole("cases", t.cases())
      .set("differentiable", s.gradient != nullptr ? "true" : "false")
      .set("inputs", json_array(s.inputs,
                                [&](const conform::operand_role& x) {
                                  return json_object()
                                      .text("name", x.name)
                                      .text("holds", holds_text(x.what))
                                      .set("optional", x.optional ? "true" : "false")
                                      .str();
                                }))
      .set("outputs",
           json_array(s.outputs,
                      [&](const conform::result_role& y) {
                        return json_object().text("name", y.name).text("holds", holds_text(y.what)).text("compared", name_of(y.by)).str();
                      }))
      .set("attributes", json_array(s.fields,
                                    [](const conform::attribute_field& a) {
                                      return json_object()
                                          .text("name", a.name)
                                          .text("kind", name_of(a.kind))
                                          .set("default", standard_of(a))
                                          .set("required", a.required ? "true" : "false")
                                          .str();
                                    }))
      .set("laws", json_array(s.laws, [](const conform::law& l) { return iso::io::json_string(l.name); }))
      .str();
}

}  // namespace

int plan(const command& c, const built_for& built) {
  int code = support::success;
  auto asked = choose(c, built);
  if (support::failed(program, asked, code)) return code;
  const auto listed = conform::choose_ops(c.get("--ops", "all"));  // those that this backend does not run, too
  if (support::failed(program, listed, code)) return code;
  if (c.has("--policy")) return support::print(policy_table(*listed)), support::success;
  if (c.has("--generators")) {
    std::string lines;
    for (const conform::crossed_pair& p : conform::crossed_pairs(asked->cases))
      lines += std::string(p.op) + ": " + std::string(p.generator) + ", " + std::to_string(p.cases) + " cases\n";
    return support::print(lines), support::success;
  }
  counted_cases seen(asked->shard);
  for_each_case(asked->cases, seen);
  std::string text;
  for (const conform::spec* s : c.has("--json") ? *listed : asked->cases.ops) {
    const conform::op_counts& t = seen.counted.ops[std::string(s->name)];
    text += c.has("--json") ? (text.empty() ? "[" : ",\n ") + json_of(*s, t)
                            : std::string(s->name) + ": " + std::to_string(t.cases()) + " cases, " + std::to_string(t.by_kind[1]) +
                                  " of them gradients\n";
  }
  text += c.has("--json") ? "]\n" : std::to_string(seen.counted.total().cases()) + " cases\n";
  support::print(text);
  return support::success;
}

}  // namespace conform_program
