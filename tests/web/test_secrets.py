"""A secret in a call's arguments: the tool gets it, and no sink ever shows it."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.cli import build
from clearance.notices.targets import Allowed
from clearance.notices.webhook import Courier
from clearance.policy import Policy, Rule
from clearance.store import reviews
from tests.notices.conftest import Heard, elsewhere
from tests.scripted import ScriptedModel, calls
from tests.web.served import Served

__all__ = ["elsewhere"]

pytestmark = pytest.mark.sqlite_by_day

PASSWORD, PIN = "MARK-of-the-schema-9f", "MARK-of-the-policy-77"
MARK = "MARK"
POLICY = Policy(
    rules=(Rule("open_account", secret=("cards.pin",), summary="Open for {name} with {password}"),)
)
ARGUMENTS = {"name": "ann", "password": PASSWORD, "cards": [{"pin": PIN, "limit": 5}]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {}, "password": {"type": "string", "x-secret": True}, "cards": {}},
}


class _Card(BaseModel):
    pin: str
    limit: int


class _Account(BaseModel):
    name: str
    password: str = Field(min_length=8, json_schema_extra={"x-secret": True})
    cards: list[_Card]


@dataclass
class Bank:
    """A chat with one call that holds secrets, and what its tool was given."""

    served: Served
    review_id: str = ""
    run_id: str = ""
    given: list[dict[str, Any]] = field(default_factory=list)
    heard: Heard | None = None

    def tools(self) -> list[BaseTool]:
        """One tool, which repeats a secret in its result."""

        def open_account(**found: Any) -> str:
            """Open an account."""
            self.given.append({**found, "cards": [card.model_dump() for card in found["cards"]]})
            return f"opened with {found['password']} and {found['cards'][0].pin}"

        return [StructuredTool.from_function(open_account, args_schema=_Account)]

    def get(self, path: str) -> bytes:
        """Return what the API answers."""
        return self.served.http.get(f"/api/v1/{path}", headers=self.served.key()).content

    def decide(self, edit: Mapping[str, Any] | None = None) -> Any:
        """Approve or edit over HTTP."""
        said = {"type": "edit", "edited_action": {"args": edit}} if edit else {"type": "approve"}
        body = {"decisions": [said], "version": 1}
        path = f"/api/v1/reviews/{self.review_id}/decide"
        return self.served.http.post(path, json=body, headers=self.served.key())

    def cli(self, *words: str) -> bytes:
        """Return what a command writes."""
        workspace = self.served.workspace
        url = workspace.database.url.render_as_string(hide_password=False)
        given = ["--home", str(workspace.home), "--database", url, "--person", "ann", *words]
        done = CliRunner().invoke(build(), given, prog_name="clearance")
        assert done.exit_code == 0, done.output
        return done.output.encode()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of this process from here on."""
    kept = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    yield kept
    kept.shutdown()


@pytest.fixture
def bank(served: Served, elsewhere: Heard, caplog: pytest.LogCaptureFixture) -> Bank:
    """A chat whose call waits for people."""
    caplog.set_level(logging.DEBUG)
    bank = Bank(served, heard=elsewhere)
    model = ScriptedModel(
        [calls(("open_account", ARGUMENTS), text=f"I take {PASSWORD}."), f"Opened: {PASSWORD}."]
    )
    agent = create_reviewed_agent(model, bank.tools(), policy=POLICY, using=served.workspace)
    ReviewedChat(agent)
    body = {"text": f"Open an account with {PASSWORD}."}
    turn = served.http.post("/api/v1/threads/t1/messages", json=body, headers=served.key())
    assert turn.json()["state"] == "waiting", turn.text
    assert MARK not in turn.text
    bank.run_id, bank.review_id = turn.json()["run_id"], turn.json()["pending_review"]["review_id"]
    return bank


Sink = Callable[[Bank], bytes]
SINKS: dict[str, Sink] = {
    "reviews": lambda bank: bank.get("reviews"),
    "ended reviews": lambda bank: bank.get("reviews?status=settled"),
    "a review": lambda bank: bank.get(f"reviews/{bank.review_id}"),
    "a run": lambda bank: bank.get(f"runs/{bank.run_id}"),
    "runs": lambda bank: bank.get("runs"),
    "a thread": lambda bank: bank.get("threads/t1"),
    "messages": lambda bank: bank.get("threads/t1/messages"),
    "the stream of a run": lambda bank: bank.get(f"runs/{bank.run_id}/stream"),
    "the trail": lambda bank: bank.get("audit"),
    "the export": lambda bank: bank.get("audit/export"),
    "threads as a front end lists them": lambda bank: (
        bank.served.http.post("/langgraph/threads/search", json={}, headers=bank.served.key()).content
    ),
    "the state for a front end": lambda bank: (
        bank.served.http.get("/langgraph/threads/t1/state", headers=bank.served.key()).content
    ),
    "metrics": lambda bank: bank.served.http.get("/metrics", headers=bank.served.key()).content,
    "clearance inbox": lambda bank: bank.cli("inbox"),
    "clearance inbox --json": lambda bank: bank.cli("inbox", "--json"),
    "clearance show": lambda bank: bank.cli("show", bank.review_id),
    "clearance show --json": lambda bank: bank.cli("show", bank.review_id, "--json"),
    "clearance runs": lambda bank: bank.cli("runs"),
    "clearance runs --json": lambda bank: bank.cli("runs", "--json"),
    "clearance audit export": lambda bank: bank.cli("audit", "export"),
}


@pytest.fixture
def told(bank: Bank) -> list[tuple[str, str, bytes]]:
    """What every sink says: while the call waits, and after an edit beside the secrets let it run."""
    told = [("waiting", name, sink(bank)) for name, sink in SINKS.items()]
    shown = json.loads(bank.get(f"reviews/{bank.review_id}"))["calls"][0]["args"]
    edited = bank.decide({**shown, "name": "bob"})
    assert edited.status_code == 200, edited.text
    told.append(("deciding", "the answer", edited.content))
    run = bank.get(f"runs/{bank.run_id}/stream")
    return [*told, ("done", "the stream", run), *(("done", name, sink(bank)) for name, sink in SINKS.items())]


def test_no_sink_shows_a_secret_and_the_tool_gets_it(
    bank: Bank,
    told: list[tuple[str, str, bytes]],
    spans: InMemorySpanExporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert bank.given == [{**ARGUMENTS, "name": "bob"}]
    assert [(when, name) for when, name, text in told if MARK.encode() in text] == []
    assert MARK not in caplog.text
    assert not any(MARK in span.to_json() for span in spans.get_finished_spans())
    assert any(b"(secret, 21 characters)" in text for _, name, text in told if name == "clearance show")


class _Vault(BaseModel):
    name: str
    word: str = Field(json_schema_extra={"x-secret": True})
    code: int = Field(json_schema_extra={"x-secret": True})


VAULT = {"name": "ann", "word": f'{MARK}"with a quote', "code": 90417735}
IN_BLOCKS: list[str | dict[str, Any]] = [
    {"type": "text", "text": "I do."},
    {"type": "tool_use", "id": "call_0", "name": "open_vault", "input": VAULT},
]


@pytest.mark.parametrize("content", ["I do.", IN_BLOCKS], ids=["text", "blocks"])
@pytest.mark.parametrize("edit", [{"name": "bob"}, {"word": f"{MARK} of an edit"}, {"code": 81730629}])
def test_what_is_said_of_an_edit_shows_no_secret_of_any_kind(
    served: Served, content: Any, edit: dict[str, Any]
) -> None:
    given: list[dict[str, Any]] = []

    def open_vault(**found: Any) -> str:
        """Open a vault."""
        given.append(found)
        return "opened"

    said = AIMessage(content, tool_calls=[{"name": "open_vault", "args": VAULT, "id": "call_0"}])
    tool = StructuredTool.from_function(open_vault, args_schema=_Vault)
    policy = Policy(rules=(Rule("open_vault"),))
    agent = create_reviewed_agent(
        ScriptedModel([said, "Opened."]), [tool], policy=policy, using=served.workspace
    )
    ReviewedChat(agent)
    turn = served.http.post("/api/v1/threads/t1/messages", json={"text": "Open."}, headers=served.key())
    bank = Bank(served, review_id=turn.json()["pending_review"]["review_id"], run_id=turn.json()["run_id"])
    shown = json.loads(bank.get(f"reviews/{bank.review_id}"))["calls"][0]["args"]
    assert bank.decide({**shown, **edit}).status_code == 200
    bank.get(f"runs/{bank.run_id}/stream")
    assert given == [{**VAULT, **edit}]
    secrets = [MARK, str(VAULT["code"]), str(edit.get("code", MARK))]
    told = [(name, sink(bank).decode()) for name, sink in SINKS.items()]
    assert [(name, each) for name, text in told for each in secrets if each in text] == []
    [answer] = [
        each for each in json.loads(bank.get("threads/t1/messages"))["messages"] if each["tool_call_id"]
    ]
    assert "A reviewer changed this call. What ran: open_vault" in answer["text"]


def test_a_secret_that_was_edited_away_is_hidden_where_it_was_repeated(bank: Bank) -> None:
    shown = json.loads(bank.get(f"reviews/{bank.review_id}"))["calls"][0]["args"]
    assert bank.decide({**shown, "password": f"{MARK}-of-an-edit"}).status_code == 200
    bank.get(f"runs/{bank.run_id}/stream")
    assert [name for name, sink in SINKS.items() if MARK.encode() in sink(bank)] == []


def test_what_was_secret_when_people_were_asked_stays_so_when_nothing_is_any_more(bank: Bank) -> None:
    shown = json.loads(bank.get(f"reviews/{bank.review_id}"))["calls"][0]["args"]
    assert bank.decide({**shown, "password": f'{MARK}-"quoted"'}).status_code == 200
    bank.get(f"runs/{bank.run_id}/stream")

    def open_account(name: str) -> str:
        """Open an account."""
        return name

    tools = [StructuredTool.from_function(open_account)]
    create_reviewed_agent(ScriptedModel([]), tools, policy=Policy(), using=bank.served.workspace)
    assert [name for name, sink in SINKS.items() if MARK.encode() in sink(bank)] == []


def test_a_secret_that_is_called_as_a_part_of_a_call_breaks_no_list(served: Served) -> None:
    served.add_agent("bot")
    schema = {"type": "object", "properties": {"pin": {"type": "string", "x-secret": True}}}
    body = {"key": "k-tool", "tool": "a-tool", "arguments": {"pin": "tool"}, "schema": schema}
    answer = served.http.post("/api/v1/calls", json=body, headers=served.key("bot"))
    assert answer.status_code == 200
    for path in ("runs", "reviews"):
        found = served.http.get(f"/api/v1/{path}", headers=served.key())
        assert found.status_code == 200
    [run] = served.http.get("/api/v1/runs", headers=served.key()).json()["runs"]
    assert json.loads(run["message"]) == {
        "key": "k-•••• (secret, 4 characters)",
        "tool": "a-•••• (secret, 4 characters)",
    }


def test_who_decides_sees_that_there_is_a_secret_and_how_long_it_is(bank: Bank) -> None:
    call = json.loads(bank.get(f"reviews/{bank.review_id}"))["calls"][0]
    assert call["secret"] == ["/cards/0/pin", "/password"]
    assert (
        call["args"]
        == json.loads(call["arguments"])
        == {
            "name": "ann",
            "password": "•••• (secret, 21 characters)",
            "cards": [{"pin": "•••• (secret, 21 characters)", "limit": 5}],
        }
    )
    assert call["summary"] == 'Open for "ann" with "•••• (secret, 21 characters)"'


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({**ARGUMENTS, "name": "•••• (secret, 21 characters)"}, "is the mask of a secret"),
        ({**ARGUMENTS, "password": "•••• (secret, 20 characters)"}, "is the mask of a secret"),
        ({**ARGUMENTS, "password": MARK}, "must have at least 8 characters"),
        ({**ARGUMENTS, "cards": MARK}, "must be array"),
    ],
)
def test_a_refused_edit_says_why_and_not_what(bank: Bank, edit: dict[str, Any], said: str) -> None:
    refused = bank.decide(edit)
    assert refused.status_code == 422
    assert said in refused.text
    assert MARK not in refused.text
    assert bank.given == []


def test_a_secret_is_covered_by_the_fingerprint(bank: Bank) -> None:
    with bank.served.workspace.database.read() as tx:
        (call,) = reviews.review(tx, bank.review_id).calls
    before = call.fingerprint
    assert json.loads(call.arguments) == ARGUMENTS
    answer = bank.decide({**ARGUMENTS, "password": f"{PASSWORD}!"}).json()
    assert answer["calls"][0]["fingerprint"] != before


def test_what_an_agent_elsewhere_proposes_is_masked_until_it_takes_it(served: Served) -> None:
    key = served.key(served.add_agent("bot"))
    proposal = {
        "key": "k1",
        "tool": "open_account",
        "arguments": ARGUMENTS,
        "schema": {**SCHEMA, "properties": {**SCHEMA["properties"], "cards": {"x-secret": True}}},
    }
    proposed = served.http.post("/api/v1/calls", json=proposal, headers=key)
    looked = served.http.get("/api/v1/calls/k1", headers=key)
    review_id = proposed.json()["review_id"]
    found = [proposed.text, looked.text]
    for path in (f"reviews/{review_id}", "reviews", "runs", "audit"):
        found.append(served.http.get(f"/api/v1/{path}", headers=served.key()).text)
    decided = served.http.post(
        f"/api/v1/reviews/{review_id}/decide",
        json={"decisions": [{"type": "approve"}], "version": 1},
        headers=served.key(),
    )
    assert decided.status_code == 200, decided.text
    taken = served.http.post("/api/v1/calls/k1/take", headers=key)
    assert taken.json()["args"] == ARGUMENTS
    outcome = {"attempt": 1, "ok": True, "result": f"opened with {PASSWORD}"}
    reported = served.http.post("/api/v1/calls/k1/outcome", json=outcome, headers=key)
    assert reported.status_code == 200, reported.text
    found += [decided.text, reported.text, served.http.get("/api/v1/calls/k1", headers=key).text]
    assert [text for text in found if MARK in text] == []
    assert "opened with ••••" in reported.json()["result"]


def test_a_message_to_a_webhook_holds_no_arguments(served: Served, elsewhere: Heard) -> None:
    key = served.key(served.add_agent("bot"))
    served.workspace.worker.courier = courier = Courier(
        served.workspace.database, Allowed.read("127.0.0.0/8")
    )
    proposal = {"key": "k1", "tool": "t", "arguments": ARGUMENTS, "schema": SCHEMA}
    proposed = served.http.post("/api/v1/calls", json={**proposal, "webhook": elsewhere.address}, headers=key)
    assert proposed.status_code == 200, proposed.text
    path = f"/api/v1/reviews/{proposed.json()['review_id']}/decide"
    body = {"decisions": [{"type": "reject"}], "version": 1}
    assert served.http.post(path, json=body, headers=served.key()).status_code == 200
    while not elsewhere.messages:
        courier.turn()
    assert MARK not in repr(elsewhere.messages)
