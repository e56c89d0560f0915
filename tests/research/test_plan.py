"""A plan is its canonical text: the same value has the same hash, another value another one."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearance.apps.research.errors import PlanError
from clearance.apps.research.plan import Plan, Subject, Wishes, plan_id, plan_of, read_plan, wishes_of
from clearance.apps.research.plan_diff import diff
from clearance.toolcall import canonical
from tests.research.plans import plan

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
# Plans are large: a quarter of the usual number of them finds what there is to find.
FEWER = settings(max_examples=25)
PARAMS = st.dictionaries(
    TEXTS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
AMOUNTS = st.integers(0, 10**6) | st.decimals(0, 1000, places=3, allow_nan=False).map(str)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans that fit the schema, more varied than any planner makes them."""
    base = plan("BRCA1")
    steps = draw(
        st.lists(st.sampled_from(base.steps), min_size=1, max_size=6, unique_by=lambda step: step.id)
    )
    changed = tuple(
        replace(
            step,
            params=draw(PARAMS),
            rationale=draw(TEXTS),
            estimate=replace(step.estimate, cpu_s=draw(AMOUNTS), mem_mb=draw(st.integers(1, 4000))),
        )
        for step in steps
    )
    return replace(
        base,
        steps=changed,
        objective=draw(TEXTS),
        version=draw(st.integers(1, 9)),
        parent_sha256=draw(st.none() | st.just("0" * 64)),
        inputs=tuple(draw(st.lists(st.sampled_from(base.inputs), unique=True))),
        subject=Subject("KRAS", "Homo sapiens", 9606, draw(st.dictionaries(TEXTS, TEXTS, max_size=3))),
        warnings=tuple(draw(st.lists(TEXTS, max_size=3))),
        wishes=draw(st.none() | st.builds(Wishes, comment=st.none() | TEXTS, exclude=st.tuples(TEXTS))),
    )


@FEWER
@given(plans())
def test_a_plan_is_read_back_as_the_same_value_with_the_same_hash(value: Plan) -> None:
    again = read_plan(value.text)
    assert again == value
    assert again.text == value.text
    assert again.sha256 == hashlib.sha256(value.text.encode()).hexdigest()


@FEWER
@given(plans(), st.randoms())
def test_the_order_of_keys_and_white_space_do_not_matter(value: Plan, random: Any) -> None:
    def shuffled(item: Any) -> Any:
        if isinstance(item, dict):
            names = list(item)
            random.shuffle(names)
            return {name: shuffled(item[name]) for name in names}
        return [shuffled(each) for each in item] if isinstance(item, list) else item

    text = json.dumps(shuffled(value.document()), indent=random.choice([None, 2]))
    assert read_plan(text.encode()).sha256 == value.sha256


@FEWER
@given(plans(), plans())
def test_two_plans_have_one_hash_only_when_they_are_equal(one: Plan, other: Plan) -> None:
    assert (one.sha256 == other.sha256) == (canonical(one.document()) == canonical(other.document()))


@FEWER
@given(plans(), plans())
def test_a_difference_names_every_step_that_came_went_or_changed(old: Plan, new: Plan) -> None:
    found = diff(old, new)
    before, after = {step.id: step for step in old.steps}, {step.id: step for step in new.steps}
    assert {step.id for step in found.added} == set(after) - set(before)
    assert {step.id for step in found.removed} == set(before) - set(after)
    for change in found.changed:
        names = [name.removeprefix("params.") for name in (each.name for each in change.changes)]
        assert names
        assert before[change.id] != after[change.id]
    unchanged = set(before) & set(after) - {change.id for change in found.changed}
    for step_id in unchanged:
        assert canonical(dict(before[step_id].params)) == canonical(dict(after[step_id].params))


@FEWER
@given(plans())
def test_a_plan_does_not_differ_from_itself(value: Plan) -> None:
    assert diff(value, value).empty
    assert diff(value, value).lines() == ["Nothing differs."]


@FEWER
@given(plans(), plans())
def test_a_difference_turned_round_swaps_old_and_new(old: Plan, new: Plan) -> None:
    there, back = diff(old, new), diff(new, old)
    assert [step.id for step in there.added] == [step.id for step in back.removed]
    assert {(each.name, canonical(each.old)) for each in there.totals} == {
        (each.name, canonical(each.new)) for each in back.totals
    }


CHANGES: dict[str, Callable[[Plan], Plan]] = {
    "an input's bytes": lambda p: replace(p, inputs=(replace(p.inputs[0], sha256="0" * 64), *p.inputs[1:])),
    "a template": lambda p: _with_step(p, template=replace(p.steps[0].template, sha256="0" * 64)),
    "a parameter": lambda p: _with_step(p, params={**p.steps[0].params, "min_aa": 101}),
    "true for 1": lambda p: _with_step(p, params={**p.steps[0].params, "open_ends": 1}),
    "an executor": lambda p: _with_step(p, executor="argo"),
    "a needed step": lambda p: _with_step(p, needs=("other",)),
    "the budget": lambda p: replace(p, budget=replace(p.budget, max_cost="1.0")),
    "the author": lambda p: replace(p, created_by=replace(p.created_by, name="someone else")),
    "the parent": lambda p: replace(p, parent_sha256="0" * 64),
    "the order of steps": lambda p: replace(p, steps=p.steps[::-1]),
}


def _with_step(value: Plan, **facts: Any) -> Plan:
    return replace(value, steps=(replace(value.steps[0], **facts), *value.steps[1:]))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_whatever_changes_changes_the_hash(change: Callable[[Plan], Plan]) -> None:
    assert change(plan()).sha256 != plan().sha256


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.pop(name)


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another schema": (lambda d: d.update(schema="research_plan.v2"), "/schema"),
    "no steps": (lambda d: d.update(steps=[]), "/steps"),
    "no parent": (_without("parent_sha256"), "/parent_sha256"),
    "an unknown key": (lambda d: d.update(approved=True), "/approved"),
    "code in a step": (lambda d: d["steps"][0].update(command="rm"), "/steps/0/command"),
    "code in a template": (
        lambda d: d["steps"][0]["template"].update(source="x"),
        "/steps/0/template/source",
    ),
    "a float cost": (lambda d: d["steps"][0]["estimate"].update(cpu_s=0.5), "/steps/0/estimate/cpu_s"),
    "money as a number": (lambda d: d["budget"].update(max_cost=1), "/budget/max_cost"),
    "negative money": (lambda d: d["budget"].update(max_cost="-1"), "/budget/max_cost"),
    "a path as input": (lambda d: d["inputs"][0].update(uri="../../etc/passwd"), "/inputs/0/uri"),
    "a step id in capitals": (lambda d: d["steps"][0].update(id="Orf"), "/steps/0/id"),
    "a bare citation": (lambda d: d.update(evidence=[{"ref": "Miki 1994"}]), "/evidence/0/ref"),
}


@pytest.mark.parametrize(("breaks", "pointer"), BROKEN.values(), ids=BROKEN.keys())
def test_a_document_that_breaks_the_schema_is_refused_with_its_place(
    breaks: Callable[[dict[str, Any]], Any], pointer: str
) -> None:
    document = plan().document()
    breaks(document)
    with pytest.raises(PlanError) as raised:
        plan_of(document)
    assert pointer in [fault.pointer for fault in raised.value.faults]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff", b'{"a": NaN}', b'{"a": 1, "a": 1}', b'{"a": "' + b"x" * 2**20 + b'"}'],
)
def test_text_that_is_no_plan_is_refused(content: bytes) -> None:
    with pytest.raises(PlanError):
        read_plan(content)


def test_all_versions_of_a_run_have_one_id() -> None:
    assert plan_id("r1") == plan_id("r1") == plan().plan_id
    assert plan_id("r1") != plan_id("r2")


def test_totals_are_exact() -> None:
    total = plan().total
    assert total.cost == sum(Decimal(step.estimate.cost) for step in plan().steps)
    assert total.mem_mb == 250
    assert plan().risk == "low"
    assert plan().effects == ("compute",)


def test_the_summary_names_steps_cost_and_risk() -> None:
    value = plan()
    assert value.summary.startswith("KRAS: 7 steps (orf-scan, ")
    assert value.summary.endswith(f"{value.total.cost} EUR, risk low")


def test_a_difference_reads_as_lines() -> None:
    old, new = plan(), _with_step(plan(), params={**plan().steps[0].params, "min_aa": 30})
    assert diff(old, new).lines() == ["~ orf-scan: params.min_aa: 100 → 30"]
    document = diff(old, replace(new, steps=new.steps[1:])).document()
    assert document["removed"] == ["orf-scan"]
    json.dumps(document)


def test_wishes_are_read_from_what_a_form_gives() -> None:
    document = {
        "comment": "x",
        "exclude": ["orf-scan"],
        "max_cost": "0.5",
        "params": {"translate": {"frame": 2}},
    }
    assert wishes_of(document) == Wishes(
        comment="x", exclude=("orf-scan",), max_cost="0.5", params={"translate": {"frame": 2}}
    )
    assert wishes_of({}) == Wishes()


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"exclude": "orf-scan"}, "/exclude"),
        ({"max_cost": 0.5}, "/max_cost"),
        ({"max_cost": "-1"}, "/max_cost"),
        ({"params": {"orf-scan": 3}}, "/params/orf-scan"),
        ({"approved": True}, "/approved"),
        ({"comment": "x" * 4001}, "/comment"),
    ],
)
def test_wishes_of_another_shape_are_refused_with_their_place(document: dict[str, Any], pointer: str) -> None:
    with pytest.raises(PlanError) as raised:
        wishes_of(document)
    assert [fault.pointer for fault in raised.value.faults] == [pointer]
