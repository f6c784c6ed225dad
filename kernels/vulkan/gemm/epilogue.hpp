#pragma once
/// Runs the fused body of a gemm as its own launch: the gemm is rounded into one of the outputs, and the emitted element-wise kernel continues from
/// there, in place. This costs one more read and write of the result, at the speed of a copy. The interpreter inside the gemm kernel, which other
/// drivers fold into straight code, ran ten times slower than the gemm on an H200 (580.159.04): its sums left the registers.
#include <array>
#include <optional>

#include <isotope/kernels/vulkan/portable/elementwise.hpp>
#include <isotope/op/matmul.hpp>

namespace isotope::vulkan {

template <class P> class matmul_epilogue {
 public:
  explicit matmul_epilogue(const launch& l) : given_(l) {
    const auto type = l.constants<op::matmul>().format.type();
    for (std::size_t k = 0; k < l.out.size() && !l.body.empty() && l.accumulate == 0; ++k) {
      bool free = l.out[k].type == type;
      for (std::size_t i = 0; i < l.in.size(); ++i) free = free && !range(l.out[k]).overlaps(l.in[i]);
      if (free) {
        hosts_ = l.out[k];
        break;
      }
    }
  }
  /// Whether some output can hold the result of the gemm: it has that format and overlaps no operand.
  bool possible() const { return hosts_.has_value(); }

  /// Calls record(the gemm alone), then records the body.
  template <class Record> void record(recording& r, const Record& product) const {
    launch alone = given_;
    alone.in = given_.in.first(std::size_t(given_.constants<op::matmul>().operands));
    alone.out = std::span<const view>(&*hosts_, 1);
    alone.body = {};
    product(alone, r);

    std::array<view, max_inputs> in{};
    std::array<micro_op, max_micro_ops> body{};
    for (std::size_t k = 0; k < given_.in.size(); ++k) in[k] = given_.in[k];
    in[0] = *hosts_;  // operand 0 belongs to the gemm; the body does not read it
    for (std::size_t j = 0; j < given_.body.size(); ++j) {
      body[j] = given_.body[j];
      for (auto& a : body[j].arg)
        if (a == isotope::gemm_result) a = 0;
    }
    launch rest = given_;
    rest.in = std::span<const view>(in.data(), given_.in.size());
    rest.body = std::span<const micro_op>(body.data(), given_.body.size());
    kernel<op::elementwise, P, kernels::portable>::record(rest, r);
  }

 private:
  const launch& given_;
  std::optional<view> hosts_;
};

}  // namespace isotope::vulkan
