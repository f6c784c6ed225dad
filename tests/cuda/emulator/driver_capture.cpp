// How a program looks into a graph of the emulated driver, as it does into one that was captured from a stream.
#include <algorithm>

#include "driver_state.hpp"

namespace isotope_emulated {

using namespace isotope::cuda;

namespace {

bool is_node(const driver_state& s, const handle::node_object* n) {
  return n != nullptr && std::any_of(s.graphs.begin(), s.graphs.end(), [n](const handle::graph_object* g) {
           return std::any_of(g->nodes.begin(), g->nodes.end(), [n](const auto& own) { return own.get() == n; });
         });
}
status graph_nodes(graph_handle graph, node_handle* to, std::size_t* count) {
  return enter("cuGraphGetNodes", [&](driver_state& s) {
    if (!s.graphs.contains(graph) || count == nullptr) return status::invalid_value;
    if (to != nullptr)
      for (std::size_t k = 0; k < std::min(*count, graph->nodes.size()); ++k) to[k] = graph->nodes[k].get();
    *count = graph->nodes.size();
    return status::success;
  });
}
status graph_edges(graph_handle graph, node_handle* from, node_handle* to, std::size_t* count) {
  return enter("cuGraphGetEdges", [&](driver_state& s) {
    if (!s.graphs.contains(graph) || count == nullptr || (from == nullptr) != (to == nullptr)) return status::invalid_value;
    std::size_t k = 0;
    for (const auto& n : graph->nodes)
      for (const std::size_t before : n->after) {
        if (from != nullptr && k < *count) from[k] = graph->nodes[before].get(), to[k] = n.get();
        ++k;
      }
    *count = k;
    return status::success;
  });
}
status node_type(node_handle n, int* type) {
  return enter("cuGraphNodeGetType", [&](driver_state& s) {
    if (!is_node(s, n) || type == nullptr) return status::invalid_value;
    *type = n->type;
    return status::success;
  });
}
status kernel_node_of(node_handle n, kernel_node* to) {
  return enter("cuGraphKernelNodeGetParams", [&](driver_state& s) {
    if (!is_node(s, n) || to == nullptr || n->launch == nullptr) return status::invalid_value;
    *to = n->launch->what;
    return status::success;
  });
}
status copy_node_attributes(node_handle to, node_handle from) {
  return enter("cuGraphKernelNodeCopyAttributes", [&](driver_state& s) {
    return is_node(s, to) && is_node(s, from) && to->launch != nullptr && from->launch != nullptr ? status::success : status::invalid_value;
  });
}

}  // namespace

std::vector<entry_point> capture_entries() {
  return {
      entry("cuGraphGetNodes", 10000, graph_nodes),
      entry("cuGraphGetEdges", 10000, graph_edges),
      entry("cuGraphNodeGetType", 10000, node_type),
      entry("cuGraphKernelNodeGetParams", 12000, kernel_node_of),
      entry("cuGraphKernelNodeCopyAttributes", 11000, copy_node_attributes),
  };
}

}  // namespace isotope_emulated
