#pragma once
/// The jobs of a device worker: a closed set. Each is a plain struct that owns its values and names the type of its reply.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "../comm/communicator.hpp"
#include "../core/error.hpp"
#include "../core/step.hpp"
#include "handle.hpp"
#include "reply.hpp"
#include "values.hpp"

namespace isotope::worker {

class loaded_model;

/// Every job has `reply`, a HostReply; `name`, for messages; and `timed`: whether the watchdog limits its time. Jobs that may compile kernels, read files or
/// wait for peers to start are not timed.

/// The device's memory. @error missing_feature: its driver does not say
struct query_memory {
  using reply = device_memory;
  static constexpr std::string_view name = "query memory";
  static constexpr bool timed = false;
};

/// What a load job makes its model from, on the worker's thread. `device` is a const device<T>* of the job's target.
struct load_place {
  const void* device = nullptr;
  std::shared_ptr<communicator> group = nullptr;  // of the job's `group`; null: it names none
};
/// Makes a model on the device. `load_plans` and `load_with` (worker/load.hpp) make this job. @error as `make`, `initialize` and `write`; wrong_device where it
/// was made for another target than the worker's; stale_handle
struct load {
  using reply = loaded;
  static constexpr std::string_view name = "load";
  static constexpr bool timed = false;
  std::string target;  // target_text<T>()
  std::function<result<std::unique_ptr<loaded_model>>(const load_place&)> make;
  std::optional<communicator_handle> group = {};  // the communicator that the model uses
  std::optional<std::uint64_t> seed = {};         // initialises the parameters; else they are zeros until they are written
};

/// Destroys a model or leaves a group. It succeeds on a poisoned worker and on one that was shut down: nothing is there any more. @error stale_handle
struct drop {
  using reply = void;
  static constexpr std::string_view name = "drop";
  static constexpr bool timed = false;
  std::variant<model_handle, communicator_handle> what;
};

/// A safetensors file whose tensors are named as in the state dict, such as a checkpoint. The worker reads one tensor at a time.
struct weights_file {
  std::string path;
  bool partial = false;  // parameters that the file lacks keep their values
};
/// Any other source: fill(name, dims, values) is called on the worker's thread for one parameter after another, with memory for its f32 values. `dims` is valid
/// during the call. Use it for slices of a file, or for weights that arrive over a connection.
struct weight_source {
  std::function<result<void>(std::string_view name, std::span<const std::int64_t> dims, std::span<float> values)> fill;
};
/// Writes tensors by name. Files and sources set parameters only. @error not_found, invalid_argument, model_mismatch, as reading the file
struct write {
  using reply = void;
  static constexpr std::string_view name = "write";
  static constexpr bool timed = false;
  model_handle model;
  tensor_kind what = tensor_kind::parameter;
  std::variant<std::vector<tensor_values>, weights_file, weight_source> from;
};
/// Reads tensors by name; no names: all of this kind. @error not_found, as session::read
struct read {
  using reply = std::vector<tensor_values>;
  static constexpr std::string_view name = "read";
  static constexpr bool timed = false;
  model_handle model;
  tensor_kind what = tensor_kind::parameter;
  std::vector<std::string> names = {};
};

/// One optimiser step over one or more micro-batches, each the inputs that it sets. @error not_found, invalid_argument: nothing ran; device_lost, timeout
struct step {
  using reply = step_report;
  static constexpr std::string_view name = "step";
  static constexpr bool timed = true;
  model_handle model;
  std::vector<std::vector<named_numbers>> micro_batches;
  step_scalars scalars = {};
};
/// The mean loss of one batch by the plan named `evaluation`. @error as `step`; not_found without such a plan
struct evaluate {
  using reply = double;
  static constexpr std::string_view name = "evaluate";
  static constexpr bool timed = true;
  model_handle model;
  std::vector<named_numbers> batch;
};
/// Sets inputs, runs a plan of inference, `times` times one after the other in one submission (a plan that gives itself its next inputs by states), and reads
/// outputs. One run may decode many sequences, embed many texts, or read a prompt. @error as `step`
struct decode {
  using reply = std::vector<named_numbers>;
  static constexpr std::string_view name = "decode";
  static constexpr bool timed = true;
  model_handle model;
  std::string plan = {};  // empty: the first one
  std::vector<named_numbers> inputs = {};
  std::vector<std::string> outputs = {};  // empty: all
  int times = 1;
  step_scalars scalars = {};
};
/// Zeroes all states, to begin new sequences.
struct clear_states {
  using reply = void;
  static constexpr std::string_view name = "clear states";
  static constexpr bool timed = false;
  model_handle model;
};

/// Makes a communicator on the worker's thread, where it is used and destroyed. The factory may wait for its peers. @error as the factory
struct join_communicator {
  using reply = communicator_handle;
  static constexpr std::string_view name = "join communicator";
  static constexpr bool timed = false;
  std::function<result<std::unique_ptr<communicator>>()> make;
};
/// Runs check_group (comm/sanity.hpp), on all ranks at the same time. @error as check_group
struct check_communicator {
  using reply = group_report;
  static constexpr std::string_view name = "check communicator";
  static constexpr bool timed = true;
  communicator_handle group;
};

/// What becomes of the jobs that wait when a worker is shut down: they run, or are answered with worker_gone.
enum class waiting_jobs : std::uint8_t { run, refuse };
/// Ends the worker after the jobs before it. Later jobs are answered with worker_gone, later shutdowns with success.
struct shut_down {
  using reply = void;
  static constexpr std::string_view name = "shut down";
  static constexpr bool timed = false;
  waiting_jobs waiting = waiting_jobs::run;
};

using jobs = boost::mp11::mp_list<query_memory, load, drop, write, read, step, evaluate, decode, clear_states, join_communicator,
                                  check_communicator, shut_down>;
template <class J>
concept Job = boost::mp11::mp_contains<jobs, J>::value && HostReply<typename J::reply>;
/// A job with the promise of its answer.
template <Job J> struct queued {
  J job;
  promise<typename J::reply> answer;
};
/// Any job, as it waits in the queue.
using queued_job = boost::mp11::mp_rename<boost::mp11::mp_transform<queued, jobs>, std::variant>;

/// A handler for one kind of job: an overload of `handle`.
template <class H, class J>
concept Handles = requires(H& h, J& job) {
  { h.handle(job) } -> std::same_as<result<typename J::reply>>;
};

namespace detail {
template <class H, class J> constexpr bool handled() {
  static_assert(Handles<H, J>, "a device worker has a job without a handler: write result<job::reply> handle(job&) for it");
  return true;
}
template <class H, class List> struct handles_every;
template <class H, class... J> struct handles_every<H, boost::mp11::mp_list<J...>> {
  static constexpr bool value = (handled<H, J>() && ...);
};
}  // namespace detail

/// Answers jobs of every kind; a missing overload does not compile.
template <class H> class every_job {
  static_assert(detail::handles_every<H, jobs>::value);

 public:
  explicit every_job(H& handler) : handler_(handler) {}
  template <Job J> result<typename J::reply> operator()(J& job) const { return handler_.handle(job); }

 private:
  H& handler_;
};

}  // namespace isotope::worker
