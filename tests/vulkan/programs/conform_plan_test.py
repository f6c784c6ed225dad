"""Compares the table of numeric policies with the SPIR-V modules of the kernels."""

import struct

from program import PROGRAMS, main


def execution_modes(module):
    """The modes that a SPIR-V module declares: the operand after the entry point of each OpExecutionMode."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    assert words[0] == 0x07230203, hex(words[0])
    at = 5
    while at < len(words):
        if words[at] & 0xFFFF in (16, 331):
            yield words[at + 2]
        at += words[at] >> 16


def test_no_kernel_asks_for_a_mode_of_f32_as_the_table_of_policies_says(folder):
    modules = sorted((PROGRAMS.parent / "shaders" / "isotope" / "shaders").glob("*.spv"))
    # DenormPreserve, DenormFlushToZero, SignedZeroInfNanPreserve, RoundingModeRTE, RoundingModeRTZ
    asked = {m.name: mode for m in modules for mode in execution_modes(m.read_bytes()) if 4459 <= mode <= 4463}
    assert len(modules) > 50 and not asked, asked
    local_size = [m.name for m in modules if not set(execution_modes(m.read_bytes())) & {17, 38}]
    assert not local_size, f"modules without a size of workgroups: they are not read right: {local_size}"


if __name__ == "__main__":
    main(globals())
