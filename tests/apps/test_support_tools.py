"""The support desk's tools do what they say, once, on this machine, and nothing when they refuse."""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from clearance.apps.chat.support.errors import SupportError
from clearance.apps.chat.support.money import from_cents, to_cents
from clearance.apps.chat.support.tools import support_tools

MAIL = {"to": "ana@example.org", "subject": "Your lamp", "body": "It is on its way."}


@pytest.fixture
def desk(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Call a tool of a desk of its own by name, and return the object in its result."""
    return lambda name, /, **arguments: called(support_tools(tmp_path), name, **arguments)


def called(tools: list[BaseTool], name: str, *, key: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a tool as an agent does, under a key where one is given, and return the object in its text."""
    tool = next(tool for tool in tools if tool.name == name)
    config = RunnableConfig(configurable={"idempotency_key": key} if key else {})
    result: dict[str, Any] = json.loads(tool.invoke(arguments, config))
    return result


def paid_back(folder: Path) -> list[tuple[Any, ...]]:
    """Read the refunds past the tools."""
    with closing(sqlite3.connect(folder / "support.db")) as connection:
        return connection.execute("SELECT order_id, amount_cents FROM refunds").fetchall()


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait for the first line that a process writes."""
    assert process.stdout is not None
    return process.stdout.readline()


# What models, people and the gate are told about the tools


def test_the_five_tools_say_which_of_them_only_read(tmp_path: Path) -> None:
    told = {tool.name: (tool.metadata or {})["clearance"] for tool in support_tools(tmp_path)}
    assert told == {
        "get_weather": {"read_only": True},
        "search_orders": {"read_only": True},
        "send_email": {},
        "issue_refund": {"idempotent": True},
        "delete_record": {"idempotent": True},
    }


def test_each_schema_is_strict_and_described(tmp_path: Path) -> None:
    for tool in support_tools(tmp_path):
        assert isinstance(tool.args_schema, type)
        assert issubclass(tool.args_schema, BaseModel)
        schema = tool.args_schema.model_json_schema()
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
        for part in schema["properties"].values():
            assert part["description"]
            assert part["examples"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_weather", {"city": "Jakarta", "unit": "F"}),
        ("get_weather", {"city": " "}),
        ("search_orders", {"query": 7}),
        ("send_email", {**MAIL, "to": "x@evil.example,ana@example.org"}),
        ("send_email", {**MAIL, "to": "Ana <ana@example.org>"}),
        ("send_email", {**MAIL, "to": "ana@example.org\n"}),
        ("send_email", {**MAIL, "subject": "a\nBcc: x@evil.example"}),
        ("send_email", {**MAIL, "subject": "a\u2028b"}),
        ("send_email", {**MAIL, "body": ""}),
        ("issue_refund", {"order_id": "SO-1003", "amount": "5", "reason": "r"}),
        ("issue_refund", {"order_id": "SO-1003", "amount": "0.00", "reason": "r"}),
        ("issue_refund", {"order_id": "SO-1003", "amount": "05.00", "reason": "r"}),
        ("issue_refund", {"order_id": "SO-1003", "amount": "-5.00", "reason": "r"}),
        ("issue_refund", {"order_id": "SO-1003", "amount": 5.0, "reason": "r"}),
        ("delete_record", {"table": "refunds", "record_id": "SO-1003"}),
        ("delete_record", {"table": "orders", "record_id": "SO-1003; --"}),
    ],
)
def test_arguments_that_break_the_schema_do_nothing(
    tmp_path: Path, desk: Callable[..., dict[str, Any]], name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        desk(name, **arguments)
    assert not list(tmp_path.iterdir())


# Weather and orders


def test_the_weather_is_the_same_each_time_and_says_that_it_is_not_live(
    desk: Callable[..., dict[str, Any]],
) -> None:
    jakarta = desk("get_weather", city="jakarta")
    assert jakarta == desk("get_weather", city="jakarta")
    assert jakarta["city"] == desk("get_weather", city="雅加达")["city"] == "Jakarta"
    assert "not a live reading" in jakarta["basis"]
    assert jakarta["january_low"] < jakarta["january_high"]


def test_an_unknown_city_is_answered_with_the_known_ones(
    desk: Callable[..., dict[str, Any]],
) -> None:
    with pytest.raises(SupportError, match=r"Known: Bandung, .*Tokyo"):
        desk("get_weather", city="Atlantis")


@pytest.mark.parametrize(
    ("query", "orders"),
    [
        ("so-1003", ["SO-1003"]),
        ("Ana kovač", ["SO-1001", "SO-1004"]),
        ("budi@example.org umbrella", ["SO-1010"]),
        ("陈静", ["SO-1003", "SO-1011"]),
        ("%", []),
        ("' OR 1=1 --", []),
    ],
)
def test_orders_are_found_by_all_the_words_of_a_query(
    desk: Callable[..., dict[str, Any]], query: str, orders: list[str]
) -> None:
    found = desk("search_orders", query=query)
    assert [order["order_id"] for order in found["orders"]] == orders
    assert found["count"] == len(orders)


# Refunds


def test_a_refund_is_paid_exactly_and_shown_with_the_order(
    tmp_path: Path, desk: Callable[..., dict[str, Any]]
) -> None:
    refund = desk("issue_refund", order_id="SO-1003", amount="49.90", reason="One cup broke.")
    assert (refund["amount"], refund["refunded_in_all"]) == ("49.90", "49.90")
    assert paid_back(tmp_path) == [("SO-1003", 4990)]
    assert desk("search_orders", query="SO-1003")["orders"][0]["refunded"] == "49.90"


@pytest.mark.parametrize(
    ("order_id", "amount", "message"),
    [
        ("SO-9999", "1.00", "There is no order SO-9999"),
        ("SO-1009", "12.51", "At most 12.50 EUR is left"),
        ("SO-1012", "0.01", "At most 0.00 EUR is left"),
    ],
)
def test_a_refund_of_what_was_not_paid_is_refused(
    tmp_path: Path,
    desk: Callable[..., dict[str, Any]],
    order_id: str,
    amount: str,
    message: str,
) -> None:
    with pytest.raises(SupportError, match=message):
        desk("issue_refund", order_id=order_id, amount=amount, reason="r")
    assert paid_back(tmp_path) == []


def test_several_refunds_together_never_exceed_what_was_paid(
    desk: Callable[..., dict[str, Any]],
) -> None:
    desk("issue_refund", order_id="SO-1009", amount="12.00", reason="r")
    with pytest.raises(SupportError, match=r"At most 0\.50 EUR is left"):
        desk("issue_refund", order_id="SO-1009", amount="0.51", reason="r")
    desk("issue_refund", order_id="SO-1009", amount="0.50", reason="r")


def test_a_refund_under_a_used_key_is_not_paid_again(
    tmp_path: Path, desk: Callable[..., dict[str, Any]]
) -> None:
    call = {"order_id": "SO-1003", "amount": "5.00", "reason": "r", "key": "run/1/0"}
    assert desk("issue_refund", **call) == desk("issue_refund", **call)
    with pytest.raises(SupportError, match="another refund"):
        desk("issue_refund", **{**call, "amount": "6.00"})
    assert paid_back(tmp_path) == [("SO-1003", 500)]


def test_threads_with_one_key_pay_one_refund(tmp_path: Path) -> None:
    call = {"order_id": "SO-1003", "amount": "5.00", "reason": "r", "key": "run/1/0"}
    tools = support_tools(tmp_path)
    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(lambda _: called(tools, "issue_refund", **call), range(24)))
    assert paid_back(tmp_path) == [("SO-1003", 500)]
    assert all(result == results[0] for result in results)


def test_processes_that_start_together_on_a_new_folder_never_pay_more_than_was_paid(
    tmp_path: Path,
) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from clearance.apps.chat.support.errors import SupportError
        from clearance.apps.chat.support.orders import refund
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(8):
            try:
                refund(Path(sys.argv[1]), "SO-1009", amount="1.00", reason="r")
            except SupportError as error:
                assert "is left" in str(error), error
    """
    command = [sys.executable, "-c", program, str(tmp_path)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [first_line(worker) for worker in workers] == ["ready\n"] * 2
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=60)
    assert [worker.returncode for worker in workers] == [0, 0]
    assert paid_back(tmp_path) == [("SO-1009", 100)] * 12


@pytest.mark.parametrize("attempt", range(5))
def test_threads_that_open_a_new_desk_together_all_find_its_rows(tmp_path: Path, attempt: int) -> None:
    folder = tmp_path / str(attempt)
    start = threading.Barrier(8)

    def look(_: int) -> int:
        start.wait()
        count: int = called(support_tools(folder), "search_orders", query="SO-")["count"]
        return count

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(look, range(8))) == [12] * 8


@given(st.integers(min_value=1, max_value=999_999_999))
def test_an_amount_is_read_as_it_is_written(cents: int) -> None:
    assert to_cents(from_cents(cents)) == cents


@pytest.mark.parametrize("text", ["1", "1.0", "1.000", "1,00", " 1.00", "1.00\n", "1e2", "٣.00", ""])
def test_any_other_spelling_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match="two decimals"):
        to_cents(text)


# Deleting


def test_a_deleted_customer_is_gone_and_the_orders_stay(
    desk: Callable[..., dict[str, Any]],
) -> None:
    gone = desk("delete_record", table="customers", record_id="CU-1001")
    assert gone == {"table": "customers", "record_id": "CU-1001", "orders_kept": 2}
    assert desk("search_orders", query="Ana")["count"] == 0
    assert desk("search_orders", query="SO-1001")["orders"][0]["customer"] is None


def test_a_deletion_under_a_used_key_is_answered_again(
    desk: Callable[..., dict[str, Any]],
) -> None:
    call = {"table": "orders", "record_id": "SO-1001", "key": "run/1/0"}
    assert desk("delete_record", **call) == desk("delete_record", **call)
    with pytest.raises(SupportError, match="another deletion"):
        desk("delete_record", **{**call, "record_id": "SO-1002"})
    assert desk("search_orders", query="SO-")["count"] == 11


@pytest.mark.parametrize(
    ("table", "record_id"), [("customers", "CU-9999"), ("customers", "SO-1001"), ("orders", "CU-1001")]
)
def test_deleting_an_unknown_record_is_refused(
    desk: Callable[..., dict[str, Any]], table: str, record_id: str
) -> None:
    with pytest.raises(SupportError, match=f"There is no record {record_id} in {table}"):
        desk("delete_record", table=table, record_id=record_id)


def test_an_order_with_a_refund_is_kept(desk: Callable[..., dict[str, Any]]) -> None:
    desk("issue_refund", order_id="SO-1003", amount="1.00", reason="r")
    with pytest.raises(SupportError, match="must be kept"):
        desk("delete_record", table="orders", record_id="SO-1003")
    assert desk("search_orders", query="SO-1003")["count"] == 1


def test_deleted_rows_do_not_come_back_with_the_next_process(
    tmp_path: Path, desk: Callable[..., dict[str, Any]]
) -> None:
    desk("delete_record", table="orders", record_id="SO-1001")
    assert called(support_tools(tmp_path), "search_orders", query="SO-")["count"] == 11


def test_a_file_that_is_no_database_is_named_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "support.db").write_text("no database " * 100)
    with pytest.raises(SupportError, match="database cannot be used now"):
        called(support_tools(tmp_path), "search_orders", query="SO-")
