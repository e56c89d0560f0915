"""Who may decide what: by role, kind and standing, and never what one asked for where people are separate."""

from dataclasses import replace

import pytest

from clearance.people import Kind, Mode, Person, Role, counts_for, has_role, refusal
from clearance.policy import Threshold

ROLES = list(Role)
RITA = Person(id="u-1001", name="Rita", role=Role.REVIEWER)
OPERATOR = replace(RITA, role=Role.OPERATOR)
BOT = Person(id="a-1", name="dev-bot", role=Role.ADMIN, kind=Kind.AGENT, behind="u-1004")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("wanted", ROLES)
def test_a_role_includes_those_before_it(role: Role, wanted: Role) -> None:
    assert has_role(replace(RITA, role=role), wanted) == (ROLES.index(role) >= ROLES.index(wanted))


def test_a_new_person_may_only_look() -> None:
    assert Person(id="u", name="U").role is Role.VIEWER


@pytest.mark.parametrize(
    ("person", "requester", "mode", "said"),
    [
        (RITA, "u-1004", Mode.SEPARATE, None),
        (RITA, "u-1001", Mode.SINGLE_USER, None),
        (RITA, "u-1001", Mode.SEPARATE, "asked for this"),
        (replace(RITA, behind="u-1004"), "u-1004", Mode.SEPARATE, "asked for this"),
        (replace(RITA, role=Role.VIEWER), "u-1004", Mode.SEPARATE, "needs the role reviewer"),
        (replace(RITA, role=Role.VIEWER), "u-1001", Mode.SINGLE_USER, "needs the role reviewer"),
        (replace(RITA, disabled=True), "u-1004", Mode.SEPARATE, "is disabled"),
        (replace(RITA, disabled=True, role=Role.ADMIN), "u-1001", Mode.SINGLE_USER, "is disabled"),
        (BOT, "u-1001", Mode.SEPARATE, "Agents propose"),
        (BOT, "a-1", Mode.SINGLE_USER, "Agents propose"),
    ],
)
def test_a_person_may_decide_or_is_told_why_not(
    person: Person, requester: str, mode: Mode, said: str | None
) -> None:
    found = refusal(person, requester=requester, mode=mode)
    assert found is None if said is None else said in (found or "")


@pytest.mark.parametrize(("person", "allowed"), [(RITA, False), (OPERATOR, True)])
def test_some_questions_are_for_operators(person: Person, allowed: bool) -> None:
    found = refusal(person, requester="u-1004", mode=Mode.SEPARATE, operators_only=True)
    assert (found is None) == allowed


def test_an_operator_does_not_decide_their_own_request_either() -> None:
    assert refusal(OPERATOR, requester=OPERATOR.id, mode=Mode.SEPARATE, operators_only=True)


@pytest.mark.parametrize(
    ("group", "groups", "counts"),
    [
        (None, (), True),
        (None, ("finance",), True),
        ("finance", ("ops", "finance"), True),
        ("finance", (), False),
        ("finance", ("Finance",), False),
        ("finance", ("finance-eu",), False),
    ],
)
def test_a_decision_counts_for_everybody_s_threshold_or_that_of_its_group(
    group: str | None, groups: tuple[str, ...], counts: bool
) -> None:
    assert counts_for(replace(RITA, groups=groups), Threshold(group=group)) == counts
