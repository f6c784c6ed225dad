// Streams, events, launches and graphs of the emulated driver. Work runs when it is waited for, unless a test wants it at once, so the host sees old values
// until it waits. A graph runs in an order that its edges allow and that is as far from the order of creation as possible.
#include <algorithm>
#include <cstring>
#include <utility>

#include "driver_state.hpp"

namespace isotope_emulated {

using namespace isotope::cuda;

namespace {

status create_stream(stream_handle* made, unsigned) {
  return enter("cuStreamCreate", [&](driver_state& s) {
    auto* const stream = new handle::stream_object;
    stream->context = current();
    s.streams.insert(stream);
    *made = stream;
    return status::success;
  });
}
status destroy_stream(stream_handle stream) {
  return enter("cuStreamDestroy", [&](driver_state& s) {
    if (s.streams.erase(stream) == 0) return status::invalid_value;
    waits("cuStreamDestroy");
    const status done = run_until(stream, stream->submitted);
    for (auto* const e : s.events)
      if (e->stream == stream) e->stream = nullptr;
    delete stream;
    return done;
  });
}
status synchronize_stream(stream_handle stream) {
  return enter("cuStreamSynchronize", [&](driver_state& s) {
    if (!s.streams.contains(stream)) return status::invalid_value;
    waits("cuStreamSynchronize");
    return run_until(stream, stream->submitted);
  });
}

status create_event(event_handle* made, unsigned) {
  return enter("cuEventCreate", [&](driver_state& s) {
    *made = new handle::event_object;
    s.events.insert(*made);
    return status::success;
  });
}
status destroy_event(event_handle event) {
  return enter("cuEventDestroy", [&](driver_state& s) {
    if (s.events.erase(event) == 0) return status::invalid_value;
    delete event;
    return status::success;
  });
}
status record_event(event_handle event, stream_handle stream) {
  return enter("cuEventRecord", [&](driver_state& s) {
    if (!s.events.contains(event) || !s.streams.contains(stream)) return status::invalid_value;
    event->stream = stream;
    const status result = submit(stream, [event, &s] {
      if (s.events.contains(event)) event->at = ++s.ticks;
      return status::success;
    });
    event->position = stream->submitted;
    return result;
  });
}
status query_event(event_handle event) {
  return enter("cuEventQuery", [&](driver_state& s) {
    if (!s.events.contains(event)) return status::invalid_value;
    if (s.hung && event->stream != nullptr && event->stream->done < event->position) return status::not_ready;
    return event->stream == nullptr ? status::success : run_until(event->stream, event->position);
  });
}
status elapsed(float* milliseconds, event_handle first, event_handle last) {
  return enter("cuEventElapsedTime", [&](driver_state& s) {
    if (!s.events.contains(first) || !s.events.contains(last)) return status::invalid_value;
    for (auto* const e : {first, last})
      if (e->stream != nullptr && e->stream->done < e->position) return status::not_ready;
    *milliseconds = float(last->at - first->at);
    return status::success;
  });
}

/// A launch with its arguments copied. @error invalid_value where a device would refuse it
status prepare(std::function<status()>& work, std::shared_ptr<handle::launched>& launch, function_handle function, index3 grid,
               index3 block, std::size_t shared_bytes, void** parameters) {
  auto* const k = reinterpret_cast<kernel_handle>(function);
  if (k == nullptr || parameters == nullptr || parameters[0] == nullptr) return status::invalid_value;
  constexpr std::size_t most_along_yz = 65535;
  const std::size_t threads = std::size_t(block.x) * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > most_along_yz ||
      grid.z > most_along_yz)
    return status::invalid_value;
  if (shared_bytes > k->shared_opt_in) return status::invalid_value;
  if (k->most_threads != 0 && threads > std::size_t(k->most_threads)) return status::launch_out_of_resources;
  const auto* const from = static_cast<const std::byte*>(parameters[0]);
  launch = std::make_shared<handle::launched>();
  launch->what = {function, grid.x, grid.y, grid.z, block.x, block.y, block.z, unsigned(shared_bytes), launch->parameters};
  launch->arguments.assign(from, from + k->argument_bytes);
  launch->parameters[0] = launch->arguments.data();
  work = [=, code = k->code, text = k->text, host = k->host, name = "kernel " + k->name] {
    driver_state& s = state();
    s.count(name);
    if (s.strikes("kernel")) return s.fault_status;
    constexpr std::size_t most_arguments = 32764;  // of kernels from compute capability 7.0 on
    alignas(64) std::byte aligned[most_arguments + 4];
    std::memcpy(aligned, launch->arguments.data(), launch->arguments.size());
    if (host != nullptr) s.ticks += host(aligned);
    else if (code != nullptr) isotope_emulated_launch(code, grid, block, shared_bytes, aligned, launch->cluster, launch->together);
    else text->run(aligned, grid.x, block.x);
    if (text != nullptr && !text->error().empty()) misused(name + ": " + text->error());
    check_red_zones(name);
    return status::success;
  };
  return status::success;
}
/// Sets an attribute of a launch. @error not_supported where its device has none
status set_attribute(handle::launched& launch, int id, const unsigned* value) {
  const int compute = state().devices[std::size_t(current()->device)].compute;
  constexpr unsigned most_blocks_of_cluster = 16;
  if (id == launch_attribute::cooperative) {
    launch.together = *value != 0;
    return status::success;
  }
  if (id != launch_attribute::cluster_size) return status::invalid_value;
  if (*value > 1 && compute != 90) return not_supported;
  if (*value == 0 || *value > most_blocks_of_cluster || launch.what.grid_x % *value != 0) return status::invalid_value;
  launch.cluster = *value;
  return status::success;
}
status launch_kernel(const launch_config* how, function_handle function, void** parameters, void**) {
  return enter("cuLaunchKernelEx", [&](driver_state& s) {
    if (how == nullptr || !s.streams.contains(how->stream)) return status::invalid_value;
    std::function<status()> work;
    std::shared_ptr<handle::launched> launch;
    status ready = prepare(work, launch, function, {how->grid_x, how->grid_y, how->grid_z}, {how->block_x, how->block_y, how->block_z},
                           how->shared_bytes, parameters);
    for (unsigned k = 0; k < how->attribute_count && ready == status::success; ++k)
      ready = set_attribute(*launch, how->attributes[k].id, how->attributes[k].value.data());
    return ready == status::success ? submit(how->stream, std::move(work), launch) : ready;
  });
}
status create_graph(graph_handle* made, unsigned) {
  return enter("cuGraphCreate", [&](driver_state& s) {
    *made = new handle::graph_object;
    s.graphs.insert(*made);
    return status::success;
  });
}
status destroy_graph(graph_handle graph) {
  return enter("cuGraphDestroy", [&](driver_state& s) {
    if (s.graphs.erase(graph) == 0) return status::invalid_value;
    delete graph;
    return status::success;
  });
}
status add_node(node_handle* made, graph_handle graph, const node_handle* after, std::size_t count, std::function<status()> run, int type,
                std::shared_ptr<handle::launched> launch = nullptr) {
  auto node = std::make_unique<handle::node_object>();
  node->run = std::move(run);
  node->type = type;
  node->launch = std::move(launch);
  node->index = graph->nodes.size();
  for (std::size_t k = 0; k < count; ++k) {
    const node_handle n = after[k];
    if (n == nullptr || n->index >= graph->nodes.size() || graph->nodes[n->index].get() != n) return status::invalid_value;
    if (std::find(node->after.begin(), node->after.end(), n->index) != node->after.end()) return status::invalid_value;
    node->after.push_back(n->index);
  }
  *made = node.get();
  graph->nodes.push_back(std::move(node));
  return status::success;
}
status add_kernel_node(node_handle* made, graph_handle graph, const node_handle* after, std::size_t count, const kernel_node* what) {
  return enter("cuGraphAddKernelNode", [&](driver_state& s) {
    if (!s.graphs.contains(graph) || what == nullptr) return status::invalid_value;
    std::function<status()> work;
    std::shared_ptr<handle::launched> launch;
    const status ready = prepare(work, launch, what->function, {what->grid_x, what->grid_y, what->grid_z},
                                 {what->block_x, what->block_y, what->block_z}, what->shared_bytes, what->parameters);
    return ready == status::success ? add_node(made, graph, after, count, std::move(work), kernel_node_type, launch) : ready;
  });
}
status set_node_attribute(node_handle node, int id, const void* value) {
  return enter("cuGraphKernelNodeSetAttribute", [&](driver_state&) {
    if (node == nullptr || node->launch == nullptr) return status::invalid_value;
    return set_attribute(*node->launch, id, static_cast<const unsigned*>(value));
  });
}
status add_copy_node(node_handle* made, graph_handle graph, const node_handle* after, std::size_t count, const copy_node* c,
                     context_handle) {
  return enter("cuGraphAddMemcpyNode", [&](driver_state& s) {
    if (!s.graphs.contains(graph) || c == nullptr || c->width == 0 || c->height != 1 || c->depth != 1) return status::invalid_value;
    const bool from_host = c->from_kind == memory_kind::host, to_host = c->to_kind == memory_kind::host;
    if (!from_host && !on_device(c->from_device, c->width)) return status::invalid_value;
    if (!to_host && !on_device(c->to_device, c->width)) return status::invalid_value;
    const void* const from = from_host ? c->from_host : reinterpret_cast<const void*>(c->from_device);
    void* const to = to_host ? c->to_host : reinterpret_cast<void*>(c->to_device);
    const auto copy = [from, to, bytes = c->width] {
      std::memcpy(to, from, bytes);
      return status::success;
    };
    return add_node(made, graph, after, count, copy, copy_node_type);
  });
}
std::shared_ptr<handle::graph_object> copy_of(const handle::graph_object& graph) {
  auto copy = std::make_shared<handle::graph_object>();
  for (const auto& n : graph.nodes) copy->nodes.push_back(std::make_unique<handle::node_object>(*n));
  return copy;
}
status instantiate(executable_handle* made, graph_handle graph, unsigned long long) {
  return enter("cuGraphInstantiateWithFlags", [&](driver_state& s) {
    if (!s.graphs.contains(graph)) return status::invalid_value;
    *made = new handle::executable_object{copy_of(*graph)};
    s.executables.insert(*made);
    return status::success;
  });
}
status destroy_executable(executable_handle e) {
  return enter("cuGraphExecDestroy", [&](driver_state& s) {
    if (s.executables.erase(e) == 0) return status::invalid_value;
    delete e;  // launches that have not run yet keep its graph
    return status::success;
  });
}
status upload(executable_handle e, stream_handle stream) {
  return enter("cuGraphUpload", [&](driver_state& s) {
    return s.executables.contains(e) && s.streams.contains(stream) ? status::success : status::invalid_value;
  });
}

/// Runs the nodes of a graph. In adverse order, node `late` modulo their number runs as late as it may: a missing edge from it to a later node shows, since the
/// later node runs first, unless other edges make it wait.
status run_graph(const handle::graph_object& g, node_order order, std::uint64_t late_number) {
  const std::size_t n = g.nodes.size();
  std::vector<std::size_t> waits(n);
  std::vector<std::vector<std::size_t>> before(n);
  for (std::size_t i = 0; i < n; ++i) {
    waits[i] = g.nodes[i]->after.size();
    for (const auto k : g.nodes[i]->after) before[k].push_back(i);
  }
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < n; ++i)
    if (waits[i] == 0) ready.insert(i);
  const std::size_t late = n == 0 ? 0 : std::size_t(late_number % n);
  while (!ready.empty()) {
    std::size_t next = *ready.begin();
    if (order == node_order::adverse) {
      auto at = std::prev(ready.end());
      if (*at == late && ready.size() > 1) --at;
      next = *at;
    }
    ready.erase(next);
    if (const status s = g.nodes[next]->run(); s != status::success) return s;
    for (const auto k : before[next])
      if (--waits[k] == 0) ready.insert(k);
  }
  return status::success;
}
status add_graph_node(node_handle* made, graph_handle graph, const node_handle* after, std::size_t count, graph_handle child) {
  return enter("cuGraphAddChildGraphNode", [&](driver_state& s) {
    if (!s.graphs.contains(graph) || !s.graphs.contains(child)) return status::invalid_value;
    const auto run = [copy = copy_of(*child), order = s.order] { return run_graph(*copy, order, 0); };
    return add_node(made, graph, after, count, run, graph_node_type);
  });
}
status begin_capture(stream_handle stream, int) {
  return enter("cuStreamBeginCapture", [&](driver_state& s) {
    if (!s.streams.contains(stream) || stream->captured != nullptr) return status::invalid_value;
    stream->captured = new handle::graph_object;
    return status::success;
  });
}
status end_capture(stream_handle stream, graph_handle* made) {
  return enter("cuStreamEndCapture", [&](driver_state& s) {
    if (!s.streams.contains(stream) || stream->captured == nullptr) return status::invalid_value;
    *made = std::exchange(stream->captured, nullptr);
    s.graphs.insert(*made);
    return status::success;
  });
}
status launch_graph(executable_handle e, stream_handle stream) {
  return enter("cuGraphLaunch", [&](driver_state& s) {
    if (!s.executables.contains(e) || !s.streams.contains(stream)) return status::invalid_value;
    ++s.graph_launches;
    return submit(stream, [graph = e->graph, order = s.order, late = s.late < 0 ? s.graph_launches : std::uint64_t(s.late)] {
      return run_graph(*graph, order, late);
    });
  });
}

}  // namespace

status submit(handle::stream_object* stream, std::function<status()> work, std::shared_ptr<handle::launched> launch) {
  driver_state& s = state();
  if (!s.streams.contains(stream)) return status::invalid_value;
  if (stream->captured != nullptr) {
    auto& nodes = stream->captured->nodes;
    node_handle ignored = nullptr;
    const node_handle last = nodes.empty() ? nullptr : nodes.back().get();
    const int type = launch != nullptr ? kernel_node_type : copy_node_type;
    return add_node(&ignored, stream->captured, &last, last == nullptr ? 0 : 1, std::move(work), type, std::move(launch));
  }
  stream->work.push_back(std::move(work));
  ++stream->submitted;
  return s.eager ? run_until(stream, stream->submitted) : status::success;
}
status run_until(handle::stream_object* stream, std::uint64_t position) {
  if (state().hung) return stream->context->broken;
  while (stream->done < position) {
    if (stream->context->broken != status::success) return stream->context->broken;
    const auto work = std::move(stream->work.front());
    stream->work.pop_front();
    ++stream->done;
    if (const status s = work(); s != status::success) return stream->context->broken = s;
  }
  return stream->context->broken;
}
void run_everything() {
  for (auto* const stream : state().streams) run_until(stream, stream->submitted);
}

void reclaim(handle::context_object& c) {
  driver_state& s = state();
  std::erase_if(s.streams, [&](handle::stream_object* stream) {
    if (stream->context != &c) return false;
    for (auto* const e : s.events)
      if (e->stream == stream) e->stream = nullptr;
    delete stream;
    return true;
  });
  for (auto* const e : s.events) delete e;
  for (auto* const l : s.libraries) delete l;
  for (auto* const e : s.executables) delete e;
  s.events.clear();
  s.libraries.clear();
  s.executables.clear();
  free_all(c.device);
}

std::vector<entry_point> work_entries() {
  return {
      entry("cuStreamCreate", 2000, create_stream),
      entry("cuStreamDestroy", 4000, destroy_stream),
      entry("cuStreamSynchronize", 2000, synchronize_stream),
      entry("cuEventCreate", 2000, create_event),
      entry("cuEventDestroy", 4000, destroy_event),
      entry("cuEventRecord", 2000, record_event),
      entry("cuEventQuery", 2000, query_event),
      entry("cuEventElapsedTime", 2000, elapsed),
      entry("cuLaunchKernelEx", 11080, launch_kernel),
      entry("cuGraphCreate", 10000, create_graph),
      entry("cuGraphDestroy", 10000, destroy_graph),
      entry("cuGraphAddKernelNode", 12000, add_kernel_node),
      entry("cuGraphKernelNodeSetAttribute", 11000, set_node_attribute),
      entry("cuGraphAddMemcpyNode", 10000, add_copy_node),
      entry("cuGraphInstantiateWithFlags", 11040, instantiate),
      entry("cuGraphExecDestroy", 10000, destroy_executable),
      entry("cuGraphUpload", 11010, upload),
      entry("cuGraphLaunch", 10000, launch_graph),
      entry("cuGraphAddChildGraphNode", 10000, add_graph_node),
      entry("cuStreamBeginCapture", 10010, begin_capture),
      entry("cuStreamEndCapture", 10000, end_capture),
  };
}

}  // namespace isotope_emulated
