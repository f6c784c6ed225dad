"""isotope-serve: keys, bad flags and folders, and the commands of docs/SERVING.md."""

import re
import shutil
import subprocess

import tiny_model
from program import ENVIRONMENT, main, skip
from serve_rig import Server


def test_a_key_is_asked_for_and_never_written(f):
    f.write("keys", "first-secret\n\n second-secret \r\n")
    with Server(f, "gpt", "--api-key-file", "keys", "--log-requests", "--served-name", "small") as s:
        body = {"prompt": "a", "max_tokens": 3}
        for headers in ({}, {"Authorization": "Bearer wrong-secret"}, {"Authorization": "first-secret"}, {"Authorization": "Bearer first-secretx"}, {"Authorization": "Bearer "}):
            status, answer, got = s.ask("/v1/completions", body, headers=headers)
            assert status == 401 and answer["error"]["code"] == "invalid_api_key" and got["WWW-Authenticate"] == "Bearer", answer
            assert s.ask("/metrics", headers=headers)[0] == 401
        for key in ("first-secret", "second-secret"):
            assert s.ask("/v1/completions?key=" + key, body | {"model": "small"}, headers={"Authorization": "Bearer " + key})[0] == 200
        assert s.good("/health") == {"status": "ok"}
        code, err = s.stop()
        assert code == 0 and "secret" not in err and err.count("isotope-serve: POST /v1/completions 200 ") == 2 and "POST /v1/completions 401" in err, err


def test_bad_input_is_refused_in_one_line(f):
    f.run("serve").refused(2, "--model", "is missing")
    f.run("serve", "--model", "nowhere").refused(2, "nowhere", "no such folder")
    tiny_model.gpt2(f.path / "gpt")
    f.run("serve", "--model", "gpt", "--port", "70000").refused(2, "--port", "is 70000", "0 to 65535")
    f.run("serve", "--model", "gpt", "--slots", "0").refused(2, "--slots", "is 0")
    f.run("serve", "--model", "gpt", "--host", "example.org").refused(2, "'example.org' is no address")
    f.run("serve", "--model", "gpt", "--api-key-file", "missing").refused(2, "missing", "no such file")
    f.write("keys", "\n \n")
    f.run("serve", "--model", "gpt", "--api-key-file", "keys").refused(2, "keys", "has no key")
    f.write("gpt/tokenizer_config.json", "{")
    f.run("serve", "--model", "gpt").refused(2, "tokenizer_config.json", "not JSON")
    f.write("gpt/tokenizer_config.json", "{}")
    with Server(f, "gpt") as s:
        f.run("serve", "--model", "gpt", "--port", s.port).refused(1, f"127.0.0.1:{s.port}", "cannot listen")


def test_the_examples_of_the_document_work(f):
    if shutil.which("curl") is None:
        skip("curl is not there")
    text = (tiny_model.BERT.parents[2] / "docs" / "SERVING.md").read_text()
    commands = re.findall(r"^curl (?:\\\n|[^\n])*", text, re.MULTILINE)
    assert len(commands) >= 8, commands
    f.write("keys", "KEY\n")
    ran = 0
    for folder in ("gpt", "bert"):
        with Server(f, folder, "--api-key-file", "keys") as s:
            for command in commands:
                if ("/v1/embeddings" in command) != (folder == "bert"):
                    continue
                done = subprocess.run(command.replace("http://127.0.0.1:8080", s.address), shell=True, cwd=f.path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
                assert done.returncode == 0 and done.stdout and '"error"' not in done.stdout, (command, done.stdout, done.stderr)
                ran += 1
    assert ran == len(commands)


if __name__ == "__main__":
    main(globals())
