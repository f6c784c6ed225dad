#pragma once
/// Named numbers of a job in the formats of a plan's inputs.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../backend/session/ports.hpp"
#include "values.hpp"

namespace isotope::worker {

/// The inputs that a batch sets. Numbers that have the input's format already are moved, others are converted.
class typed_batch {
 public:
  /// @error not_found, with the inputs there are; invalid_argument: another number of elements, or numbers of another kind
  /// @param late  whether an input of late sizes may get fewer numbers than its limit
  static result<typed_batch> make(std::span<const port> ports, std::vector<named_numbers>&& given, bool late = false) {
    typed_batch b;
    for (named_numbers& x : given) {
      const port* p = find_port(ports, x.name);
      if (p == nullptr) return typed_port(ports, x.name, 0, "input").error();
      const auto wanted = p->where.dims.count(), count = std::int64_t(count_of(x.values));
      if (count != wanted && !(late && p->where.dims.has_scalar() && count < wanted))
        return fail(errc::invalid_argument, std::to_string(count) + " elements for an input of " + std::to_string(wanted), x.name,
                    "give as many as the input has");
      auto converted = in_format(std::move(x), p->where.type);
      if (!converted) return std::move(converted).error();
      b.inputs_.push_back({p->label.view(), *std::move(converted)});
    }
    return b;
  }

  /// give(name of an input, its elements) for each.
  template <class Give> void each_input(const Give& give) const {
    for (const auto& [label, values] : inputs_)
      std::visit([&]<class E>(const std::vector<E>& v) { give(label, std::span<const E>(v)); }, values);
  }

 private:
  using elements = std::variant<std::vector<float>, std::vector<double>, std::vector<bfloat16>, std::vector<float16>,
                                std::vector<std::int32_t>, std::vector<std::int64_t>, std::vector<std::uint32_t>>;
  std::vector<std::pair<std::string_view, elements>> inputs_;

  template <class To, class From> static elements converted(const std::vector<From>& x) {
    std::vector<To> y;
    y.reserve(x.size());
    for (const From v : x) y.push_back(To(v));
    return y;
  }
  static result<elements> in_format(named_numbers&& x, dtype type) {
    if (auto* f = std::get_if<std::vector<float>>(&x.values)) {
      switch (type) {
        case dtype::f32: return elements(std::move(*f));
        case dtype::f64: return converted<double>(*f);
        case dtype::bf16: return converted<bfloat16>(*f);
        case dtype::f16: return converted<float16>(*f);
        default: break;
      }
    } else {
      auto& i = std::get<std::vector<std::int32_t>>(x.values);
      switch (type) {
        case dtype::i32: return elements(std::move(i));
        case dtype::i64: return converted<std::int64_t>(i);
        case dtype::u32: return converted<std::uint32_t>(i);
        default: break;
      }
    }
    return fail(errc::invalid_argument, "the input holds " + std::string(name_of(type)), x.name,
                is_floating(type) ? "give it numbers of type float" : "give it numbers of type int32");
  }
};

}  // namespace isotope::worker
