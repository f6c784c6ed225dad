#pragma once
/// Weights on their way from a file or another source into a session: host memory holds one parameter at a time.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/safetensors_file.hpp>
#include <isotope/plan/plan.hpp>
#include <isotope/worker/job.hpp>

namespace isotope::worker {

namespace detail {
inline std::vector<std::int64_t> dims_of(const slot& s) {
  std::vector<std::int64_t> dims;
  for (int k = 0; k < s.dims.rank; ++k) dims.push_back(s.dims[k]);
  return dims;
}
}  // namespace detail

/// Fills every parameter of a session from a source. @error as the source; as session::write
template <class Session> result<void> write_from(Session& session, const weight_source& source) {
  std::vector<float> values;
  for (std::size_t k = 0; k < session.parameters().size(); ++k) {
    const slot& s = session.parameters()[k];
    values.resize(std::size_t(s.dims.count()));
    if (auto r = source.fill(s.path.view(), detail::dims_of(s), values); !r) return r;
    if (auto r = session.write(tensor_kind::parameter, k, values); !r) return r;
  }
  return {};
}
/// Fills parameters of a session from a safetensors file. All names and shapes are compared before the first is written.
/// @error model_mismatch: the file lacks a parameter, or has another shape; as io::open_safetensors, read_f32 and session::write
template <class Session> result<void> write_file(Session& session, const weights_file& from) {
  const auto file = io::open_safetensors(from.path);
  if (!file) return file.error();
  std::int64_t most = 0;
  for (const slot& s : session.parameters()) {
    const std::string label(s.path.view());
    const io::tensor_entry* t = file->find(label);
    if (t == nullptr && from.partial) continue;
    if (t == nullptr)
      return fail(errc::model_mismatch, "the file does not have it", from.path + ": tensor '" + label + "'",
                  "give the file of this model, or let it be partial");
    const auto dims = detail::dims_of(s);
    if (t->dims != dims)
      return fail(errc::model_mismatch, "the file has the shape " + io::dims_text(t->dims) + ", the model " + io::dims_text(dims),
                  from.path + ": tensor '" + label + "'", "give the file of this model");
    most = std::max(most, s.dims.count());
  }
  std::vector<float> room(static_cast<std::size_t>(most));
  for (std::size_t k = 0; k < session.parameters().size(); ++k) {
    const slot& s = session.parameters()[k];
    const io::tensor_entry* t = file->find(std::string(s.path.view()));
    if (t == nullptr) continue;
    const auto values = std::span(room).first(std::size_t(s.dims.count()));
    if (auto r = file->read_f32(*t, values); !r) return r;
    if (auto r = session.write(tensor_kind::parameter, k, values); !r) return r;
  }
  return {};
}

}  // namespace isotope::worker
