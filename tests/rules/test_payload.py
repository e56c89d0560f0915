"""The question as clients get it: LangChain's words, the waiting calls, and their exact arguments."""

import json
from dataclasses import replace

from jsonschema import Draft202012Validator

from clearance.payload import RESPONSE_SCHEMA, build_review_request
from clearance.policy import DecisionType, Threshold
from clearance.review import ReviewKind
from clearance.toolcall import canonical, parse_arguments
from tests.rules.case_tools import PAY
from tests.rules.small_reviews import (
    NOW,
    PAYMENT,
    Desk,
    approve,
    call,
    edit,
    reject,
    respond,
    review,
)


def test_each_waiting_call_is_a_request_with_its_configuration() -> None:
    asked = review(
        call("c1", tool="pay", arguments=PAYMENT, decisions=(DecisionType.APPROVE, DecisionType.REJECT)),
        call("c2"),
    )
    found = build_review_request(asked, schemas={"": PAY})
    assert [item["name"] for item in found["action_requests"]] == ["pay", "send_email"]
    assert [item["call"] for item in found["action_requests"]] == ["c1", "c2"]
    assert found["review_configs"][0]["action_name"] == "pay"
    assert found["review_configs"][0]["allowed_decisions"] == ["approve", "reject"]
    assert found["review_configs"][0]["args_schema"] == PAY
    assert (found["review_id"], found["version"], found["thread_id"], found["run_id"]) == (
        "r/1/1",
        1,
        "t",
        "r",
    )
    assert found["tool_call_id"] is None
    assert found["review_url"] == "clearance show r/1/1"


def test_a_call_that_is_decided_is_no_longer_asked_about() -> None:
    place = Desk(review(call("c1"), call("c2", who=[Threshold(approve=2)])))
    place.decide([approve("c1"), approve("c2")])
    found = build_review_request(place.review, schemas={})
    assert [item["call"] for item in found["action_requests"]] == ["c2"]
    assert found["tool_call_id"] == "call_0"


def test_exact_arguments_are_there_as_values_and_as_text() -> None:
    text = '{"data":{"id":9007199254740993,"huge":1000000000000000000000000000000,"f":48250.0}}'
    asked = review(call("c1", tool="write_record", arguments=text))
    (request,) = build_review_request(asked, schemas={})["action_requests"]
    assert request["arguments"] == text
    assert canonical(request["args"]) == canonical(parse_arguments(text))


def test_the_question_is_json() -> None:
    asked = review(call("c1"), deadline=NOW)
    found = build_review_request(asked, schemas={}, address="https://clearance.example/reviews/r%2F1%2F1")
    assert json.loads(json.dumps(found)) == found
    assert found["expires_at"] == "2026-03-02T09:00:00+00:00"
    assert found["review_url"].startswith("https://")


def test_the_description_is_the_product_s_and_names_the_rules() -> None:
    (request,) = build_review_request(review(call("c1", rules=("mail",))), schemas={})["action_requests"]
    assert request["description"] == "send_email waits for a decision (mail)"


def test_what_was_wrong_with_a_condition_is_told() -> None:
    faulty = "condition large (version 1) raised KeyError"
    made = call("c1")
    asked = review(replace(made, verdict=replace(made.verdict, faults=(faulty,))))
    (request,) = build_review_request(asked, schemas={})["action_requests"]
    assert request["faults"] == [faulty]


def test_an_uncertain_outcome_is_asked_about_in_other_words() -> None:
    asked = review(call("c1", tool="pay", arguments=PAYMENT), kind=ReviewKind.OUTCOME)
    found = build_review_request(asked, schemas={})
    assert found["message"] == "pay was started and its outcome is unknown. Did it happen?"
    assert found["reason"] == "outcome"


def test_the_response_schema_takes_what_may_be_answered() -> None:
    check = Draft202012Validator(RESPONSE_SCHEMA)
    Draft202012Validator.check_schema(RESPONSE_SCHEMA)
    right = [approve("c1"), reject(message="no"), respond(), edit("c2", {"a": 1}), edit(None, "{}", name="x")]
    assert check.is_valid({"decisions": right})
    for wrong in ({}, {"type": "yes"}, {"type": "approve", "force": True}, {"type": "edit", "args": {}}):
        assert not check.is_valid({"decisions": [wrong]})
