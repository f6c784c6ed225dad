#!/usr/bin/env python3
"""mutated_modules.py NVCC TREE FOLDER PROGRAM [WORD...]: starts mutants_cuda on a GPU with the planted bug that the variable ISOTOPE_MUTANT names, also in device
code. TREE is what mutate.py wrote. The modules that contain the bug are compiled into FOLDER/<number> first, unless they are there and newer than the tree.
mutated_modules.py NVCC TREE FOLDER --compile JOBS NUMBER...: only compiles the modules of these bugs, JOBS at a time.

The emulated device needs no such step, as its modules contain all bugs. By hand, on a machine with the GPU:
    mutants_test.py tests/cuda/mutants.json <build>/tests/mutants_cuda --has hopper --behind mutated_modules.py nvcc <build>/tests/mutants/cuda modules"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<isotope/kernels/cuda/([^>]+)>)', re.M)


def files_of(source, kernels):
    """The files of kernels/cuda that a source consists of."""
    found, left = set(), [source]
    while left:
        file = left.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        for beside, named in INCLUDE.findall(file.read_text()):
            left += [kernels / named] if named else [(file.parent / beside).resolve(), kernels / beside]
    return found


def module_of(source, kernels):
    """The name of the module, as cmake/backend/cuda/fatbins.cmake gives it."""
    return re.sub("^(portable|native)/", "", source.relative_to(kernels).with_suffix("").as_posix()).replace("/", "_")


def options_of(source, kernels):
    lines = re.findall(r"^// (architectures|flags): *(.*)$", source.read_text(), re.M)
    own = [word for kind, words in lines if kind == "architectures" for word in re.split("[ ,]+", words)]
    flags = [word for kind, words in lines if kind == "flags" for word in words.split()]
    if source.relative_to(kernels).parts[0] == "reference":
        flags.append("-fmad=false")
    return [f"-gencode=arch=compute_{a},code=sm_{a}" for a in own] + ([] if own else ["-arch=native"]) + flags


def commands_of(nvcc, tree, folder, number):
    """The commands that compile the modules with a bug, but for those that are there."""
    include = (tree / "include").resolve()
    kernels = include / "isotope/kernels/cuda"
    bug = re.compile(rf"mutants::chosen\({number}\)")
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(kernels.rglob("*.cu")):
        files = files_of(source, kernels)
        if not any(bug.search(file.read_text()) for file in files):
            continue
        module = folder / f"{module_of(source, kernels)}.fatbin"
        if module.is_file() and module.stat().st_mtime > max(file.stat().st_mtime for file in files):
            continue
        yield [nvcc, "-std=c++20", "-O3", "-w", "-fatbin", "-allow-unsupported-compiler", "--expt-relaxed-constexpr", *options_of(source, kernels),
               f"-DISOTOPE_MUTANT={number}", f"-I{kernels}", f"-I{include}", "-o", str(module), str(source)]


def compiled(command):
    """Whether the command succeeded; says how long it took."""
    began = time.monotonic()
    done = subprocess.run(command, check=False).returncode == 0
    print(f"{'compiled' if done else 'error: not compiled:'} {command[-2]} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return done


def main():
    nvcc, tree, folder, *words = sys.argv[1:]
    jobs, numbers = 1, [os.environ.get("ISOTOPE_MUTANT", "0")]
    if words[0] == "--compile":
        jobs, numbers = int(words[1]), words[2:]
    every = [c for number in numbers if number != "0" for c in commands_of(nvcc, pathlib.Path(tree), pathlib.Path(folder, number), number)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        if not all(list(pool.map(compiled, every))):
            sys.exit(2)
    if words[0] != "--compile":
        os.execvpe(words[0], words, os.environ | {"ISOTOPE_MUTANT_MODULES": str(pathlib.Path(folder, numbers[0]))})


if __name__ == "__main__":
    main()
