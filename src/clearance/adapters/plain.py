"""`@cleared`: a plain Python function whose calls run only when they are cleared.

    @cleared(key=lambda order_id, **_: f"refund-{order_id}", risk="high")
    def issue_refund(order_id: str, amount: int) -> str: ...

Nothing can be parked in a plain function. So a call asks, and raises `ReviewPendingError`; whoever calls
again with the same key gets the result once the call was cleared, and the same result ever after.
"""

import asyncio
import contextvars
import functools
import inspect
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

from clearance import turns
from clearance.adapters.keyed import KeyedCall, Workspace, json_result
from clearance.adapters.signature import Signature, read_signature
from clearance.errors import CallFailedError, InvalidInputError, NotFoundError, ReviewPendingError
from clearance.policy import Policy, Risk, Rule
from clearance.policy_checks import check_policy
from clearance.program import Program
from clearance.results import Result
from clearance.review import Review
from clearance.toolcall import DEFAULT_TIMEOUT, Tool, ToolCall, canonical, parse_arguments

POLL = 0.05
MAX_ID = 200

Parameters = ParamSpec("Parameters")
Given = TypeVar("Given")
Key = Callable[..., str] | str
Invoke = Callable[[dict[str, Any], str], Result]


def cleared(
    *,
    key: Key | None = None,
    policy: Policy | None = None,
    risk: Risk | str | None = None,
    wait: float = 0.0,
    timeout: float = DEFAULT_TIMEOUT,
    idempotent: bool = False,
    name: str | None = None,
    using: Workspace | None = None,
) -> Callable[[Callable[Parameters, Given]], Callable[Parameters, Given]]:
    """Gate a plain function: a call of it runs at most once, with exactly the arguments that were cleared.

    `key` makes a call's key, unique in the workspace, from its arguments, all given by name; inside
    `with workspace.run(id):` it is the function and the number of the call instead. Without `policy` every
    call waits for a person, at `risk`. `wait` and `timeout` are in seconds: how long a call waits for people,
    and for its result before that is uncertain (an `idempotent` one is run again by who calls again). `name`
    stays when the function is moved. Without `using` it is the workspace of the innermost `run`, else the one
    that was opened last in this process, else the default one.

    Arguments and results are JSON values, and the first result is the kept one; see `read_signature` and
    `json_result`. A call raises `ReviewPendingError` while it waits, `CallRejectedError`, `CallBlockedError`,
    `CallFailedError`, `CallUncertainError`, `KeyReusedError`, `InvalidInputError`, `StoreError`.
    """

    def gate(function: Callable[Parameters, Given]) -> Callable[Parameters, Given]:
        full = _name(function, name)
        signature = read_signature(function, tool=full.rpartition(".")[2])
        tool = Tool(
            name=signature.tool,
            schema=signature.schema,
            run=_invoke(_run_to_end(function), signature),
            description=inspect.getdoc(function) or "",
            idempotent=idempotent,
            timeout=timeout,
        )
        rules = _policy(policy, risk, tool=tool.name)
        program = Program(name=f"function:{full}", tools={tool.name: tool}, policy=rules)
        return _wrapped(_Gated(function, full, signature, program, key, using), function, wait=wait)

    return gate


@contextmanager
def running(workspace: Workspace, run_id: str) -> Iterator[None]:
    """Count the calls of cleared functions in here as those of one run; see `Clearance.run`."""
    counted = _Counted(workspace, checked_id(run_id, what="The id of a run"))
    token = _current.set(counted)
    try:
        yield
    finally:
        _current.reset(token)
    counted.finish()


def opened(workspace: Workspace) -> None:
    """Note that a workspace is open in this process."""
    _open.append(workspace)


def closed(workspace: Workspace) -> None:
    """Note that a workspace is open no more."""
    _open[:] = [other for other in _open if other is not workspace]


def checked_id(found: object, *, what: str) -> str:
    """Return a key or id that stands in addresses and in other ids; `InvalidInputError` for another text."""
    if not isinstance(found, str) or not 1 <= len(found) <= MAX_ID or not found.isprintable():
        raise InvalidInputError(f"{what} must be a text of 1 to {MAX_ID} printable characters.")
    if "/" in found or " " in found:
        raise InvalidInputError(f"{what} must have neither '/' nor spaces in it.")
    return found


@dataclass
class _Counted:
    """One entry into a run: how often each function was called, and which of its calls raised."""

    workspace: Workspace
    run_id: str
    _counts: Counter[str] = field(default_factory=Counter)
    _raised: dict[tuple[str, str], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def number(self, function: str, arguments: str) -> Iterator[int]:
        """Give the next call of a function its number.

        A call that raised is the same call when it is made again: else a loop that tries again would ask
        for, and run, one call after the other.
        """
        called = (function, canonical(parse_arguments(arguments)))
        with self._lock:
            number = self._raised.pop(called, 0)
            if not number:
                self._counts[function] += 1
                number = self._counts[function]
        try:
            yield number
        except BaseException:
            with self._lock:
                self._raised[called] = number
            raise

    def finish(self) -> None:
        """End what the run has in each function, where none of its calls is open."""
        for function in self._counts:
            # A call that was refused before it was asked about has left nothing to end.
            with suppress(NotFoundError):
                turns.finish_by_caller(self.workspace.ledger, f"{self.run_id}/{function}")


_current: ContextVar[_Counted | None] = ContextVar("clearance_run", default=None)
_open: list[Workspace] = []
_opening = threading.Lock()


def last_opened() -> Workspace:
    """Return the workspace that was opened last in this process; the default one when there is none."""
    with _opening:
        if not _open:
            # By name: what builds a workspace stands above this file. It is noted in `opened`.
            import_module("clearance").open(worker=False)
        return _open[-1]


@dataclass(frozen=True)
class _Gated:
    """A function, and all that is the same for each of its calls."""

    function: Callable[..., Any]
    name: str
    signature: Signature
    program: Program
    key: Key | None
    using: Workspace | None

    @contextmanager
    def call(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, function: Callable[..., Any]
    ) -> Iterator[KeyedCall]:
        """Give one call its run and its key; `function` is how this caller has it run."""
        text = self.signature.text(args, kwargs)
        run = _current.get()
        if run is not None and (self.using is None or self.using is run.workspace):
            with run.number(self.name, text) as number, self._raising(function) as invoke:
                yield self._keyed(
                    run.workspace, f"{run.run_id}/{self.name}", str(number), text, invoke, message=number
                )
            return
        key = self._key(parse_arguments(text))
        workspace = self.using if self.using is not None else last_opened()
        with self._raising(function) as invoke:
            yield self._keyed(workspace, key, key, text, invoke)

    def _keyed(
        self,
        workspace: Workspace,
        run_id: str,
        key: str,
        text: str,
        invoke: Invoke,
        *,
        message: int | None = None,
    ) -> KeyedCall:
        [tool] = self.program.tools.values()
        return KeyedCall(
            workspace=workspace,
            program=self.program,
            tool=replace(tool, run=invoke),
            run_id=run_id,
            message=message or 1,
            call=ToolCall(key=f"{run_id}/{key}", tool=tool.name, arguments=text),
            alone=message is None,
        )

    def _key(self, arguments: dict[str, Any]) -> str:
        what = f"The key of {self.signature.tool}"
        if self.key is None:
            raise InvalidInputError(
                f"{what} is missing. Give it as key=…, or call it inside `with workspace.run(id):`."
            )
        return checked_id(self.key(**arguments) if callable(self.key) else self.key, what=what)

    @contextmanager
    def _raising(self, function: Callable[..., Any]) -> Iterator[Invoke]:
        """Run a function in its caller's context, and show the caller what it raised there."""
        raised: list[BaseException] = []
        context = contextvars.copy_context()
        # A call inside the function is none of the run's: it is not made again when this one is kept.
        context.run(_current.set, None)

        def inside(**arguments: Any) -> Any:
            try:
                return context.copy().run(functools.partial(function, **arguments))
            except BaseException as error:
                raised.append(error)
                raise

        try:
            yield _invoke(inside, self.signature)
        except CallFailedError as error:
            error.__cause__ = raised[-1] if raised else None
            raise


def _invoke(function: Callable[..., Any], signature: Signature) -> Invoke:
    return lambda arguments, _: json_result(function(**signature.complete(arguments)))


def _run_to_end(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives its result also where nobody awaits it."""
    if not inspect.iscoroutinefunction(function):
        return function
    return lambda **arguments: asyncio.run(function(**arguments))


def _wrapped(
    gated: _Gated, function: Callable[Parameters, Given], *, wait: float
) -> Callable[Parameters, Given]:
    is_async = inspect.iscoroutinefunction(function)
    wrapper = _awaiting(gated, wait=wait) if is_async else _calling(gated, wait=wait)
    functools.update_wrapper(wrapper, function)
    # The way past the gate that `update_wrapper` leaves open.
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    wrapper.__signature__ = gated.signature.parameters  # type: ignore[attr-defined]
    return cast(Callable[Parameters, Given], wrapper)


def _calling(gated: _Gated, *, wait: float) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with gated.call(args, kwargs, function=gated.function) as keyed:
            for step in _steps(keyed, wait=wait):
                if step is not None:
                    return step.value
                time.sleep(POLL)

    return call


def _awaiting(gated: _Gated, *, wait: float) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()

        def in_loop(**arguments: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(gated.function(**arguments), loop).result()

        with gated.call(args, kwargs, function=in_loop) as keyed:
            steps = _steps(keyed, wait=wait)
            while (step := await _in_thread(functools.partial(next, steps))) is None:
                await asyncio.sleep(POLL)
            return step.value

    return call


@dataclass(frozen=True)
class _Last:
    value: object


def _steps(call: KeyedCall, *, wait: float) -> Iterator[_Last | None]:
    """Bring a call to its result: None where its caller pauses, then the result."""
    until = time.monotonic() + wait
    while isinstance(found := call.advance(), Review):
        while call.is_waiting(found):
            if time.monotonic() >= until:
                raise ReviewPendingError(found.id)
            yield None
    yield _Last(call.value(found))


async def _in_thread(work: Callable[[], Given]) -> Given:
    """Work in a thread of its own: the loop's few may all be taken by calls that wait for one another."""
    pool = ThreadPoolExecutor(1)
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, work)
    finally:
        pool.shutdown(wait=False)


def _name(function: Callable[..., Any], name: str | None) -> str:
    if not inspect.isfunction(function):
        raise TypeError(f"Only functions are gated; got a {type(function).__name__}.")
    return checked_id(name or f"{function.__module__}.{function.__qualname__}", what="The name of a function")


def _policy(policy: Policy | None, risk: Risk | str | None, *, tool: str) -> Policy:
    if policy is not None and risk is not None:
        raise ValueError("Give either policy= or risk=; a rule of a policy has its own risk.")
    if policy is None:
        policy = Policy() if risk is None else Policy(rules=(Rule(tool=tool, risk=Risk(risk)),))
    check_policy(policy, [tool])
    return policy
