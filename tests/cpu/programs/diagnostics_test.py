"""Diagnostics of runs on the processor."""

from program import main


def test_verbose_names_the_threads(f):
    for threads in ("1", "2"):
        done = f.run("mlp", "--verbose", env={"ISOTOPE_THREADS": threads})
        assert f"cpu, {threads} units" in done.err, done.err


def test_no_pipelines_are_kept_since_the_processor_compiles_nothing(f):
    f.run("mlp", env={"ISOTOPE_CACHE_DIR": str(f.path / "made" / "here")}).succeeded()
    assert not (f.path / "made").exists()


def test_faults_are_refused_where_there_is_no_device_to_fail(f):
    f.train("--steps", "8", "--warmup", "1", "--inject-fault", "device_lost:3").refused(2, "no faults to inject")


if __name__ == "__main__":
    main(globals())
