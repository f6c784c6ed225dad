#pragma once
/// The ranks of a mesh {data, tensor} and their groups: all, those that share a batch (tensor parallel), and those that hold the same slices (data parallel).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../backend/session/rank_groups.hpp"
#include "../core/mesh.hpp"
#include "call.hpp"
#include "transport.hpp"

namespace isotope {

/// One rank's ends of its three groups. A group of one rank is there, too: its operations return what they are given.
struct mesh_communicators {
  std::unique_ptr<communicator> all;     // rank r of the mesh is rank r
  std::unique_ptr<communicator> tensor;  // the ranks with this data index; rank: the tensor index
  std::unique_ptr<communicator> data;    // the ranks with this tensor index; rank: the data index

  /// Ends all three groups on every rank. From any thread.
  void abort(const failure& why) const noexcept {
    for (auto* c : {all.get(), tensor.get(), data.get()})
      if (c != nullptr) c->abort(why);
  }
  /// What a device joins before it loads plans for this mesh.
  rank_groups groups() const {
    const auto of = [](const std::unique_ptr<communicator>& c) { return c == nullptr || c->ranks() == 1 ? nullptr : c.get(); };
    return {.tensor = of(tensor), .data = of(data)};
  }
};

/// One transport for each group of a mesh.
///
/// `make(name, ranks)` makes the transport of the group of these ranks of the mesh, in their order there. Names are "all", "tensor group 0", "data group 1", ...
/// Threads share one object of this class, of which each joins its rank; in a group of processes each makes its own, with `rank` not negative, which makes
/// the transports of that rank's groups alone.
template <Transport T> class mesh_group {
 public:
  template <class Make> mesh_group(const device_mesh& m, const Make& make, int rank = -1) : mesh_(m) {
    if (m.data < 1 || m.tensor < 1) return;
    std::vector<int> members(std::size_t(m.ranks()));
    for (int r = 0; r < m.ranks(); ++r) members[std::size_t(r)] = r;
    all_ = make(std::string("all"), members);
    tensor_.resize(std::size_t(m.data));
    data_.resize(std::size_t(m.tensor));
    for (int d = 0; d < m.data; ++d) {
      if (rank >= 0 && m.position_of(rank).data != d) continue;
      members.clear();
      for (int t = 0; t < m.tensor; ++t) members.push_back(m.rank_of({d, t}));
      tensor_[std::size_t(d)] = make("tensor group " + std::to_string(d), members);
    }
    for (int t = 0; t < m.tensor; ++t) {
      if (rank >= 0 && m.position_of(rank).tensor != t) continue;
      members.clear();
      for (int d = 0; d < m.data; ++d) members.push_back(m.rank_of({d, t}));
      data_[std::size_t(t)] = make("data group " + std::to_string(t), members);
    }
  }

  const device_mesh& mesh() const { return mesh_; }
  /// The three communicators of one rank, made in the same order on all ranks, so that they can share what they connect by.
  /// @error invalid_argument: an axis without ranks, or no such rank; else as the transport's `join`
  result<mesh_communicators> join(int rank) {
    if (all_ == nullptr)
      return fail(errc::invalid_argument, "a mesh of " + text_of(mesh_) + " has an axis of less than one rank", "communication",
                  "give 1 or more for each axis");
    if (auto r = comm::check::member(rank, mesh_.ranks(), "a mesh of " + text_of(mesh_)); !r) return r.error();
    const mesh_position at = mesh_.position_of(rank);
    mesh_communicators c;
    auto all = all_->join(rank);
    if (!all) return all.error();
    c.all = *std::move(all);
    auto tensor = tensor_[std::size_t(at.data)]->join(at.tensor);
    if (!tensor) return ended(c, tensor.error());
    c.tensor = *std::move(tensor);
    if (auto r = c.all->barrier(); !r) return r.error();
    auto data = data_[std::size_t(at.tensor)]->join(at.data);
    if (!data) return ended(c, data.error());
    c.data = *std::move(data);
    if (auto r = c.all->barrier(); !r) return r.error();
    return c;
  }

 private:
  device_mesh mesh_;
  std::unique_ptr<T> all_;
  std::vector<std::unique_ptr<T>> tensor_, data_;  // by data index, by tensor index

  static failure ended(const mesh_communicators& c, failure why) {
    c.abort(why);
    return why;
  }
};

}  // namespace isotope
