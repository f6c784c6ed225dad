"""Writes the table of choices that the library ships for a model of device, from the files of ISOTOPE_CACHE that bench_variants made there.

    ISOTOPE_CACHE=choices build/cuda-bf16/bench/bench_variants --step --random 0
    python3 bench/ship_choices.py cuda "NVIDIA H200=choices" > include/isotope/backend/cuda/shipped_choices.hpp

Of several devices or files, name each with its device. Only variants of isotope's own kernels are shipped: algorithms of a library depend on its version.
"""

import sys


def choices(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines[1:]:
        signature, value = line.split("\t")
        if signature != "hash" and not signature.startswith("cublasLt ") and value.startswith("measured "):
            yield signature, value.removeprefix("measured ")


def main():
    backend, *devices = sys.argv[1:]
    print("#pragma once")
    print("/// Choices among variants of kernels that bench_variants measured on a device of that name. They serve where the user's file has no choice.")
    print("/// bench/ship_choices.py writes this file.")
    print("#include <array>\n#include <span>\n\n#include \"../queue/variant_cache.hpp\"\n")
    print(f"namespace isotope::{backend} {{\n")
    print("// clang-format off")
    print(f"inline constexpr std::array<shipped_choices, {len(devices)}> measured_choices{{{{")
    for pair in devices:
        device, path = pair.split("=")
        print(f"    {{\"{device}\",")
        for signature, variant in choices(path):
            for at in range(0, len(signature), 120):
                print(f"     \"{signature[at:at + 120]}\"")
            print(f"     \"\\t{variant}\\n\"")
        print("    },")
    print("}};\n// clang-format on")
    print("inline std::span<const shipped_choices> shipped() { return measured_choices; }\n")
    print(f"}}  // namespace isotope::{backend}")


main()
