"""The fake Argo Server: the real HTTP API over a cluster that is none, with faults on request.

Every body that comes in and goes out is checked against the schemas of Argo's own models; what breaks one is
in `violations`.
"""

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.research.argo.cluster import FINAL, Cluster, No
from tests.research.argo.schemas import violations

TOKEN = "a-token-of-the-cluster"
ALL = frozenset({"create", "get", "list", "watch", "update", "template", "log", "artifact", "delete"})

ROUTES = [
    ("POST", r"/api/v1/workflows/argo", "create"),
    ("GET", r"/api/v1/workflows/argo", "list"),
    ("GET", r"/api/v1/workflows/argo/([^/]+)", "get"),
    ("DELETE", r"/api/v1/workflows/argo/([^/]+)", "delete"),
    ("PUT", r"/api/v1/workflows/argo/([^/]+)/(stop|terminate|set|resume)", "update"),
    ("GET", r"/api/v1/workflows/argo/([^/]+)/log", "log"),
    ("GET", r"/api/v1/workflow-events/argo", "watch"),
    ("GET", r"/api/v1/workflow-templates/argo/([^/]+)", "template"),
    ("GET", r"/artifact-files/argo/workflows/([^/]+)/([^/]+)/outputs/outputs", "artifact"),
]
REQUESTS = {
    "stop": "WorkflowStopRequest",
    "terminate": "WorkflowTerminateRequest",
    "set": "WorkflowSetRequest",
    "resume": "WorkflowResumeRequest",
}


class LostError(Exception):
    """The connection is to be closed without an answer."""


class FakeArgo:
    """What the tests see of the server. `faults` are used up in turn, one a request of that kind.

    before-…: nothing is done. after-…: it is done. …-lost: no answer; …-500: an answer that says nothing;
    …-late: an answer that nobody waits for any more.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.url = ""
        self.rights: dict[str, frozenset[str]] = {TOKEN: ALL}
        self.faults: dict[str, list[str]] = defaultdict(list)
        self.asked: list[str] = []
        self.violations: list[str] = []
        self.closing = threading.Event()

    def count(self, what: str) -> int:
        """How often something was asked."""
        return self.asked.count(what)

    def fault(self, what: str) -> str:
        """Return the fault that is due."""
        faults = self.faults[what]
        return faults.pop(0) if faults else ""

    def check(self, model: str, document: Any) -> None:
        """Note what is wrong with a body."""
        self.violations += violations(model, document)

    def watched(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the events of one workflow until it is over or gone."""
        kind, last = "ADDED", None
        while not self.closing.is_set():
            with self.cluster.changed:
                now = self.cluster.workflows.get(name)
                text = json.dumps(now)
                if text == last:
                    self.cluster.changed.wait(0.2)
                    continue
            gone = now is None
            if not gone:
                yield {"type": kind, "object": json.loads(text)}
            elif last is not None:
                yield {"type": "DELETED", "object": json.loads(last)}
                return
            else:
                self.closing.wait(0.05)
                continue
            kind, last = "MODIFIED", text
            if json.loads(text)["status"]["phase"] in FINAL:
                return


class _Handler(BaseHTTPRequestHandler):
    argo: FakeArgo

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        self.close_connection = True
        parts = urlsplit(self.path)
        self._params = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            what, names = self._route(parts.path)
            self.argo.asked.append(what)
            self._allow(what)
            fault = self.argo.fault(what)
            self._act(fault, "before")
            send = getattr(self, f"_{what}")(*names, fault=fault)
            self._act(fault, "after")
            send()
        except LostError:
            return
        except No as no:
            self._send({"code": no.code, "message": no.message}, status=no.status)
        except (BrokenPipeError, ConnectionResetError):
            return

    def _route(self, path: str) -> tuple[str, tuple[str, ...]]:
        for method, pattern, what in ROUTES:
            found = re.fullmatch(pattern, path)
            if method == self.command and found:
                return what, tuple(unquote(each) for each in found.groups())
        raise No(404, 5, "Not Found")

    def _allow(self, what: str) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.argo.rights:
            raise No(401, 16, f"token not valid: {token}")
        if what not in self.argo.rights[token]:
            raise No(403, 7, f'workflows.argoproj.io is forbidden: User "clearance" cannot {what}')

    def _act(self, fault: str, when: str) -> None:
        moment, _, kind = fault.partition("-")
        if moment != when:
            return
        if kind == "500":
            raise No(500, 13, "etcdserver: request timed out")
        if kind == "late":
            self.argo.closing.wait(30)
        raise LostError

    def _create(self, *, fault: str) -> Any:
        body = self._body("WorkflowCreateRequest")
        return self._workflow(self.argo.cluster.create(body["workflow"]))

    def _get(self, name: str, *, fault: str) -> Any:
        return self._workflow(self.argo.cluster.get(name))

    def _list(self, *, fault: str) -> Any:
        found = self.argo.cluster.listed(self._params["listOptions.labelSelector"])
        answer: dict[str, Any] = {"metadata": {}, "items": found}
        self.argo.check("WorkflowList", answer)
        return lambda: self._send(answer)

    def _delete(self, name: str, *, fault: str) -> Any:
        self.argo.cluster.get(name)
        self.argo.cluster.delete(name)
        return lambda: self._send({})

    def _update(self, name: str, verb: str, *, fault: str) -> Any:
        body = self._body(REQUESTS[verb])
        cluster, selector = self.argo.cluster, body.get("nodeFieldSelector", "")
        match verb:
            case "set":
                done = cluster.set_outputs(
                    name, selector=selector, outputs=json.loads(body["outputParameters"])
                )
            case "resume":
                done = cluster.resume(name, selector=selector)
            case _:
                done = cluster.shut(name, how=verb.capitalize())
        return self._workflow(done)

    def _template(self, name: str, *, fault: str) -> Any:
        found = self.argo.cluster.template(name)
        self.argo.check("WorkflowTemplate", found)
        return lambda: self._send(found)

    def _log(self, name: str, *, fault: str) -> Any:
        lines = [{"content": each, "podName": name} for each in self.argo.cluster.logs.get(name, [])]
        for line in lines:
            self.argo.check("V1alpha1LogEntry", line)
        text = "".join(json.dumps({"result": line}) + "\n" for line in lines)
        return lambda: self._send_bytes(text.encode(), kind="application/json")

    def _artifact(self, name: str, node: str, *, fault: str) -> Any:
        self.argo.cluster.get(name)
        content = self.argo.cluster.artifacts.get((name, node))
        if content is None:
            raise No(500, 13, "artifact not found")
        return lambda: self._send_bytes(content[:-20] if fault == "cut" else content, kind="application/gzip")

    def _watch(self, *, fault: str) -> Any:
        name = self._params["listOptions.fieldSelector"].removeprefix("metadata.name=")

        def send() -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if fault == "garbage":
                self.wfile.write(b"data: [1]\n\ndata: {\n\n: a comment\n\n")
                return
            for event in self.argo.watched(name):
                self.argo.check("WorkflowWatchEvent", event)
                self.wfile.write(f"data: {json.dumps({'result': event})}\n\n".encode())
                self.wfile.flush()
                if fault == "cut":
                    return

        return send

    def _body(self, model: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.argo.check(model, body)
        return body

    def _workflow(self, workflow: dict[str, Any]) -> Any:
        self.argo.check("Workflow", workflow)
        return lambda: self._send(workflow)

    def _send(self, document: Any, *, status: int = 200) -> None:
        self._send_bytes(json.dumps(document).encode(), kind="application/json", status=status)

    def _send_bytes(self, content: bytes, *, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    """Waits at its end for no handler: one may hold a connection that nobody reads."""

    daemon_threads = True
    block_on_close = False


@contextmanager
def serve(cluster: Cluster) -> Iterator[FakeArgo]:
    """Serve on a free port of this machine."""
    argo = FakeArgo(cluster)
    handler = type("Handler", (_Handler,), {"argo": argo})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    argo.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield argo
    finally:
        argo.closing.set()
        cluster.close()
        server.shutdown()
        thread.join()
        server.server_close()
