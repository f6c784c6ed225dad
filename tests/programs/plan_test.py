"""isotope-info plan: the memory that training takes, by policy, without a device."""

from program import main


def test_memory_falls_with_chunks_and_recomputation(f):
    out = f.run("info", "plan", "char-gpt", "64", "256").succeeded().out
    rows = [line.split() for line in out.splitlines()[2:]]
    assert rows[0] == ["head", "chunks", "none", "cheap", "keep_matmuls", "all"], out
    assert [r[0] for r in rows[1:]] == ["1", "2", "3", "4", "8"], out
    whole, divided = [float(x) for x in rows[1][1:]], [float(x) for x in rows[-1][1:]]
    assert whole[0] > whole[1] > whole[3], out
    assert all(b <= a for a, b in zip(whole, divided)), out


def test_training_says_in_how_many_chunks_the_head_is(f):
    run = f.train("--steps", "2", "--recompute", "cheap", "--head-chunks", "2", "--verbose")
    assert run.code == 0 and "head in 2 chunks of rows\n" in run.err, run.err
    run = f.train("--steps", "2", "--head-chunks", "0", "--verbose")
    assert run.code == 0 and "chunks of rows" not in run.err, run.err


def test_what_has_no_plan_is_refused_in_one_line(f):
    f.run("info", "plan").refused(2, "a size, a batch and a length", "0 arguments")
    f.run("info", "plan", "gpt3", "1", "1").refused(2, "'gpt3'", "gpt2-124m")
    for batch, length in (("0", "8"), ("x", "8"), ("1", "-1"), ("1", "33"), ("1x", "8")):
        f.run("info", "plan", "debug-tiny", batch, length).refused(2, "at most 32")


if __name__ == "__main__":
    main(globals())
