"""A process that decides under a key and may be killed on the way: `URL FOLDER REVIEW KEY`."""

import sys
from pathlib import Path

import clearance
from clearance.once import Once
from clearance.review import Review


def approving(review_id: str, key: str) -> Once[Review]:
    """Return ann's approval of a review as the request that it is over HTTP."""
    return Once(
        "ann", f"reviews/{review_id}/decide", key, "digest", lambda _, after: f"version {after.version}"
    )


if __name__ == "__main__":
    url, folder, review, key = sys.argv[1:]
    with clearance.open(url, home=Path(folder), person="ann", worker=False) as opened:
        approve = [{"type": "approve"}]
        opened.gate.decide(review, approve, by="ann", version=1, once=approving(review, key))
