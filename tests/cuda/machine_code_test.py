#!/usr/bin/env python3
"""machine_code.py must find every breach of its list."""
import contextlib
import io
import pathlib
import tempfile

import machine_code

USAGE = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'good' for 'sm_90a'
ptxas info    : Function properties for good
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers
ptxas info    : Compiling entry function 'spills' for 'sm_90a'
ptxas info    : Function properties for spills
    16 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers
"""
SASS = r"""
	code for sm_90a
		Function : good
        /*0000*/                   LDC R1, c[0x0][0x28] ;     /* 0x00000a00ff017b82 */
        /*0010*/               @P0 HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4] ;  /* 0x0 */
		Function : spills
        /*0000*/              @!P1 STL [R1], R2 ;
"""


def check(listed, cuobjdump=True):
    """The exit status and the report for a list."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "a.usage").write_text(USAGE)
        (root / "a.fatbin").write_text("")
        (root / "list").write_text(listed)
        fake = root / "cuobjdump"
        fake.write_text(f"#!/bin/sh\ncat <<'END'\n{SASS}END\n")
        fake.chmod(0o755)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = machine_code.main(root / "list", root, *([str(fake)] if cuobjdump else []))
        return status, out.getvalue()


def refused(words, *arguments):
    status, text = check(*arguments)
    assert status == 1 and words in text, (status, text)


assert check("# nothing\n\ngood no_spills registers<=64 HGMMA @90a\n")[0] == 0
assert check("good LDC\n*s STL\n")[0] == 0, "predicates are no instructions"
refused("spills, sm_90a: 16 bytes of stack, 24 bytes of registers are spilled", "* no_spills\n")
refused("spills, sm_90a: 255 registers, at most 254", "* registers<=254\n")
refused("spills, sm_90a: no HGMMA", "* HGMMA\n")
refused("goo: no kernel has this name", "goo no_spills\n")
refused("spills, sm_90a: 16 bytes", "* no_spills HGMMA\n", False)
assert check("goo no_spills @100a\n")[0] == 0, "code that the build does not have"
assert check("good HGMMA\n", False)[0] == 77, "nothing reads instructions"
assert check("good no_spills\n", False)[0] == 0
try:
    check("good nospills\n")
    raise AssertionError("an unknown word")
except SystemExit as why:
    assert "'nospills' is not a word" in str(why)
