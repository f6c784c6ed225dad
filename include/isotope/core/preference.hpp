#pragma once
/// Which of several backends a program takes.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include "target.hpp"

namespace isotope {

namespace core_detail {
template <class A, class B> using better = boost::mp11::mp_if_c<(B::preference > A::preference), B, A>;
}
/// The backend of the highest `preference`; of equals the first. `using mine = preferred<backend::cpu, backend::vulkan>;`
template <HasPreference First, HasPreference... Rest>
using preferred = boost::mp11::mp_fold<boost::mp11::mp_list<Rest...>, First, core_detail::better>;

}  // namespace isotope
