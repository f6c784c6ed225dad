#pragma once
/// Dispatches as one CUDA graph, which is launched as a whole, or one after the other on the stream.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../session/rank_groups.hpp"
#include "blas_products.hpp"
#include "direct_launches.hpp"
#include "loaded_code.hpp"
#include "shipped_choices.hpp"
#include "stream_communicator.hpp"

namespace isotope::cuda {

/// The arguments of a dispatch with its tensor maps encoded. @error missing_feature where the driver cannot encode them
inline result<std::vector<std::byte>> arguments_of(const context& c, const dispatch& d) {
  std::vector<std::byte> all = d.arguments;
  if (d.maps.empty()) return all;
  const auto here = c.current();
  for (const tensor_map& m : d.maps) {
    if (c.f()->encode_tensor_map == nullptr)
      return fail(errc::missing_feature, "the driver cannot encode tensor maps for " + std::string(d.function), "cuda",
                  "update the driver");
    alignas(64) std::array<std::byte, 128> descriptor{};
    constexpr int bf16 = 9, f16 = 6, f32 = 7;  // CUtensorMapDataType
    const int type = m.type == dtype::bf16 ? bf16 : m.type == dtype::f16 ? f16 : f32;
    const int swizzle = m.swizzle_bytes == 128 ? 3 : m.swizzle_bytes == 64 ? 2 : m.swizzle_bytes == 32 ? 1 : 0;
    constexpr std::array<std::uint32_t, 5> dense{1, 1, 1, 1, 1};
    constexpr int promote_to_256_bytes = 3;
    const auto s =
        c.f()->encode_tensor_map(descriptor.data(), type, std::uint32_t(m.rank), reinterpret_cast<void*>(m.address), m.dims.data(),
                                 m.strides_bytes.data(), m.box.data(), dense.data(), 0, swizzle, promote_to_256_bytes, 0);
    if (s != status::success) return c.failed(s, "a tensor map of " + std::string(d.function));
    std::memcpy(all.data() + m.argument_offset, descriptor.data(), descriptor.size());
  }
  return all;
}

/// Starts one kernel or copy on the stream.
inline status launch_on_stream(const context& c, const dispatch& d, function_handle function, std::vector<std::byte>& arguments) {
  if (d.copy.host != nullptr)
    return d.copy.to_device ? c.f()->copy_to_device(d.copy.device, d.copy.host, std::size_t(d.copy.bytes), c.stream())
                            : c.f()->copy_to_host(d.copy.host, d.copy.device, std::size_t(d.copy.bytes), c.stream());
  std::array<launch_attribute, 2> attributes;
  attributes[0].value = {d.count.cluster, 1, 1};
  attributes[1].id = launch_attribute::cooperative;
  attributes[1].value = {1};
  launch_config how{.grid_x = d.count.x, .grid_y = d.count.y, .grid_z = d.count.z, .block_x = d.count.threads};
  how.shared_bytes = unsigned(d.count.shared_bytes);
  how.stream = c.stream();
  if (d.count.cluster == 1) std::swap(attributes[0], attributes[1]);
  how.attributes = attributes.data();
  how.attribute_count = (d.count.cluster > 1 ? 1u : 0u) + (d.count.together ? 1u : 0u);
  void* parameters[] = {arguments.data()};
  return c.f()->launch_kernel(&how, function, parameters, nullptr);
}

/// What dispatches run: device code and, where it is there, cuBLASLt; and which variants of either were chosen.
struct loaded_functions {
  loaded_code code;
  std::shared_ptr<variant_cache> variants;
  std::shared_ptr<blas_products> products;  // null without cuBLASLt

  explicit loaded_functions(const std::shared_ptr<context>& c)
      : code(c),
        variants(std::make_shared<variant_cache>(c->options.autotune, c->options.cache, key_of(*c), c->physical().name, shipped())),
        products(blas_products::open(c, variants)) {}

 private:
  /// Devices of one model have one key, so that those of a mesh share a file.
  static std::string key_of(const context& c) {
    return "cuda, " + c.physical().name + ", " + std::to_string(c.physical().limits.multiprocessors) + " multiprocessors, driver " +
           driver::version_text(c.f().version());
  }
};

/// The ends of groups that exchanges of a session's plans go through.
class stream_groups {
 public:
  stream_groups() = default;
  explicit stream_groups(const rank_groups& all) : all_(all) {}
  const rank_groups& all() const { return all_; }
  /// @error invalid_argument where a communicator does not work on streams; as it reports
  result<void> start(const library_collective& what, stream_handle stream) const {
    auto* const c = end_of(what);
    if (c == nullptr)
      return fail(errc::invalid_argument,
                  "the communicator of the " + std::string(what.group == rank_group::tensor ? "tensor" : "data") +
                      " group takes no numbers in device memory",
                  "cuda", "join a group of GPUs (comm/cuda/nccl_group.hpp, comm/cuda/direct_group.hpp)");
    return c->start(what, stream);
  }
  bool by_kernels(const library_collective& what) const {
    const auto* const c = end_of(what);
    return c != nullptr && c->exchanges_by_kernels();
  }

 private:
  rank_groups all_;
  stream_communicator* end_of(const library_collective& what) const { return dynamic_cast<stream_communicator*>(all_.of(what.group)); }
};

/// A graph that can be launched any number of times.
class step_graph {
 public:
  explicit step_graph(std::shared_ptr<context> c) : context_(std::move(c)) {}
  step_graph(const step_graph&) = delete;
  step_graph& operator=(const step_graph&) = delete;
  ~step_graph() { clear(); }

  executable_handle handle() const { return executable_; }
  /// The same launches for the memory of one frame, without the copy of outputs (direct_launches.hpp); null: there are none.
  executable_handle direct() const { return direct_; }
  /// Whether inputs are copied before them.
  bool copies_inputs() const { return copies_inputs_; }

  /// Replaces the graph: dispatch i waits for those in waits[i], and if early[i] is 1, it starts before its only one has ended. @error missing_feature, out_of_memory, with the kernel's name
  result<void> build(loaded_functions& functions, const std::vector<dispatch>& all, const dispatch_edges& waits,
                     const std::vector<std::uint8_t>& early = {}, const stream_groups& groups = stream_groups()) {
    clear();
    return instantiate(executable_, functions, all, waits, early, groups);
  }
  /// Adds the graph of `direct`, if there are such launches. @error as `build`
  result<void> build_direct(loaded_functions& functions, const direct_launches& how, const dispatch_edges& waits,
                            const std::vector<std::uint8_t>& early, const stream_groups& groups) {
    copies_inputs_ = how.copies_inputs;
    if (how.launches.empty()) return {};
    return instantiate(direct_, functions, how.launches, waits, early, groups);
  }

 private:
  std::shared_ptr<context> context_;
  executable_handle executable_ = nullptr, direct_ = nullptr;
  bool copies_inputs_ = false;
  std::vector<graph_handle> exchanges_;  // captured; they own what the library needs to run them

  /// @error missing_feature, out_of_memory
  result<void> instantiate(executable_handle& to, loaded_functions& functions, const std::vector<dispatch>& all,
                           const dispatch_edges& waits, const std::vector<std::uint8_t>& early, const stream_groups& groups) {
    const auto here = context_->current();
    const driver& f = context_->f();
    graph_handle graph = nullptr;
    if (const auto s = f->create_graph(&graph, 0); s != status::success) return context_->failed(s, "making a graph");
    auto r = fill(graph, functions, groups, all, waits, early);
    if (r) {
      const auto s = f->instantiate(&to, graph, 0);
      if (s != status::success) {
        to = nullptr;
        r = context_->failed(s, "instantiating a graph of " + std::to_string(all.size()) + " nodes");
      } else {
        f->upload_graph(to, context_->stream());
        ++context_->counters.objects;
      }
    }
    f->destroy_graph(graph);
    return r;
  }
  void clear() {
    if (context_->lost()) return;
    const auto here = context_->current();
    for (executable_handle* const e : {&executable_, &direct_}) {
      if (*e != nullptr) context_->f()->destroy_executable(*e);
      *e = nullptr;
    }
    for (const graph_handle g : exchanges_) context_->f()->destroy_graph(g);
    exchanges_.clear();
  }
  /// A graph of what `start` puts on a stream. The caller destroys it.
  template <class Start> result<graph_handle> capture(const std::string& what, const Start& start) {
    const driver& f = context_->f();
    constexpr int thread_local_mode = 1;
    if (!f->captures()) return fail(errc::missing_feature, "the driver cannot capture " + what, "cuda", "update the driver");
    stream_handle stream = nullptr;
    if (const auto s = f->create_stream(&stream, 1); s != status::success) return context_->failed(s, "a stream to capture " + what);
    graph_handle captured = nullptr;
    auto s = f->begin_capture(stream, thread_local_mode);
    result<void> started;
    if (s == status::success) {
      started = start(stream);
      s = f->end_capture(stream, &captured);
    }
    f->destroy_stream(stream);
    if ((!started || s != status::success) && captured != nullptr) f->destroy_graph(captured);
    if (!started) return started.error();
    if (s != status::success) return context_->failed(s, "capturing " + what);
    return captured;
  }
  result<graph_handle> capture(loaded_functions& functions, const library_product& p) {
    if (auto r = functions.products->choose(p); !r) return r.error();  // may time algorithms, which a capture does not allow
    return capture("a product of cuBLASLt", [&](stream_handle stream) { return functions.products->start(p, stream); });
  }
  /// Adds an exchange between ranks: kernels as nodes of the graph, what a library does as a graph inside it. That one is kept, since the library frees what it needs
  /// with it.
  result<void> add_exchange(graph_handle graph, const stream_groups& groups, const dispatch& d, std::vector<node_handle>& before,
                            node_handle& last) {
    auto captured = capture(std::string(d.function), [&](stream_handle stream) { return groups.start(d.collective, stream); });
    if (!captured) return captured.error();
    if (groups.by_kernels(d.collective)) {
      const auto s = add_captured(graph, *captured, before, last);
      context_->f()->destroy_graph(*captured);
      if (s != status::success) return context_->failed(s, "adding " + std::string(d.function) + " to a graph");
      return {};
    }
    exchanges_.push_back(*captured);
    const auto s = context_->f()->add_graph_node(&last, graph, before.data(), before.size(), *captured);
    if (s != status::success) return context_->failed(s, "adding " + std::string(d.function) + " to a graph");
    return {};
  }
  /// The kernels of a captured graph in the order in which they run; empty if it is anything but a chain of kernels.
  std::vector<node_handle> chain_of(graph_handle captured) const {
    const driver& f = context_->f();
    std::size_t count = 0, edges = 0;
    if (f->graph_nodes(captured, nullptr, &count) != status::success ||
        f->graph_edges(captured, nullptr, nullptr, &edges) != status::success || edges + 1 != count)
      return {};
    std::vector<node_handle> all(count), from(edges), to(edges), chain;
    if (f->graph_nodes(captured, all.data(), &count) != status::success) return {};
    if (edges > 0 && f->graph_edges(captured, from.data(), to.data(), &edges) != status::success) return {};
    for (const node_handle n : all) {
      int type = -1;
      if (f->node_type(n, &type) != status::success || type != 0) return {};
      if (std::find(to.begin(), to.end(), n) == to.end()) chain.push_back(n);
    }
    while (chain.size() < count) {
      const auto next = std::find(from.begin(), from.end(), chain.back());
      if (next == from.end()) return {};
      chain.push_back(to[std::size_t(next - from.begin())]);
    }
    return chain;
  }
  /// Adds what was captured behind the nodes `before`; `last` is the node that others wait for. Kernels become nodes of the graph itself, which start sooner
  /// than a graph inside it.
  status add_captured(graph_handle graph, graph_handle captured, std::vector<node_handle>& before, node_handle& last) const {
    const driver& f = context_->f();
    const auto chain = chain_of(captured);
    if (chain.empty()) return f->add_graph_node(&last, graph, before.data(), before.size(), captured);
    for (const node_handle n : chain) {
      kernel_node what;
      if (const auto s = f->kernel_node_of(n, &what); s != status::success) return s;
      if (const auto s = f->add_kernel_node(&last, graph, before.data(), before.size(), &what); s != status::success) return s;
      if (const auto s = f->copy_node_attributes(last, n); s != status::success) return s;
      before.assign(1, last);
    }
    return status::success;
  }
  result<void> fill(graph_handle graph, loaded_functions& functions, const stream_groups& groups, const std::vector<dispatch>& all,
                    const dispatch_edges& waits, const std::vector<std::uint8_t>& early) {
    const driver& f = context_->f();
    std::vector<node_handle> nodes(all.size());
    std::vector<node_handle> before;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const dispatch& d = all[i];
      before.clear();
      for (const auto k : waits[i]) before.push_back(nodes[k]);
      if (d.copy.host != nullptr) {
        copy_node n;
        n.width = std::size_t(d.copy.bytes);
        (d.copy.to_device ? n.from_kind : n.to_kind) = memory_kind::host;
        if (d.copy.to_device) n.from_host = d.copy.host, n.to_device = d.copy.device;
        else n.to_host = d.copy.host, n.from_device = d.copy.device;
        const auto s = f->add_copy_node(&nodes[i], graph, before.data(), before.size(), &n, context_->handle());
        if (s != status::success) return context_->failed(s, "adding a copy of " + std::to_string(d.copy.bytes) + " bytes to a graph");
        continue;
      }
      if (exchanges(d)) {
        if (auto r = add_exchange(graph, groups, d, before, nodes[i]); !r) return r;
        continue;
      }
      if (d.product.batches > 0) {
        auto captured = capture(functions, d.product);
        if (!captured) return captured.error();
        const auto s = add_captured(graph, *captured, before, nodes[i]);
        f->destroy_graph(*captured);
        if (s != status::success) return context_->failed(s, "adding a product of cuBLASLt to a graph");
        continue;
      }
      auto function = functions.code.of(d);
      if (!function) return function.error();
      auto arguments = arguments_of(*context_, d);
      if (!arguments) return arguments.error();
      void* parameters[] = {arguments->data()};
      kernel_node n;
      n.function = *function;
      n.grid_x = d.count.x, n.grid_y = d.count.y, n.grid_z = d.count.z;
      n.block_x = d.count.threads;
      n.shared_bytes = unsigned(d.count.shared_bytes);
      n.parameters = parameters;
      const bool starts_early = i < early.size() && early[i] != 0 && f->add_edges != nullptr;
      auto s = f->add_kernel_node(&nodes[i], graph, before.data(), starts_early ? 0 : before.size(), &n);
      if (s == status::success && starts_early) {
        constexpr edge_data how = edge_data::programmatic();
        s = f->add_edges(graph, before.data(), &nodes[i], &how, 1);
      }
      if (s == status::success && d.count.cluster > 1) {
        launch_attribute cluster;
        cluster.value = {d.count.cluster, 1, 1};
        s = f->set_node_attribute(nodes[i], cluster.id, cluster.value.data());
      }
      if (s == status::success && d.count.together) {
        launch_attribute together;
        together.value = {1};
        s = f->set_node_attribute(nodes[i], launch_attribute::cooperative, together.value.data());
      }
      if (s != status::success) return context_->failed(s, "adding " + std::string(d.function) + " to a graph");
    }
    return {};
  }
};

}  // namespace isotope::cuda
