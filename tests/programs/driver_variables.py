"""The caller's variables that determine the libraries and the driver of a program under test: LD_LIBRARY_PATH, and those whose names begin with a line of
tests/<backend>/variables."""

import os
import pathlib

BEGINNINGS = tuple(line for file in pathlib.Path(__file__).resolve().parents[1].glob("*/variables") for line in file.read_text().split())


def driver_variables():
    return {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH" or name.startswith(BEGINNINGS)}
