#pragma once
/// A dense tensor in device memory that the application owns.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "op_runner.hpp"

namespace isotope {

template <Queue Q> class tensor_ops;

/// Cheap to copy: copies and parts share the memory, which is given back with the last of them. `tensor_ops` makes them and works on them. The tensors of one
/// tensor_ops, their destruction included, belong to one thread at a time.
template <Queue Q> class device_tensor {
 public:
  device_tensor() = default;

  const shape& dims() const { return dims_; }
  dtype type() const { return type_; }
  std::int64_t count() const { return memory_ == nullptr ? 0 : dims_.count(); }
  bool valid() const { return memory_ != nullptr; }

  /// Elements [first, first + s.count()) as a tensor of their own, such as one parameter of a flat buffer.
  /// @error invalid_argument beyond the end, or for a shape that no tensor has
  result<device_tensor> part(std::int64_t first, const shape& s) const {
    if (!s.fault().empty() || s.has_scalar())
      return fail(errc::invalid_argument, "a part whose shape " + std::string(s.has_scalar() ? "is known late" : s.fault()),
                  "device_tensor", "give constant sizes of at least 0");
    if (first < 0 || first > count() - s.count())
      return fail(errc::invalid_argument,
                  "elements " + std::to_string(first) + " to " + std::to_string(first + s.count()) + " of " + std::to_string(count()),
                  "device_tensor", "stay within the tensor");
    device_tensor r = *this;
    r.dims_ = s;
    r.first_ += first;
    return r;
  }

 private:
  friend tensor_ops<Q>;
  std::shared_ptr<device_block<Q>> memory_;
  std::int64_t first_ = 0;  // element
  shape dims_;
  dtype type_ = dtype::f32;

  device_tensor(std::shared_ptr<device_block<Q>> memory, std::int64_t first, const shape& s, dtype t)
      : memory_(std::move(memory)), first_(first), dims_(s), type_(t) {}
};

}  // namespace isotope
