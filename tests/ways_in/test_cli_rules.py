"""Standing rules, and agents that are parked, from the command line."""

from clearance.keyring import add_agent
from clearance.store import parking
from clearance.store.parking import Parked
from tests.ways_in.desk import PERSON, TWO_PEOPLE, Desk, error

MAIL = '{"to":"bo@example.org","body":"Hi"}'


def test_a_rule_is_added_listed_and_revoked(desk: Desk) -> None:
    review = desk.hold(("send_email", MAIL))
    added = desk.run("rules", "add", "--from", review.id, "--uses", "3", "--for", "8h", "--any", "body")
    assert added.exit_code == 0, added.output
    assert added.stdout.startswith("active    send_email of ana, in desk\n")
    assert 'to = "bo@example.org", body = any' in added.stdout
    (found,) = desk.json("rules", "list")["standing_rules"]
    assert (found["state"], found["uses_left"], found["any"]) == ("active", 3, ["body"])
    assert desk.run("rules", "list").stdout == added.stdout
    assert desk.json("rules", "revoke", found["rule_id"])["state"] == "revoked"
    assert desk.run("rules", "list").stdout.startswith("There are no standing rules")
    assert len(desk.json("rules", "list", "--all")["standing_rules"]) == 1


def test_a_draft_says_who_is_still_needed_and_how_they_approve(desk: Desk) -> None:
    review = desk.hold(("send_email", MAIL), policy=TWO_PEOPLE)
    added = desk.run("rules", "add", "--from", review.id, "--uses", "3", "--for", "8h")
    (found,) = desk.json("rules", "list")["standing_rules"]
    assert added.stdout.endswith(f"clearance rules approve {found['rule_id']}\n")
    assert "more people must approve" in added.stderr
    assert desk.json("rules", "approve", found["rule_id"])["state"] == "drafted"


def test_what_cannot_be_remembered_is_said_in_a_sentence(desk: Desk) -> None:
    review = desk.hold(("wipe", "{}"))
    words = ["rules", "add", "--from", review.id, "--uses", "3"]
    assert "critical risk is decided each time" in error(desk.run(*words, "--for", "8h", "--json"))["message"]
    assert "--for takes a time" in error(desk.run(*words, "--for", "soon", "--json"))["message"]
    assert desk.run("rules", "revoke", "nothing").exit_code == 4


def test_agents_that_are_parked_are_listed_and_let_go_on(desk: Desk) -> None:
    desk.hold(("send_email", MAIL))
    assert desk.run("agents", "parked").stdout == "No agent is parked.\n"
    with desk.open() as c:
        add_agent(c.database, "bot", behind=PERSON, by=PERSON)
        with c.database.write() as tx:
            parking.park(tx, Parked("bot", "it proposed too much", c.database.now(tx)))
    assert "it proposed too much" in desk.run("agents", "parked").stdout
    assert [each["agent"] for each in desk.json("agents", "parked")["parked"]] == ["bot"]
    assert desk.run("agents", "resume", "bot").stdout == "The agent bot may go on.\n"
    assert desk.run("agents", "resume", "bot").exit_code == 5
