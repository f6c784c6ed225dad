#pragma once
/// Load jobs: what is loaded is made on the worker's thread.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../core/device.hpp"
#include "job.hpp"
#include "session_model.hpp"

namespace isotope::worker {

/// The target of a worker or a plan, in words: plans of one target do not run on another.
template <Target T> std::string target_text() {
  return std::string(T::backend::name) + " " + std::string(T::precision::name) + " " + std::string(T::kernel_set::name);
}

/// Loads what `make` returns: a result<std::unique_ptr<loaded_model>> from (const device<T>&, std::shared_ptr<communicator>). `make` is copyable. Use it for
/// a batcher, an embedder or a model over several ranks.
template <Target T, class Make> load load_with(Make make) {
  return {.target = target_text<T>(), .make = [make = std::move(make)](const load_place& where) -> result<std::unique_ptr<loaded_model>> {
            return make(*static_cast<const device<T>*>(where.device), where.group);
          }};
}
/// Loads plans made at run time over one set of parameters, as device::load.
template <Target T> load load_plans(std::vector<owned_plan> plans) {
  // std::function copies what it holds, and plans are large.
  return load_with<T>([plans = std::make_shared<std::vector<owned_plan>>(std::move(plans))](
                          const device<T>& on, const std::shared_ptr<communicator>&) -> result<std::unique_ptr<loaded_model>> {
    return session_model<typename device<T>::session>::make(on.load(std::move(*plans)));
  });
}
/// The same for one plan, named as device::load names it, and an evaluation plan.
template <Target T> load load_plans(dynamic_plan plan, dynamic_plan evaluation = {}) {
  return load_with<T>([plans = std::make_shared<std::pair<dynamic_plan, dynamic_plan>>(std::move(plan), std::move(evaluation))](
                          const device<T>& on, const std::shared_ptr<communicator>&) -> result<std::unique_ptr<loaded_model>> {
    return session_model<typename device<T>::session>::make(on.load(std::move(plans->first), std::move(plans->second)));
  });
}
/// Loads plans that the compiler made, whose tables live as long as the program.
template <Target T> load load_static(std::vector<named_plan> plans) {
  return load_with<T>(
      [plans = std::move(plans)](const device<T>& on, const std::shared_ptr<communicator>&) -> result<std::unique_ptr<loaded_model>> {
        return session_model<typename device<T>::session>::make(on.load(std::span<const named_plan>(plans)));
      });
}

}  // namespace isotope::worker
