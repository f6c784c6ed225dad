#!/usr/bin/env python3
"""machine_code.py LIST FATBINS [CUOBJDUMP]: checks the machine code of kernels.

LIST is in the format of machine_code.txt. FATBINS is the folder where the build writes *.usage, which ptxas reports, and *.fatbin. Instructions are read with
CUOBJDUMP; without it, lines that need them are skipped, and the exit status is 77 if all else is as it should be."""
import fnmatch
import pathlib
import re
import subprocess
import sys


INSTRUCTION = re.compile("[A-Z][A-Z0-9_]*")


class Kernel:
    def __init__(self, file):
        self.file = file  # its fatbin
        self.registers = self.stack = self.spilled = 0
        self.instructions = set()


def usage_of(file):
    """The kernels in a report of ptxas, by name and architecture."""
    kernels, current = {}, None
    for line in file.read_text().splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)' for 'sm_(\w+)'", line):
            current = kernels.setdefault((entry[1], entry[2]), Kernel(file.with_suffix(".fatbin")))
        elif current is None:
            continue
        elif frame := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            current.stack, current.spilled = int(frame[1]), int(frame[2]) + int(frame[3])
        elif used := re.search(r"Used (\d+) registers", line):
            current.registers = int(used[1])
    return kernels


def add_instructions(kernels, text):
    """Adds the instructions in a listing of cuobjdump -sass."""
    architecture, current = "", None
    for line in text.splitlines():
        if code := re.match(r"\s*code for sm_(\w+)", line):
            architecture = code[1]
        elif function := re.match(r"\s*Function : (\w+)", line):
            current = kernels.get((function[1], architecture))
        elif current and (instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ +)?([A-Z][A-Z0-9_]*)", line)):
            current.instructions.add(instruction[1])


def breaches(words, kernel, with_instructions):
    """What of these words a kernel does not satisfy."""
    for word in words:
        if word == "no_spills":
            if kernel.stack or kernel.spilled:
                yield f"{kernel.stack} bytes of stack, {kernel.spilled} bytes of registers are spilled"
        elif limit := re.fullmatch(r"registers<=(\d+)", word):
            if kernel.registers > int(limit[1]):
                yield f"{kernel.registers} registers, at most {limit[1]} are allowed"
        elif INSTRUCTION.fullmatch(word):
            if with_instructions and word not in kernel.instructions:
                yield f"no {word}"
        else:
            sys.exit(f"machine_code: '{word}' is not a word of the list")


def main(listed, folder, cuobjdump=None):
    kernels = {}
    for file in sorted(pathlib.Path(folder).glob("*.usage")):
        kernels.update(usage_of(file))
    if not kernels:
        sys.exit(f"machine_code: {folder} has no *.usage; build the target isotope_fatbins")
    failed = checked = unread = 0
    read = set()
    for line in pathlib.Path(listed).read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        pattern, only = words[0], [word[1:] for word in words[1:] if word.startswith("@")]
        words = [word for word in words[1:] if not word.startswith("@")]
        if only and not any(architecture in only for _, architecture in kernels):
            continue
        named = [key for key in kernels if fnmatch.fnmatchcase(key[0], pattern) and (not only or key[1] in only)]
        if not named:
            print(f"{pattern}: no kernel has this name")
            failed += 1
        instructions = any(INSTRUCTION.fullmatch(word) for word in words)
        for file in {kernels[key].file for key in named} - read if instructions and cuobjdump else ():
            add_instructions(kernels, subprocess.run([cuobjdump, "-sass", str(file)], capture_output=True, text=True, check=True).stdout)
            read.add(file)
        for name, architecture in named:
            checked += 1
            for text in breaches(words, kernels[name, architecture], cuobjdump):
                print(f"{name}, sm_{architecture}: {text}")
                failed += 1
        unread += instructions
    print(f"{checked} kernels checked, {failed} problems")
    if failed:
        return 1
    if unread and not cuobjdump:
        print("skipped: no cuobjdump is here, so instructions were not read; cmake/backend/cuda/get-nvcc.sh brings one")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
