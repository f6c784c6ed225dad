#pragma once
/// Cases made elsewhere: one JSON object per line, with tensors in safetensors files beside it.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../io/safetensors.hpp"
#include "attribute_json.hpp"

namespace isotope::conform {

/// A line of a manifest with its tensors.
struct manifest_case {
  std::string id;
  test_case forward;
  std::string unsupported;  // why it cannot run; empty: it can
  std::vector<array> outputs;
  struct gradient {
    std::int64_t input = 0;
    array expected;
  };
  std::vector<gradient> grads;
  std::shared_ptr<const std::vector<array>> cotangents;
  double rtol = -1, atol = -1;  // < 0: the op's own bound applies
};

class manifest_reader {
 public:
  manifest_reader(std::string folder, dtype program) : folder_(std::move(folder)), program_(program) {}

  /// Reads a line. A case that its op cannot have is returned with the reason in `unsupported`. @error bad_format and those of files, with the line
  result<manifest_case> read(std::string_view line, const std::string& where) {
    auto j = io::parse_json(line, where);
    if (!j) return j.error();
    where_ = where;
    manifest_case m;
    const io::json *id = j->find("id"), *op = j->find("op"), *attrs = j->find("attrs"), *inputs = j->find("inputs"),
                   *outputs = j->find("outputs"), *file = j->find("file"), *cotangents = j->find("cotangents"), *grads = j->find("grads");
    using kind = io::json::kind;
    const auto is = [](const io::json* x, kind k) { return x != nullptr && x->is == k; };
    if (!is(id, kind::string)) return malformed("needs a string 'id'");
    m.id = id->text;
    if (!is(op, kind::string)) return malformed("needs a string 'op'");
    if (attrs != nullptr && !is(attrs, kind::object)) return malformed("'attrs' is not an object");
    if (!is(inputs, kind::array) || inputs->items.size() > std::size_t(max_inputs))
      return malformed("needs an array 'inputs' of at most 8");
    if (!is(outputs, kind::array) || outputs->items.empty()) return malformed("needs an array 'outputs'");
    if (cotangents != nullptr && !is(cotangents, kind::array)) return malformed("'cotangents' is not an array");
    if (grads != nullptr && !is(grads, kind::array)) return malformed("'grads' is not an array");
    if (grads != nullptr && !grads->items.empty() && (cotangents == nullptr || cotangents->items.empty()))
      return malformed("'grads' need 'cotangents'");
    for (const auto& [key, to] : {std::pair("rtol", &m.rtol), std::pair("atol", &m.atol)})
      if (const io::json* x = j->find(key);
          x != nullptr && (!is(x, kind::number) || !read_number(x, *to) || !(*to >= 0) || !std::isfinite(*to)))
        return malformed(std::string("'") + key + "' is not a number of at least 0");
    if (is(file, kind::string)) {
      if (auto r = open(file->text); !r) return r.error();
    } else if (file != nullptr) {
      return malformed("'file' is not a string");
    } else {
      file_.reset();
    }
    m.forward.of = find_spec(op->text);
    std::vector<array> operands;
    for (std::size_t k = 0; k < inputs->items.size(); ++k) {
      auto x = operand(m, inputs->items[k], k);
      if (!x) return x.error();
      operands.push_back(*std::move(x));
    }
    for (const io::json& y : outputs->items) {
      auto x = expected(y);
      if (!x) return x.error();
      m.outputs.push_back(*std::move(x));
    }
    if (auto r = read_gradients(m, cotangents, grads, operands.size()); !r) return r.error();
    return finish(std::move(m), *op, attrs, std::move(operands));
  }

 private:
  std::string folder_, where_, name_;
  dtype program_;
  std::optional<io::safetensors> file_;

  failure malformed(std::string what) const { return fail(errc::bad_format, std::move(what), where_, "correct the manifest"); }

  result<void> open(const std::string& name) {
    if (file_ && name == name_) return {};
    if (name.empty() || name[0] == '/' || name.find("..") != name.npos)
      return malformed("'file' must name a file below the folder of tensors");
    auto f = io::read_safetensors(folder_ + "/" + name);
    if (!f) return f.error();
    file_ = *std::move(f);
    name_ = name;
    return {};
  }
  /// Returns the numbers of a tensor as they are in the file. Its type tells what the numbers are: f64 also for f32.
  result<array> tensor_named(const io::json& j) {
    const io::json* name = j.find("tensor");
    if (name == nullptr || name->is != io::json::kind::string)
      return malformed("an operand or result is neither {\"tensor\": name} nor a number");
    if (!file_) return malformed("names tensors, and no 'file'");
    const io::stored_tensor* t = file_->find(name->text);
    if (t == nullptr)
      return fail(errc::not_found, "no tensor '" + name->text + "' in " + name_, where_, "correct the manifest or the file");
    dtype type = dtype::f64;
    if (t->type.name == "F32") type = dtype::f32;
    else if (t->type.name == "I64") type = dtype::i64;
    else if (t->type.name == "BOOL") type = dtype::boolean;
    else if (t->type.name != "F64")
      return fail(errc::bad_format, "tensor '" + name->text + "' is " + std::string(t->type.name), where_, "use F64, F32, I64 or BOOL");
    if (t->dims.size() > std::size_t(max_rank))
      return fail(errc::bad_format, "tensor '" + name->text + "' has " + std::to_string(t->dims.size()) + " axes", where_, "use at most 6");
    shape s;
    for (const auto d : t->dims) s.push(d);
    array a(s, type);
    for (std::size_t i = 0; i < a.at.size(); ++i) a.at[i] = decode(type, t->bytes.data() + std::int64_t(i) * t->type.bytes);
    return a;
  }
  static array scalar(double x) {
    array a(shape{}, dtype::f64);
    a.at[0] = x;
    return a;
  }
  result<array> expected(const io::json& j) {
    double x = 0;
    if (j.is == io::json::kind::number && read_number(&j, x)) return scalar(x);
    return tensor_named(j);
  }
  /// Returns operand k in the format of its role, with each number rounded once.
  result<array> operand(const manifest_case& m, const io::json& j, std::size_t k) {
    auto x = expected(j);
    if (!x) return x;
    if (m.forward.of == nullptr || m.forward.of->inputs.empty()) return x;
    const operand_role& role = m.forward.of->inputs[std::min(k, m.forward.of->inputs.size() - 1)];
    dtype to = program_;
    switch (role.what) {
      case holds::floating: break;
      case holds::accumulated: to = accum_of(program_); break;
      case holds::integers: to = dtype::i32; break;
      case holds::truth: to = dtype::boolean; break;
      case holds::any: to = x->type == dtype::i64 ? dtype::i32 : x->type == dtype::boolean ? dtype::boolean : program_; break;
    }
    for (double& v : x->at)
      v = to == dtype::i32       ? (std::isnan(v) ? 0 : std::fmin(std::fmax(std::trunc(v), -2147483648.0), 2147483647.0))
          : to == dtype::boolean ? (v != 0 ? 1 : 0)
                                 : nearest(to, v);
    x->type = to;
    return x;
  }
  result<void> read_gradients(manifest_case& m, const io::json* cotangents, const io::json* grads, std::size_t operands) {
    if (grads == nullptr || grads->items.empty()) return {};
    auto dy = std::make_shared<std::vector<array>>();
    for (const io::json& j : cotangents->items) {
      auto x = expected(j);
      if (!x) return x.error();
      dy->push_back(*std::move(x));
    }
    m.cotangents = std::move(dy);
    for (const io::json& j : grads->items) {
      manifest_case::gradient g;
      if (!read_whole(j.find("input"), g.input) || g.input < 0 || g.input >= std::int64_t(operands))
        return malformed("an entry of 'grads' names no input");
      auto x = expected(j);
      if (!x) return x.error();
      g.expected = *std::move(x);
      m.grads.push_back(std::move(g));
    }
    return {};
  }
  result<manifest_case> finish(manifest_case m, const io::json& op, const io::json* attrs, std::vector<array> operands) {
    if (m.forward.of == nullptr) {
      m.unsupported = "no op '" + op.text + "'";
      return m;
    }
    for (const array& x : operands) {
      operand_recipe r;
      r.dims = x.dims;
      r.type = x.type;
      m.forward.in.push_back(r);
    }
    m.forward.given = std::make_shared<const std::vector<array>>(std::move(operands));
    const auto roles = m.forward.of->inputs;
    const auto least = std::size_t(std::count_if(roles.begin(), roles.end(), [](const operand_role& r) { return !r.optional; }));
    const bool many = m.forward.of->name == "concat";
    if (m.forward.in.size() < least || (!many && m.forward.in.size() > roles.size())) {
      m.unsupported = std::string(m.forward.of->name) + " takes " + std::to_string(least) + " to " + std::to_string(roles.size()) +
                      " operands, not " + std::to_string(m.forward.in.size());
      return m;
    }
    if (auto r = read_attributes(attrs, m.forward); !r) m.unsupported = r.error().where + " " + r.error().what + ": " + r.error().fix;
    return m;
  }
};

}  // namespace isotope::conform
