"""Why nothing of a plan runs, in words for who looks at it, and what helps."""

from clearance.apps.research.hitl import BlockedReason

WORDS = {
    BlockedReason.NOT_APPROVED: (
        "People have not cleared this plan, or not all of it.",
        "Start the run again, and have its plan decided.",
    ),
    BlockedReason.HASH_MISMATCH: (
        "The plan that is kept is not, byte for byte, the one that people saw.",
        "Find out who changed it, then start a new run.",
    ),
    BlockedReason.TEMPLATE_DRIFT: (
        "The code of a method has changed since the plan was made.",
        "Start a new run: its plan names the code as it is now.",
    ),
    BlockedReason.INPUT_DRIFT: (
        "An input is not the one that the plan was made for.",
        "Find out who changed it, then start a new run.",
    ),
    BlockedReason.EXPIRED: (
        "The time for which the plan was cleared is over.",
        "Start a new run, and carry it out in time.",
    ),
    BlockedReason.REVOKED: (
        "A clearance was taken back before its step began.",
        "Ask who took it back; then start a new run.",
    ),
    BlockedReason.BUDGET_EXCEEDED: (
        "It would cost more than was approved.",
        "Start a new run with fewer methods, or with a larger budget.",
    ),
    BlockedReason.ALREADY_EXECUTED: (
        "A step was carried out under this clearance before.",
        "Its results are among the files. Start a new run to do it again.",
    ),
}
_MARK = "blocked_hitl: "


def blocked(line: str) -> tuple[str, str, str] | None:
    """Return the reason of a block, what it means, and what to do; None for a line that tells of none."""
    _, mark, rest = line.partition(_MARK)
    name = rest.partition(":")[0].strip()
    if not mark or name not in tuple(BlockedReason):
        return None
    means, helps = WORDS[BlockedReason(name)]
    return name, means, helps
