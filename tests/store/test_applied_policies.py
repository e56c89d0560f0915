"""Policies from files, on both databases: active for every process, and until a person changes them."""

from typing import Any

import pytest
from sqlalchemy import select

from clearance import applying
from clearance.errors import ForbiddenError, NotFoundError, PolicyError
from clearance.outcome import CallState, Outcome
from clearance.policy import Effect, Policy, Rule, judge, predicate, requiring_approval
from clearance.reading import summary_of
from clearance.review import Answer, ReviewStatus
from clearance.simulation import Change, simulate
from clearance.store import audit, policies
from clearance.store import tables as t
from clearance.store.policies import Source
from tests.rules.small_reviews import approve, edit
from tests.store.bench import EVER, GATED, MAIL, PAYMENT, PROGRAM, REQUESTER, Bench, states

OUTSIDE = """\
default = "allow"
[[rule]]
name = "mail to outside"
tool = "send_email"
when = 'domain(args.to) != "corp.example"'
"""
OUT = {**MAIL, "to": "eve@evil.example"}


def apply(bench: Bench, text: str, *, by: str = REQUESTER) -> Policy:
    """Apply a file to the bench's program."""
    policy, _ = applying.apply(bench.c.database, text, program=PROGRAM, by=by)
    return policy


def active(bench: Bench) -> Policy:
    """Return the active policy as a process that brings none reads it."""
    with bench.c.database.read() as tx:
        return policies.active(tx, PROGRAM)


def sources(bench: Bench) -> list[Source]:
    """Return where the policies of the program came from, the newest first."""
    with bench.c.database.read() as tx:
        return [found.source for found in policies.history(tx, PROGRAM)]


def test_an_applied_policy_counts_from_the_next_call_on(bench: Bench) -> None:
    apply(bench, OUTSIDE)
    assert bench.ask(bench.propose(("send_email", MAIL), ("pay", PAYMENT), run_id="r1")) is None
    _, review = bench.asked(("send_email", OUT), run_id="r2")
    assert review.calls[0].verdict.rules == ("mail to outside",)
    assert review.calls[0].verdict.faults == ()


def test_an_applied_policy_stays_when_the_program_starts_again(bench: Bench) -> None:
    policy = apply(bench, OUTSIDE)
    bench.register()
    bench.register(requiring_approval(["pay"]))
    assert active(bench) == policy
    assert sources(bench) == [Source.APPLIED, Source.CODE]


def test_an_applied_policy_that_says_what_the_code_says_stays_too(bench: Bench) -> None:
    text = 'default = "allow"\n' + "".join(f'[[rule]]\ntool = "{name}"\n' for name in sorted(GATED))
    assert apply(bench, text).version == requiring_approval(GATED).version
    bench.register(requiring_approval(["pay"]))
    assert active(bench) == requiring_approval(GATED)


def test_applying_the_same_again_changes_nothing(bench: Bench) -> None:
    assert applying.apply(bench.c.database, OUTSIDE, program=PROGRAM, by=REQUESTER)[1]
    assert not applying.apply(bench.c.database, OUTSIDE, program=PROGRAM, by=REQUESTER)[1]
    assert len(sources(bench)) == 2


def test_after_a_reset_the_code_says_what_holds(bench: Bench) -> None:
    apply(bench, OUTSIDE)
    assert applying.reset(bench.c.database, program=PROGRAM, by=REQUESTER) == requiring_approval(GATED)
    assert active(bench) == requiring_approval(GATED)
    bench.register(requiring_approval(["pay"]))
    assert active(bench) == requiring_approval(["pay"])
    with pytest.raises(NotFoundError, match="No policy from a file is active"):
        applying.reset(bench.c.database, program=PROGRAM, by=REQUESTER)


def test_a_reset_gives_the_conditions_of_the_code_back_to_the_process_that_has_them(bench: Bench) -> None:
    @predicate(version="1")
    def large(arguments: dict[str, Any]) -> bool:
        return bool(arguments["amount_cents"] > 5000)

    bench.register(Policy((Rule("pay", when=large),), default=Effect.ALLOW))
    apply(bench, OUTSIDE)
    applying.reset(bench.c.database, program=PROGRAM, by=REQUESTER)
    assert bench.ask(bench.propose(("pay", PAYMENT))) is None


def test_an_applied_policy_and_its_activation_stand_in_the_trail(bench: Bench) -> None:
    policy = apply(bench, OUTSIDE)
    with bench.c.database.write() as tx:
        audit.number(tx)
    with bench.c.database.read() as tx:
        entry = audit.read_after(tx, 0, limit=1000, subject=PROGRAM)[-1]
        text = tx.execute(select(t.policies.c.text).order_by(t.policies.c.number.desc()).limit(1)).scalar()
    assert (entry.kind, entry.actor) == ("policy:activated", REQUESTER)
    assert entry.facts["version"] == policy.version
    assert entry.facts["source"] == "applied"
    assert text == OUTSIDE


@pytest.mark.parametrize("by", ["rita", "olga", "mallory", "dev-bot"])
def test_only_an_admin_changes_the_policy(bench: Bench, by: str) -> None:
    with pytest.raises(ForbiddenError, match="Only an admin"):
        apply(bench, OUTSIDE, by=by)
    apply(bench, OUTSIDE)
    with pytest.raises(ForbiddenError, match="Only an admin"):
        applying.reset(bench.c.database, program=PROGRAM, by=by)
    assert sources(bench) == [Source.APPLIED, Source.CODE]


@pytest.mark.parametrize(
    ("rule", "at", "message"),
    [
        ('tool = "send_emial"', "2:8", "names no known tool"),
        ('tool = "pay"\nwhen = "args.amuont > 5"', "3:14", "'amuont', which is no argument"),
        ('tool = "pay"\nwho = {from = "group:finanz"}', "3:7", "the group 'finanz'; there are finance"),
    ],
)
def test_a_file_is_checked_against_what_the_workspace_knows(
    bench: Bench, rule: str, at: str, message: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        apply(bench, f"[[rule]]\n{rule}\n")
    (fault,) = caught.value.faults
    assert fault.pointer == at
    assert message in fault.message
    assert sources(bench) == [Source.CODE]


def test_an_edit_is_judged_by_the_applied_policy(bench: Bench) -> None:
    apply(bench, OUTSIDE.replace('"allow"', '"hold"'))
    _, review = bench.asked(("send_email", OUT))
    edited = bench.decide(review, edit(review.calls[0].key, MAIL))
    assert edited.calls[0].verdict.rules == ()
    assert edited.status is ReviewStatus.SETTLED


def test_a_start_is_judged_by_the_policy_that_was_applied_meanwhile(bench: Bench) -> None:
    turn, review = bench.asked(("send_email", OUT))
    bench.decide(review, approve(review.calls[0].key))
    apply(bench, OUTSIDE + 'effect = "deny"\n')
    assert bench.outcome(turn).state is CallState.BLOCKED
    assert bench.effects == []


WHO_ASKS = """\
[[rule]]
tool = "pay"
effect = "allow"
when = '"finance" in person.groups && person.kind == "person" && run.program == "chat"'
"""


def test_a_condition_sees_who_asks_as_they_are_now(bench: Bench) -> None:
    apply(bench, WHO_ASKS)
    assert bench.ask(bench.propose(("pay", PAYMENT), run_id="r1", by="faye")) is None
    _, review = bench.asked(("pay", PAYMENT), run_id="r2", by="rita")
    assert review.calls[0].verdict.faults == ()
    turn = bench.propose(("pay", PAYMENT), run_id="r3", by="faye")
    assert bench.ask(turn) is None
    bench.change_person("faye", groups=[])
    assert not isinstance(bench.execute(turn)[0], Outcome)
    assert bench.effects == []


def test_a_condition_on_somebody_who_is_not_known_holds(bench: Bench) -> None:
    apply(bench, WHO_ASKS)
    _, review = bench.asked(("pay", PAYMENT), by="stranger")
    assert "is not known here" in review.calls[0].verdict.faults[0]


def test_where_the_rules_say_so_people_decide_what_they_asked_for(bench: Bench) -> None:
    apply(bench, '[[rule]]\ntool = "pay"\nself_approval = true\n')
    turn, review = bench.asked(("pay", PAYMENT))
    decided = bench.decide(review, approve(review.calls[0].key), by=REQUESTER)
    assert states(decided) == [Answer.APPROVED]
    assert bench.outcome(turn).state is CallState.EXECUTED


def test_one_rule_that_forbids_it_is_enough(bench: Bench) -> None:
    apply(
        bench, '[[rule]]\ntool = "pay"\nself_approval = true\n[[rule]]\ntool = "*"\nself_approval = false\n'
    )
    _, review = bench.asked(("pay", PAYMENT))
    with pytest.raises(ForbiddenError, match="nobody decides their own request"):
        bench.decide(review, approve(review.calls[0].key), by=REQUESTER)


def test_a_rule_forbids_it_to_the_one_person_of_a_workspace_too(alone: Bench) -> None:
    apply(alone, '[[rule]]\ntool = "pay"\nself_approval = false\n')
    _, review = alone.asked(("pay", PAYMENT))
    with pytest.raises(ForbiddenError, match="nobody decides their own request"):
        alone.decide(review, approve(review.calls[0].key), by=REQUESTER)


def test_no_rule_lets_an_agent_decide(bench: Bench) -> None:
    apply(bench, '[[rule]]\ntool = "pay"\nself_approval = true\n')
    _, review = bench.asked(("pay", PAYMENT), by="dev-bot")
    with pytest.raises(ForbiddenError, match="Agents propose"):
        bench.decide(review, approve(review.calls[0].key), by="dev-bot")


def test_a_permission_that_was_taken_back_does_not_start_the_call(bench: Bench) -> None:
    apply(bench, '[[rule]]\ntool = "pay"\nself_approval = true\n')
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, approve(review.calls[0].key), by=REQUESTER)
    apply(bench, '[[rule]]\ntool = "pay"\n')
    assert not isinstance(bench.execute(turn)[0], Outcome)
    assert bench.effects == []


def test_a_simulation_counts_what_another_policy_would_have_said(bench: Bench) -> None:
    bench.register(Policy(default=Effect.HOLD))
    bench.asked(("send_email", MAIL), ("send_email", OUT), ("pay", PAYMENT), run_id="r1")
    bench.asked(("send_email", OUT), run_id="r2", by="rita")
    before = bench.counts()
    with bench.c.database.read() as tx:
        then = applying.known(tx, PROGRAM).read(OUTSIDE)
        found = simulate(tx, PROGRAM, today=active(bench), then=then, since=EVER)
        nothing = simulate(tx, "other", today=Policy(), then=then, since=EVER)
    assert found.today.effects == {Effect.ALLOW: 0, Effect.HOLD: 4, Effect.DENY: 0}
    assert found.then.effects == {Effect.ALLOW: 2, Effect.HOLD: 2, Effect.DENY: 0}
    assert found.then.rules == {"mail to outside": 2}
    assert found.changes == (
        Change("pay", Effect.HOLD, Effect.ALLOW, 1),
        Change("send_email", Effect.HOLD, Effect.ALLOW, 1),
    )
    assert (nothing.then.calls, nothing.changes) == (0, ())
    assert bench.counts() == before


def test_another_process_evaluates_the_conditions_of_a_row(bench: Bench) -> None:
    apply(bench, OUTSIDE)
    other = Bench(bench.url, bench.home)
    try:
        with other.c.database.read() as tx:
            read = policies.active(tx, PROGRAM)
    finally:
        other.close()
    assert judge(read, "send_email", arguments=OUT).effect is Effect.HOLD
    assert judge(read, "send_email", arguments=MAIL).effect is Effect.ALLOW


def test_the_summary_of_a_rule_says_what_the_call_is_also_after_an_edit(bench: Bench) -> None:
    apply(
        bench,
        '[[rule]]\ntool = "pay"\nsummary = "Pay {amount_cents} cents to {account}."\nwho = {approve = 2}\n',
    )
    _, review = bench.asked(("pay", PAYMENT))
    assert summary_of(bench.review(review.id).calls[0]) == 'Pay 1000 cents to "A-1".'
    bench.decide(review, edit(review.calls[0].key, {**PAYMENT, "amount_cents": 7}))
    assert summary_of(bench.review(review.id).calls[0]) == 'Pay 7 cents to "A-1".'
