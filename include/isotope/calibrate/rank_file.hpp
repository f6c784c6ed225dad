#pragma once
/// Candidates as a JSON file, so that programs of different backends can rank their devices together.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/calibrate/rank.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope {

/// What was predicted, where, and by which library. Only candidates of equal work are ranked together.
struct ranked_work {
  std::string model;  // its name
  std::int64_t batch = 0, length = 0;
  std::string machine;  // the model of its processor
  std::string version;  // of the library
};

/// `<folder>/isotope/rank/<model>-<batch>x<length>`, the folder of the files of all backends.
inline std::string rank_folder(const std::string& folder, const ranked_work& w) {
  return folder + "/isotope/rank/" + w.model + "-" + std::to_string(w.batch) + "x" + std::to_string(w.length);
}
/// `<backend>-<format>.json`
inline std::string rank_file_name(std::string_view backend, std::string_view format) {
  return std::string(backend) + "-" + std::string(format) + ".json";
}

/// The candidates of a file, or in one line why there are none.
struct candidates_read {
  std::vector<rank_candidate> all;
  std::string ignored;
};

namespace calibrate_detail {
/// Reads members of one JSON object; the first that is missing or wrong is named.
struct member_reader {
  const io::json& object;
  std::string wrong;  // the name of a member; empty: none is wrong

  const io::json* find(std::string_view name, io::json::kind is) {
    const io::json* v = object.find(name);
    if (v != nullptr && v->is == is) return v;
    if (wrong.empty()) wrong = name;
    return nullptr;
  }
  std::string text(std::string_view name) {
    const io::json* v = find(name, io::json::kind::string);
    return v == nullptr ? std::string() : v->text;
  }
  /// A number that is at least 0.
  template <class N> N number(std::string_view name) {
    const io::json* v = find(name, io::json::kind::number);
    N n{};
    if (v == nullptr) return n;
    const auto [end, error] = std::from_chars(v->text.data(), v->text.data() + v->text.size(), n);
    if ((error != std::errc() || end != v->text.data() + v->text.size() || !(n >= 0)) && wrong.empty()) wrong = name;
    return n;
  }
};

/// @param wrong  receives the name of the first member that is missing or wrong
inline rank_candidate candidate_of(const io::json& object, std::string& wrong) {
  member_reader in{object, {}};
  rank_candidate c{.backend = in.text("backend"), .device = in.text("device"), .format = in.text("format"), .problem = in.text("problem")};
  for (std::size_t k = 0; k < bound_names.size(); ++k) c.estimate.parts[k] = in.number<double>(std::string(bound_names[k]) + " seconds");
  c.estimate.flops = in.number<std::int64_t>("flops");
  c.estimate.bytes = in.number<std::int64_t>("bytes");
  const std::string from = in.text("from");
  std::size_t k = 0;
  while (k < provenance_names.size() && from != provenance_names[k]) ++k;
  if (k < provenance_names.size()) c.estimate.from = provenance(k);
  else if (in.wrong.empty()) in.wrong = "from";
  c.planned_bytes = in.number<std::int64_t>("planned_bytes");
  c.device_bytes = in.number<std::int64_t>("device_bytes");
  c.greatest_batch = in.number<std::int64_t>("greatest_batch");
  if (wrong.empty()) wrong = in.wrong;
  return c;
}
}  // namespace calibrate_detail

/// Reads the text of a file. One of other work, of another machine or library, or one that is damaged, is ignored as a whole.
inline candidates_read parse_candidates(std::string_view text, const std::string& path, const ranked_work& work) {
  candidates_read r;
  const auto ignore = [&](const std::string& why) {
    r.all.clear();
    r.ignored = path + " is ignored: " + why;
    return r;
  };
  if (text.empty() || text.size() > (1 << 20)) return ignore("it has " + std::to_string(text.size()) + " bytes");
  const auto root = io::parse_json(text, path, 65536);
  if (!root) return ignore(root.error().what);
  calibrate_detail::member_reader in{*root, {}};
  const ranked_work of{.model = in.text("model"),
                       .batch = in.number<std::int64_t>("batch"),
                       .length = in.number<std::int64_t>("length"),
                       .machine = in.text("machine"),
                       .version = in.text("version")};
  const io::json* all = in.find("candidates", io::json::kind::array);
  if (in.number<int>("isotope_rank") != 1 || !in.wrong.empty()) return ignore("'" + in.wrong + "' is missing or wrong");
  if (of.version != work.version) return ignore("another version of isotope wrote it: rank again with a build of this one");
  if (of.machine != work.machine) return ignore("it was written on another machine");
  if (of.model != work.model || of.batch != work.batch || of.length != work.length) return ignore("it is of another size");
  std::string wrong;
  for (const io::json& x : all->items) r.all.push_back(calibrate_detail::candidate_of(x, wrong));
  return wrong.empty() ? r : ignore("'" + wrong + "' of a candidate is missing or wrong");
}
inline candidates_read read_candidates(const std::string& path, const ranked_work& work) {
  const auto file = io::read_file(path);
  if (file) return parse_candidates(file->text(), path, work);
  return {.all = {}, .ignored = path + " is ignored: " + file.error().what};
}

inline std::string text_of(const ranked_work& w, const std::vector<rank_candidate>& all) {
  using io::json_string, io::number_text;
  std::string r = "{\"isotope_rank\": 1, \"model\": " + json_string(w.model) + ", \"batch\": " + number_text(w.batch) +
                  ", \"length\": " + number_text(w.length) + ",\n \"machine\": " + json_string(w.machine) +
                  ", \"version\": " + json_string(w.version) + ",\n \"candidates\": [";
  for (std::size_t k = 0; k < all.size(); ++k) {
    const rank_candidate& c = all[k];
    r += std::string(k == 0 ? "" : ",") + "\n  {\"backend\": " + json_string(c.backend) + ", \"device\": " + json_string(c.device) +
         ", \"format\": " + json_string(c.format) + ",\n   ";
    for (std::size_t b = 0; b < bound_names.size(); ++b)
      r += "\"" + std::string(bound_names[b]) + " seconds\": " + io::json_number(c.estimate.parts[b]) + ", ";
    r += "\"flops\": " + number_text(c.estimate.flops) + ", \"bytes\": " + number_text(c.estimate.bytes) +
         ", \"from\": " + json_string(name_of(c.estimate.from)) + ",\n   \"planned_bytes\": " + number_text(c.planned_bytes) +
         ", \"device_bytes\": " + number_text(c.device_bytes) + ", \"greatest_batch\": " + number_text(c.greatest_batch) +
         ", \"problem\": " + json_string(c.problem) + "}";
  }
  return r + "]}\n";
}
/// Writes the candidates of a program. The folder must exist. @error write_failed: the earlier file stays
inline result<void> write_candidates(const std::string& path, const ranked_work& work, const std::vector<rank_candidate>& all) {
  return io::write_file(path, text_of(work, all));
}

}  // namespace isotope
