#pragma once
/// Produces the stream of all cases of a run, and a shard's part of it. Nothing is stored: memory does not grow with the number of cases.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "crossing.hpp"
#include "registry.hpp"

namespace isotope::conform {

/// Determines which cases there are.
struct selection {
  std::vector<const spec*> ops;
  dtype program = dtype::f32;
  strength how = strength::standard;
  int multiple = 1;  // repetitions of the random cases
  std::uint64_t seed = 1;
  std::span<const case_generator> generators = every_case_generator;
  bool blocks = false;  // the target reads weights in blocks (core/quantized.hpp)
};
/// Part `index` of `count`.
struct shard_of {
  std::int64_t index = 0, count = 1;
  bool takes(std::uint64_t id) const { return std::int64_t(id % std::uint64_t(count)) == index; }
};
/// @error invalid_argument for no parts, or a part that does not exist
inline result<shard_of> make_shard(std::int64_t index, std::int64_t count) {
  if (count < 1 || index < 0 || index >= count)
    return fail(errc::invalid_argument, "part " + std::to_string(index) + " of " + std::to_string(count), "shard", "i/n with 0 <= i < n");
  return shard_of{index, count};
}

/// "all", or names separated by commas. `meshes`: whether "all" includes ops that only plans for several devices have.
/// @error invalid_argument naming the op that has no specification
inline result<std::vector<const spec*>> choose_ops(std::string_view names, bool meshes = true) {
  std::vector<const spec*> all;
  if (names == "all" || names.empty()) {
    for (const spec& s : every_spec())
      if (meshes || !s.for_meshes) all.push_back(&s);
    return all;
  }
  std::string known;
  for (const spec& s : every_spec()) known += (known.empty() ? "" : ", ") + std::string(s.name);
  while (!names.empty()) {
    const auto comma = std::min(names.find(','), names.size());
    const std::string_view one = names.substr(0, comma);
    const spec* s = find_spec(one);
    if (s == nullptr) return fail(errc::invalid_argument, "no op '" + std::string(one) + "'", "--ops", "all, or some of " + known);
    if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  std::sort(all.begin(), all.end(), [](const spec* a, const spec* b) { return a->name < b->name; });
  return all;
}

/// Calls to.visit(case) for every case in order. Returns the number of cases, or of those before the visitor stopped.
inline std::uint64_t for_each_case(const selection& s, case_visitor& to) {
  std::uint64_t next = 0;
  for (const spec* op : s.ops) {
    case_sink sink(op, op->name, op->version, s.program, s.how, s.multiple, s.seed, next, to, s.blocks);
    op->cases(sink);
    cross(s.generators, strength::fast, *op, sink);
    if (op->adjoint() >= 0) sink.add_adjoints(op->adjoint(), op->bends);
    cross(s.generators, strength::standard, *op, sink);  // comes last, so that all other cases have the same numbers in every run
    cross(s.generators, strength::full, *op, sink);
    next = sink.next_id();
    if (sink.done()) break;
  }
  return next;
}

/// A generator with an op that it handles in such a run, and how many cases it makes of it.
struct crossed_pair {
  std::string_view generator, op;
  std::int64_t cases = 0;
};
/// Returns all pairs, in the order of the ops and of the table. A pair without cases is a defect of the generator.
inline std::vector<crossed_pair> crossed_pairs(const selection& s) {
  struct : case_visitor {
    std::vector<crossed_pair> made;
    bool visit(test_case&& c) override {
      if (made.empty() || made.back().generator != c.made_by) made.push_back({c.made_by, {}});
      ++made.back().cases;
      return true;
    }
  } seen;
  std::vector<crossed_pair> all;
  for (const spec* op : s.ops) {
    case_sink sink(op, op->name, op->version, s.program, s.how, s.multiple, s.seed, 0, seen, s.blocks);
    op->cases(sink);
    const signature of_op(*op, sink);
    seen.made.clear();
    selection one = s;
    one.ops = {op};
    for_each_case(one, seen);
    for (const case_generator& g : s.generators) {
      if (g.since > s.how || !g.handles(of_op)) continue;
      all.push_back({g.name, op->name});
      for (const crossed_pair& p : seen.made)
        if (p.generator == g.name) all.back().cases += p.cases;
    }
  }
  return all;
}

}  // namespace isotope::conform
