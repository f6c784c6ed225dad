#pragma once
/// Every target of the program, chosen at run time.
#include <isotope/conform/executor.hpp>
#include <isotope/core/gpu_options.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace conform_program {

namespace iso = isotope;
using opened = iso::result<std::unique_ptr<iso::conform::executor>>;

/// Each is in its own source file to keep compilation small: its target in every kernel set.
opened open_cpu_f32(std::string_view kernels, const iso::gpu_options& o);
opened open_cpu_bf16(std::string_view kernels, const iso::gpu_options& o);
opened open_built_f32(std::string_view kernels, const iso::gpu_options& o);
opened open_built_bf16(std::string_view kernels, const iso::gpu_options& o);
opened open_built_f16(std::string_view kernels, const iso::gpu_options& o);

}  // namespace conform_program
