#!/usr/bin/env python3
"""fetch_wheels.py LIST FOLDER WORK PREFIX: downloads the wheels of LIST into WORK, checks their digests, and unpacks their folders FOLDER, a regular expression
such as nvidia/cu[0-9]+, into PREFIX. Nothing of a wheel is executed.

pip downloads them if it is there, with its configured index, proxies and certificates. Otherwise they come from https://pypi.org/simple."""
import hashlib
import html
import pathlib
import platform
import re
import subprocess
import sys
import urllib.parse
import urllib.request
import zipfile

INDEX = "https://pypi.org/simple/"


def with_pip(listed, work):
    """Whether pip is there and has downloaded everything."""
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
        return False
    command = [*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", str(work), "--requirement", str(listed)]
    if subprocess.run(command).returncode != 0:
        sys.exit(1)
    return True


def without_pip(wanted, work):
    for name, version, digests in wanted:
        page = f"{INDEX}{name}/"
        text = urllib.request.urlopen(page, timeout=60).read().decode()
        for link in re.findall(r'href="([^"]+)"', text):
            url = urllib.parse.urljoin(page, html.unescape(link))
            file = urllib.parse.unquote(urllib.parse.urlparse(url).path.rsplit("/", 1)[-1])
            if file.startswith(f"{name.replace('-', '_')}-{version}-") and file.endswith((f"_{platform.machine()}.whl", "-any.whl")):
                (work / file).write_bytes(urllib.request.urlopen(url, timeout=600).read())
                break
        else:
            sys.exit(f"{page} has no {name} {version} for {platform.machine()}")


def unpack(wheel, folder, prefix):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            match = re.match(f"(?:{folder})/(?P<file>.+[^/])$", entry.filename)
            if match is None or ".." in match["file"].split("/"):
                continue
            file = prefix / match["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(archive.read(entry))
            file.chmod(0o755 if entry.external_attr >> 16 & 0o100 else 0o644)


def main(listed, folder, work, prefix):
    wanted = []
    for line in listed.read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split()[0].split("==")
            wanted.append((name, version, set(re.findall(r"sha256:([0-9a-f]{64})", line))))
    if not with_pip(listed, work):
        without_pip(wanted, work)
    for name, version, digests in wanted:
        wheels = list(work.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
        if len(wheels) != 1:
            sys.exit(f"{name} {version} is not there")
        if hashlib.sha256(wheels[0].read_bytes()).hexdigest() not in digests:
            sys.exit(f"{wheels[0].name} is not the file that {listed.name} names: its digest differs")
        unpack(wheels[0], folder, prefix)


try:
    main(pathlib.Path(sys.argv[1]), sys.argv[2], *map(pathlib.Path, sys.argv[3:]))
except OSError as error:
    sys.exit(str(error))
