#pragma once
/// Calibrations as a JSON file, one for each device, which holds the figures of each number format that was measured.
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/calibrate/calibration.hpp>
#include <isotope/core/device.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope {

/// The version of what is measured, and how. It is raised when figures of before are not comparable, or kernels have become so much faster that they mislead.
inline constexpr std::string_view measuring_version = "3";

/// What figures depend on, in one line.
/// @param processor  the model of the processor, which the device of the cpu does not know
/// @param version    measuring_version, and the set of kernels
inline std::string calibration_key(const device_info& d, std::string_view processor, std::string_view version) {
  std::string key = d.name + ", " + std::to_string(d.units) + " units";
  for (const device_fact& f : d.facts)
    if (f.name == "uuid" || f.name == "vendor, device" || f.name == "bf16 products") key += ", " + f.name + " " + f.value;
  return key + ", " + std::string(processor) + ", driver " + d.driver + ", " + std::string(version);
}
/// `<folder>/isotope/<backend>-calib-<device>.json`, with a hyphen for what is no letter and no digit in the device's name. Where devices have identifiers, the
/// first characters of it follow, so that several of one name have a file each.
inline std::string calibration_path(const std::string& folder, const device_info& d) {
  std::string called = d.name;
  for (const device_fact& f : d.facts)
    if (f.name == "uuid") called += "-" + f.value.substr(0, 8);
  for (char& c : called)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '-';
  return folder + "/isotope/" + std::string(d.backend) + "-calib-" + called + ".json";
}

/// A file's calibrations, or in one line why there are none; empty: there is no file.
struct calibrations_read {
  std::vector<calibration> all;
  std::string ignored;
  std::string why;  // the reason alone
  const calibration* find(std::string_view format) const {
    for (const calibration& c : all)
      if (c.format == format) return &c;
    return nullptr;
  }
};

namespace calibrate_detail {
/// The figures of one format. @error bad_format
inline result<calibration> figures_of(const io::json& object, const std::string& path) {
  const auto refuse = [&](int line, const std::string& what) {
    return fail(errc::bad_format, what, path + ":" + std::to_string(line), "measure again");
  };
  calibration c;
  if (object.is != io::json::kind::object) return refuse(object.line, "a format holds no object");
  for (std::size_t q = 0; q < quantities; ++q) {
    const io::json* f = object.find(quantity_names[q]);
    const io::json* value = f == nullptr ? nullptr : f->find("value");
    const io::json* from = f == nullptr ? nullptr : f->find("from");
    if (value == nullptr || from == nullptr || value->is != io::json::kind::number || from->is != io::json::kind::string)
      return refuse(object.line, "'" + std::string(quantity_names[q]) + "' has no value or no 'from'");
    double x = 0;
    const auto [end, error] = std::from_chars(value->text.data(), value->text.data() + value->text.size(), x);
    if (error != std::errc() || end != value->text.data() + value->text.size() || !(x >= 0 && x < 1e18))
      return refuse(value->line, "'" + std::string(quantity_names[q]) + "' is out of range");
    std::size_t k = 0;
    while (k < provenance_names.size() && from->text != provenance_names[k]) ++k;
    if (k == provenance_names.size()) return refuse(from->line, "'from' is unknown");
    if (provenance(k) == provenance::measured && !(x > 0) && !is_time(quantity(q)))
      return refuse(value->line, "'" + std::string(quantity_names[q]) + "' was measured as 0");
    c.figures[q] = {x, provenance(k)};
  }
  return c;
}
}  // namespace calibrate_detail

/// Reads the text of a file, as far as it is of this device. A file of another device, driver or library, or one that is damaged, is ignored as a whole.
inline calibrations_read parse_calibrations(std::string_view text, const std::string& path, const std::string& device) {
  calibrations_read r;
  const auto ignore = [&](const std::string& why) {
    r.all.clear();
    r.ignored = path + " is ignored and will be replaced: " + why;
    r.why = why;
    return r;
  };
  if (text.empty() || text.size() > (1 << 20)) return ignore("it has " + std::to_string(text.size()) + " bytes");
  const auto root = io::parse_json(text, path, 4096);
  if (!root) return ignore(root.error().what);
  const io::json *version = root->find("isotope_calibration"), *of = root->find("device"), *formats = root->find("formats");
  if (version == nullptr || version->text != "1" || of == nullptr || formats == nullptr || formats->is != io::json::kind::object)
    return ignore("it is no calibration of this version");
  if (of->text != device) return ignore("it was measured on another device, driver or library");
  for (const io::json_member& m : formats->members) {
    auto c = calibrate_detail::figures_of(m.value, path);
    if (!c) return ignore(c.error().what);
    c->device = device, c->format = m.key;
    r.all.push_back(*std::move(c));
  }
  return r;
}
inline calibrations_read read_calibrations(const std::string& path, const std::string& device) {
  const auto file = io::read_file(path);
  if (file) return parse_calibrations(file->text(), path, device);
  calibrations_read r;
  if (file.error().code != errc::not_found) r.ignored = path + " is ignored: " + (r.why = file.error().what);
  return r;
}

inline std::string text_of(const std::vector<calibration>& all) {
  std::string r =
      "{\"isotope_calibration\": 1,\n \"device\": " + io::json_string(all.empty() ? "" : all.front().device) + ",\n \"formats\": {";
  for (std::size_t k = 0; k < all.size(); ++k) {
    r += (k == 0 ? "\n  " : ",\n  ") + io::json_string(all[k].format) + ": {";
    for (std::size_t q = 0; q < quantities; ++q)
      r += std::string(q == 0 ? "\n" : ",\n") + "   \"" + std::string(quantity_names[q]) +
           "\": {\"value\": " + io::json_number(all[k].figures[q].value) + ", \"from\": \"" + std::string(name_of(all[k].figures[q].from)) +
           "\"}";
    r += "}";
  }
  return r + "}}\n";
}
/// Writes a calibration beside those of other formats in the file. The folder must exist. @error write_failed: the earlier file stays
inline result<void> write_calibration(const std::string& path, const calibration& c) {
  auto all = read_calibrations(path, c.device).all;
  std::erase_if(all, [&](const calibration& o) { return o.format == c.format; });
  all.push_back(c);
  return io::write_file(path, text_of(all));
}

}  // namespace isotope
