"""A client of the Argo Server (its HTTP API of Argo Workflows 3.6 to 4.1): just what a step needs.

Every answer is one of four: done, refused (nothing happened), unreachable (nothing was sent), or unclear (it
may have happened). The last two are told apart so that nothing is ever created twice.
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

from clearance.errors import ClearanceError, SettingsError

if TYPE_CHECKING:
    import httpx

LARGEST_ANSWER = 16 * 1024 * 1024
LARGEST_LOG = 256 * 1024
FINAL_PHASES = frozenset({"Succeeded", "Failed", "Error"})
_LONGEST_MESSAGE = 200
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


class ArgoError(ClearanceError):
    """The Argo Server did not do what it was asked."""

    status = 502
    exit_code = 11


class ArgoRefusedError(ArgoError):
    """The server said no: nothing happened."""


class ArgoExistsError(ArgoRefusedError):
    """There is a workflow of that name already."""


class ArgoUnreachableError(ArgoError):
    """No connection was made: nothing was sent."""


class ArgoUnclearError(ArgoError):
    """The answer was lost, or is the server's own failure: what was asked may have happened."""


class ArgoClient:
    """Talks to one namespace of one Argo Server. The token is in a header of its requests, nowhere else.

    Raises `SettingsError` for an address that cannot be one, and for a token over a line that anybody reads.
    """

    def __init__(
        self, server: str, *, namespace: str = "argo", token: str = "", timeout_s: float = 30
    ) -> None:
        import httpx

        address = server if "://" in server else f"https://{server}"
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError("ARGO_SERVER must be an address such as argo.example.org:2746.")
        if token and parts.scheme == "http" and parts.hostname not in _LOCAL_HOSTS:
            raise SettingsError("ARGO_SERVER must be https:// where a token is sent to another machine.")
        self.namespace = namespace
        self._token = token.removeprefix("Bearer ").strip()
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        self._http = httpx.Client(base_url=address.rstrip("/"), headers=headers, timeout=timeout_s)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the client of ARGO_SERVER, ARGO_NAMESPACE (default: argo) and ARGO_TOKEN."""
        server = environment.get("ARGO_SERVER", "").strip()
        if not server:
            raise SettingsError("Set ARGO_SERVER to the address of the Argo Server, and ARGO_TOKEN.")
        namespace = environment.get("ARGO_NAMESPACE", "").strip() or "argo"
        return cls(server, namespace=namespace, token=environment.get("ARGO_TOKEN", ""))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def create(self, workflow: Mapping[str, Any]) -> dict[str, Any]:
        """Create a workflow under its own name, and return it; `ArgoExistsError` when the name is taken."""
        body = {"namespace": self.namespace, "workflow": workflow}
        return self._must("POST", self._workflows(), body=body)

    def workflow(self, name: str) -> dict[str, Any] | None:
        """Return a workflow; None when there is none of that name."""
        return self._json("GET", self._workflows(name))

    def workflows(self, selector: str) -> list[dict[str, Any]]:
        """Return the workflows with these labels."""
        found = self._must("GET", self._workflows(), params={"listOptions.labelSelector": selector})
        items: list[dict[str, Any]] = found.get("items") or []
        return items

    def template(self, name: str) -> dict[str, Any] | None:
        """Return a WorkflowTemplate; None when there is none of that name."""
        return self._json("GET", f"/api/v1/workflow-templates/{self.namespace}/{quote(name, safe='')}")

    def stop(self, name: str) -> None:
        """Ask a workflow to end; its exit handlers run."""
        self._change(name, "stop", {})

    def terminate(self, name: str) -> None:
        """End a workflow at once."""
        self._change(name, "terminate", {})

    def set_outputs(self, name: str, *, selector: str, outputs: Mapping[str, str]) -> None:
        """Give the selected suspended node its parameters."""
        self._change(name, "set", {"nodeFieldSelector": selector, "outputParameters": json.dumps(outputs)})

    def resume(self, name: str, *, selector: str) -> None:
        """Let the selected suspended node go on; without a selector all of them would."""
        self._change(name, "resume", {"nodeFieldSelector": selector})

    def artifact(self, name: str, *, node: str, artifact: str, largest: int) -> bytes:
        """Return an output file of a node as it is stored."""
        path = f"/artifact-files/{self.namespace}/workflows/{name}/{node}/outputs/{artifact}"
        with self._answer("GET", path, params=None, body=None) as answer:
            content = _read(answer, largest)
        if content is None:
            raise ArgoRefusedError("The artifact is not there.")
        return content

    def last_line(self, name: str) -> str:
        """Return the last line that the step of a workflow logged; empty when nothing can be had."""
        params = {"logOptions.container": "main", "logOptions.tailLines": "20"}
        line = ""
        try:
            with self._answer("GET", self._workflows(name, "log"), params=params, body=None) as answer:
                for event in _events(_read(answer, LARGEST_LOG) or b""):
                    line = str(event.get("content", "")).strip() or line
        except ArgoError:
            pass
        return line

    def wait_for_change(self, name: str, *, seconds: float, stop: threading.Event) -> None:
        """Return when a workflow has ended or was deleted, when the watch is lost, or after some seconds.

        It is a reason to look, and nothing more: what it says is not taken for the truth.
        """
        import httpx

        params = {"listOptions.fieldSelector": f"metadata.name={name}"}
        path, until = f"/api/v1/workflow-events/{self.namespace}", time.monotonic() + seconds
        try:
            with self._http.stream(
                "GET", path, params=params, headers={"Accept": "text/event-stream"}, timeout=seconds
            ) as answer:
                for line in answer.iter_lines() if answer.is_success else ():
                    if stop.is_set() or time.monotonic() > until or _is_an_end(line):
                        return
        except httpx.TimeoutException:
            return
        except httpx.HTTPError:
            pass
        stop.wait(max(0.0, min(seconds, until - time.monotonic())))

    def _workflows(self, *parts: str) -> str:
        return "/".join(["/api/v1/workflows", self.namespace, *(quote(part, safe="") for part in parts)])

    def _change(self, name: str, verb: str, more: Mapping[str, str]) -> None:
        body = {"name": name, "namespace": self.namespace, **more}
        self._must("PUT", self._workflows(name, verb), body=body)

    def _must(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        found = self._json(method, path, **more)
        if found is None:
            raise ArgoRefusedError("The Argo Server does not know that workflow or namespace.")
        return found

    def _json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        with self._answer(method, path, params=params, body=body) as answer:
            content = _read(answer, LARGEST_ANSWER)
        if content is None:
            return None
        try:
            found = json.loads(content)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ArgoUnclearError("The Argo Server's answer is no JSON object.")
        return found

    def _answer(
        self, method: str, path: str, *, params: Mapping[str, str] | None, body: Mapping[str, Any] | None
    ) -> "_Answer":
        return _Answer(self._http, self._token, (method, path), params=params, body=body)


class _Answer:
    """One request as a context: errors of the line inside it are translated."""

    def __init__(
        self,
        http: "httpx.Client",
        token: str,
        where: tuple[str, str],
        *,
        params: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
    ) -> None:
        self._token = token
        self._stream = http.stream(*where, params=params, json=body)

    def __enter__(self) -> "httpx.Response":
        import httpx

        try:
            answer = self._stream.__enter__()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ArgoUnreachableError("The Argo Server cannot be reached at ARGO_SERVER.") from error
        except httpx.HTTPError as error:
            raise _lost(error) from error
        try:
            self._check(answer)
        except BaseException:
            self._stream.__exit__(None, None, None)
            raise
        return answer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import httpx

        self._stream.__exit__(kind, error, trace)
        if isinstance(error, httpx.HTTPError):
            raise _lost(error) from error

    def _check(self, answer: "httpx.Response") -> None:
        status = answer.status_code
        if answer.is_success or status == 404:
            return
        if status == 409:
            raise ArgoExistsError("There is a workflow of that name already.")
        if status >= 500 or status in (408, 425, 429):
            raise ArgoUnclearError(f"The Argo Server failed (status {status}).")
        said = f"The Argo Server refused (status {status}){self._message(answer)}."
        if status in (401, 403):
            said += " Look at ARGO_TOKEN and at the rights of its account."
        raise ArgoRefusedError(said)

    def _message(self, answer: "httpx.Response") -> str:
        import httpx

        try:
            message = str(json.loads(_read(answer, LARGEST_LOG) or b"")["message"])
        except (httpx.HTTPError, ArgoError, ValueError, KeyError, TypeError):
            return ""
        if self._token:
            message = message.replace(self._token, "…")
        message = " ".join("".join(each if each.isprintable() else " " for each in message).split())
        return ": " + message[:_LONGEST_MESSAGE].rstrip(".")


def _lost(error: Exception) -> ArgoUnclearError:
    return ArgoUnclearError(f"The Argo Server's answer was lost ({type(error).__name__}).")


def _read(answer: "httpx.Response", largest: int) -> bytes | None:
    """Return a body, None for a 404."""
    if answer.status_code == 404:
        return None
    content = bytearray()
    for part in answer.iter_bytes():
        content += part
        if len(content) > largest:
            raise ArgoUnclearError("The Argo Server's answer is larger than it may be.")
    return bytes(content)


def _events(content: bytes) -> Iterator[dict[str, Any]]:
    """Return the events of a stream: one JSON object a line, alone or as the data of a server-sent event."""
    for line in content.decode(errors="replace").splitlines():
        try:
            found = json.loads(line.removeprefix("data:"))["result"]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(found, dict):
            yield found


def _is_an_end(line: str) -> bool:
    for event in _events(line.encode()):
        status = (event.get("object") or {}).get("status") or {}
        if event.get("type") == "DELETED" or status.get("phase") in FINAL_PHASES:
            return True
    return False
