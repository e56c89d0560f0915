"""A step that does what its job tells it to, good or bad: `obedient_step.py TEMPLATE JOB.json`."""

import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any


def _give(job: dict[str, Any], **facts: Any) -> None:
    """Leave complete outputs, the last in one move."""
    out = Path(job["out"])
    out.mkdir(exist_ok=True)
    entries = []
    for name, content in (("answer.json", json.dumps(facts)), ("summary.json", '{"headline": "Done."}')):
        (out / name).write_text(content)
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        entry = {"name": name, "kind": "answer", "media_type": "application/json", "sha256": sha256}
        entries.append(entry | {"size": len(content)})
    (out / ".outputs").write_text(json.dumps({"outputs": entries}))
    (out / ".outputs").replace(out / "outputs.json")


def _knock(path: str) -> socket.socket:
    """Tell the test that this step runs; the connection ends with the process."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.sendall(b"%d\n" % os.getpid())
    return connection


def _children(path: str, *, apart: bool) -> None:
    """Start processes that never end, in groups of their own if `apart`; return when all have knocked."""
    heard, tell = os.pipe()
    for _ in range(3):
        if os.fork() == 0:
            if apart:
                os.setsid()
            connection = _knock(path)
            os.write(tell, b"x")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                connection.recv(1)
    for _ in range(3):
        os.read(heard, 1)


def _burn() -> None:
    data = b"x" * 10_000_000
    while True:
        hashlib.sha256(data)


def do(what: str, job: dict[str, Any]) -> None:
    """Do one thing."""
    name, _, value = what.partition(":")
    match name:
        case "give":
            modes = {
                name: oct(Path(each["path"]).stat().st_mode & 0o777) for name, each in job["inputs"].items()
            }
            _give(job, modes=modes)
        case "environment":
            _give(job, environment=dict(os.environ), folder=os.getcwd())
        case "exit":
            code, _, said = value.partition(":")
            print("a warning of a library\n" + said, file=sys.stderr)
            sys.exit(int(code))
        case "count":
            with Path(value).open("a") as file:
                file.write("x")
        case "fail-until":
            times, _, path = value.partition(":")
            if len(Path(path).read_text()) < int(times):
                sys.exit(1)
        case "knock":
            _knock(value).recv(1)
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            connection = _knock(value)
            while True:
                connection.recv(1)
        case "children":
            _children(value, apart=False)
        case "children-apart":
            _children(value, apart=True)
        case "processes":
            for _ in range(40):
                if os.fork() == 0:
                    time.sleep(600)
            time.sleep(600)
        case "write":
            with Path("large").open("wb") as file:
                for _ in range(5000):
                    file.write(b"x" * 1_000_000)
        case "many-files":
            for number in range(5000):
                Path(f"file{number}").write_bytes(b"x" * 1_000_000)
        case "flood":
            until = time.monotonic() + 1
            while time.monotonic() < until:
                os.write(2, b"noise \x1b[31m" * 5000)
                os.write(1, b"noise" * 10000)
            print(file=sys.stderr)
            sys.exit(f"the end \x1b[31m {'of it ' * 200}")
        case "memory":
            kept = [bytearray(50_000_000) for _ in range(200)]
            print(len(kept))
        case "burn":
            threading.Thread(target=_burn, daemon=True).start()
            _burn()
        case "signal":
            os.kill(os.getpid(), getattr(signal, value))
        case "write-input":
            copy = Path(job["inputs"]["sequence"]["path"])
            copy.chmod(0o600)
            copy.write_text("other")
        case "list":
            (Path(job["out"]) / "outputs.json").write_text(value)
        case "link":
            (Path(job["out"]) / "answer.json").unlink()
            (Path(job["out"]) / "answer.json").symlink_to(value)
        case "spoil":
            (Path(job["out"]) / "answer.json").write_text("{}")
        case "lock-up":
            shut = Path("shut")
            (shut / "in").mkdir(parents=True)
            (shut / "in").chmod(0)
            shut.chmod(0)
        case _:
            raise ValueError(what)


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[2]).read_text())
    for each in told["params"]["do"].split("; "):
        do(each, told)
