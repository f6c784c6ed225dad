#pragma once
/// A model that lives on a device worker. Every call, the destructor included, comes from the worker's thread.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "job.hpp"
#include "values.hpp"

namespace isotope::worker {

/// The base of what a load job makes. `session_model` (worker/session_model.hpp) is the usual one; a program derives its own for a batcher, an embedder or a
/// model over several ranks, and overrides what that can do.
class loaded_model {
 public:
  loaded_model() = default;
  loaded_model(const loaded_model&) = delete;
  loaded_model& operator=(const loaded_model&) = delete;
  virtual ~loaded_model() = default;

  /// What the load job replies; the worker adds the handle.
  virtual loaded describe() const { return {}; }
  /// Sets every parameter from its initializer.
  virtual result<void> initialize(std::uint64_t) { return cannot("initialise"); }
  virtual result<void> write(worker::write&) { return cannot("write"); }
  virtual result<std::vector<tensor_values>> read(const worker::read&) { return cannot("read"); }
  virtual result<step_report> step(worker::step&) { return cannot("step"); }
  virtual result<double> evaluate(worker::evaluate&) { return cannot("evaluate"); }
  virtual result<std::vector<named_numbers>> decode(worker::decode&) { return cannot("decode"); }
  virtual result<void> clear_states() { return cannot("clear states"); }

 private:
  static failure cannot(const char* what) {
    return fail(errc::invalid_argument, std::string("this kind of model does not ") + what, "device worker",
                "load a session of plans, or override it");
  }
};

}  // namespace isotope::worker
