#pragma once
/// Opens the kernel sets of a backend and a precision by name.
#include "executors.hpp"

#include <isotope/conform/executor_of.hpp>

namespace conform_program {

template <class B, class P, class D> opened open_set(std::string_view kernels, const iso::basic_device_options<D>& given) {
  using namespace iso::kernels;
  const auto o = iso::options_for<B>(given);
  if (kernels == reference::name) return iso::conform::executor_of<iso::target<B, P, reference>>::open(o);
  if (kernels == portable::name) return iso::conform::executor_of<iso::target<B, P, portable>>::open(o);
  if (kernels == native::name) return iso::conform::executor_of<iso::target<B, P, native>>::open(o);
  return iso::fail(iso::errc::invalid_argument, "no kernel set '" + std::string(kernels) + "'", "--kernels",
                   "reference, portable or native");
}

}  // namespace conform_program
