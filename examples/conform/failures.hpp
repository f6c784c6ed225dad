#pragma once
/// Keeps what a failing run leaves: small cases for replay and for the corpus of regressions.
#include "context.hpp"

#include <isotope/conform/batch_runner.hpp>
#include <isotope/conform/regressions.hpp>
#include <isotope/conform/shrink.hpp>

namespace conform_program {

/// Whether a case fails by itself.
class fails_alone {
 public:
  explicit fails_alone(conform::executor& on) : runner_(on) {}
  bool operator()(const conform::test_case& c) {
    auto o = runner_.run({&c, 1});
    if (!o) return false;
    last = (*o)[0];
    return last.is == conform::verdict::failed && !last.refused;
  }
  conform::case_result last;

 private:
  conform::batch_runner runner_;
};

/// Shrinks each kept failure of a run and writes it where the flags say. @error write_failed
/// `endless`: ops whose cases are not run again.
inline iso::result<void> keep_failures(const command& c, conform::executor& on, const conform::counts& t,
                                       const std::map<std::string, std::string, std::less<>>& endless) {
  const std::string folder = c.get("--failures"), corpus = c.get("--regressions");
  if (folder.empty() && corpus.empty()) return {};
  const auto facts = on.facts();
  for (const auto& [id, text] : t.failures) {
    auto j = iso::io::parse_json(text, "failure");
    if (!j) return j.error();
    auto failing = conform::read_record(*j->find("case"));
    if (!failing) return failing.error();
    failing->id = id;
    if (endless.contains(failing->of->name)) continue;
    fails_alone fails(on);
    conform::shrinker shrink([&](const conform::test_case& x) { return fails(x); });
    conform::test_case small = fails(*failing) ? shrink.shrink(*failing) : *failing;
    fails(small);
    if (!corpus.empty())
      if (auto r = conform::add_regression(corpus, small); !r) return r.error();
    if (folder.empty()) continue;
    if (auto r = conform::make_folders(folder); !r) return r;
    const std::string record = conform::failure_record(small, fails.last, facts.backend, name_of(facts.program), facts.set);
    if (auto r = iso::io::write_file(folder + "/" + std::string(small.of->name) + "-" + std::to_string(id) + ".json", record + "\n"); !r)
      return r;
  }
  return {};
}

}  // namespace conform_program
