"""The support agent as a whole: the offline model, the real tools and the reviewed chat, on each database."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.apps.chat.offline import OfflineChatModel
from clearance.apps.chat.support.tools import support_tools
from clearance.assembly import Clearance

GATED = ["send_email", "issue_refund", "delete_record"]


@pytest.fixture
def chat(workspace: Clearance, tmp_path: Path) -> ReviewedChat:
    """The chat of the demo."""
    tools = support_tools(tmp_path / "desk")
    agent = create_reviewed_agent(OfflineChatModel(), tools, using=workspace, tools_requiring_approval=GATED)
    return ReviewedChat(agent)


def refunds(folder: Path) -> list[tuple[Any, ...]]:
    """Read the refunds past the tools: order, cents and the key under which each was paid."""
    with closing(sqlite3.connect(folder / "desk" / "support.db")) as connection:
        return connection.execute("SELECT order_id, amount_cents, idempotency_key FROM refunds").fetchall()


def test_reading_needs_nobody(chat: ReviewedChat) -> None:
    reply = chat.send_message("t", "What is the weather in Oslo? Search orders for Ana.")
    assert reply["pending_review"] is None
    assert "Typical for Oslo" in str(reply["answer"])
    assert "SO-1001: Desk lamp" in str(reply["answer"])


def test_an_edited_refund_is_paid_once_as_edited_and_a_rejected_mail_is_not_sent(
    chat: ReviewedChat, tmp_path: Path
) -> None:
    text = (
        "Refund 20.00 for order SO-1003 because one cup broke\n"
        "Send an email to ana@example.org about Cup saying Sorry."
    )
    pending = chat.send_message("t", text)["pending_review"]
    assert pending is not None
    refund, mail = pending["action_requests"]
    less = {"name": "issue_refund", "args": {**refund["args"], "amount": "10.00"}}
    decisions = [
        {"type": "edit", "call": refund["call"], "edited_action": less},
        {"type": "reject", "call": mail["call"], "message": "too early"},
    ]
    answer = str(chat.submit_review("t", decisions)["answer"])
    assert "A person changed this call before it ran." in answer
    assert "10.00 EUR was paid back for order SO-1003" in answer
    assert "send_email was not carried out. The reason given: too early" in answer
    assert refunds(tmp_path) == [("SO-1003", 1000, refund["call"])]
    assert not (tmp_path / "desk" / "outbox").exists()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Delete customer CU-1005", "a reviewer rejected it and gave no reason"),
        ("Hapus pelanggan CU-1005", "peninjau menolaknya tanpa memberi alasan"),
        ("删除客户 CU-1005", "审核人拒绝了它，没有给出理由"),
    ],
)
def test_a_rejection_is_explained_in_the_language_of_the_request(
    chat: ReviewedChat, tmp_path: Path, text: str, answer: str
) -> None:
    chat.send_message("t", text)
    assert answer in str(chat.submit_review("t", [{"type": "reject"}])["answer"])
    [search] = [tool for tool in support_tools(tmp_path / "desk") if tool.name == "search_orders"]
    assert json.loads(search.invoke({"query": "Tom"}))["count"] == 1


def test_a_question_is_answered_over_several_messages(chat: ReviewedChat, tmp_path: Path) -> None:
    assert "Kepada siapa?" in str(chat.send_message("t", "kirim email")["answer"])
    assert "subjek" in str(chat.send_message("t", "budi@example.org")["answer"])
    assert "isi" in str(chat.send_message("t", "Payung")["answer"])
    assert chat.send_message("t", "Sudah dikirim.")["pending_review"] is not None
    answer = chat.submit_review("t", [{"type": "approve"}])["answer"]
    assert 'Email ke budi@example.org dengan subjek "Payung"' in str(answer)
    [mail] = (tmp_path / "desk" / "outbox").iterdir()
    assert b"Sudah dikirim." in mail.read_bytes()
