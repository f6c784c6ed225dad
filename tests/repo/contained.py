#!/usr/bin/env python3
"""contained.py PROGRAM FOLDER: prints how many bytes of the program are copies of files in FOLDER, such as device code that is compiled for many devices."""
import pathlib
import sys

program = pathlib.Path(sys.argv[1]).read_bytes()
files = {file.read_bytes() for file in pathlib.Path(sys.argv[2]).iterdir() if file.suffix == ".fatbin"}
print(sum(len(code) for code in files if code and code in program))
