#pragma once
/// Starts the worker of a backend that a program names at run time.
#include <optional>
#include <string_view>
#include <utility>

#include "../core/backend_list.hpp"
#include "device_worker.hpp"

namespace isotope::worker {

/// Starts a worker for the first of the targets whose backend has this name: `start_by_name<iso::selected>(name)`. Jobs and handles are the same in every build.
/// @error not_compiled_in: the program has no such backend; as device_worker::start
template <Target... T> result<device_worker> start_by_name(std::string_view backend, const worker_options& o = {}) {
  if (auto known = backend_list<typename T::backend...>::find(backend); !known) return std::move(known).error();
  std::optional<result<device_worker>> started;
  const auto start = [&]<class One>(std::type_identity<One>) {
    if (!started && One::backend::name == backend) started.emplace(device_worker::start<One>(o));
  };
  (start(std::type_identity<T>{}), ...);
  return *std::move(started);
}

}  // namespace isotope::worker
