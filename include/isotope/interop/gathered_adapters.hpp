#pragma once
/// The adapters of a session whose tensors the ranks of a mesh divide between them, whole and in host memory.
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/nn/lora.hpp>
#include <isotope/plan/plan.hpp>
#include <isotope/train/mesh_tensors.hpp>

namespace isotope::interop {

/// What save_adapters takes instead of the session of a rank.
class gathered_adapters {
 public:
  /// Every rank of the mesh calls it at the same time.
  /// @param keeps  whether this rank gets the numbers
  /// @error non_finite: a number is NaN or infinite; out_of_memory; peer_lost: another rank failed; as the session's read. Every rank fails where one does
  template <train::HoldsParts S> static result<gathered_adapters> of(S& session, bool keeps) {
    gathered_adapters all;
    std::vector<train::detail::whole_tensor> tensors;
    const auto& slots = session.parameters();
    for (std::size_t k = 0; k < slots.size(); ++k) {
      const slot& s = slots[k];
      if (!nn::is_adapter(s.path.view())) continue;
      tensors.push_back({tensor_kind::parameter, k, s.path.view()});
      all.slots_.push_back(s);
      all.slots_.back().dims = s.pieces.whole(s.dims);
      all.slots_.back().pieces = {};
    }
    const auto write = [&](const auto& give) -> result<void> {
      return give([&](std::span<const std::byte> bytes) -> result<void> {
        if (!keeps) return {};
        const std::size_t before = all.values_.size();
        all.values_.resize(before + bytes.size() / sizeof(float));
        std::memcpy(all.values_.data() + before, bytes.data(), bytes.size());
        return {};
      });
    };
    constexpr std::size_t piece_elems = std::size_t(1) << 20;
    if (auto r = train::detail::save_together(session, tensors, 0, piece_elems, write); !r) return std::move(r).error();
    return all;
  }

  std::span<const slot> parameters() const { return slots_; }
  /// @error not_found: another kind of tensor, or a rank that does not keep them
  result<void> read(tensor_kind what, std::size_t k, std::span<float> out) const {
    std::size_t first = 0;
    for (std::size_t i = 0; i < k; ++i) first += std::size_t(slots_[i].dims.count());
    if (what != tensor_kind::parameter || first + out.size() > values_.size())
      return fail(errc::not_found, "the gathered adapters have no such numbers", "adapters",
                  "read parameters, on the rank that keeps them");
    std::memcpy(out.data(), values_.data() + first, out.size_bytes());
    return {};
  }

 private:
  std::vector<slot> slots_;
  std::vector<float> values_;  // of one slot after the other
};

}  // namespace isotope::interop
