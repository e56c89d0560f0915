"""The veil: reviews and runs as they are shown, with masks in place of what is secret in their calls."""

import json
from dataclasses import replace

from clearance.redaction import masked, scrubbed, secret_texts
from clearance.review import Review, ReviewedCall
from clearance.run import Run, is_one_call
from clearance.toolcall import canonical


def veiled(review: Review) -> Review:
    """Return the review as it is shown: with masks in place of what is secret in its calls' arguments."""
    return replace(review, calls=tuple(_veiled(call) for call in review.calls))


def veiled_run(run: Run, words: frozenset[str]) -> Run:
    """Return the run as it is shown: with masks where it repeats what is secret in its reviews.

    Of a call of an agent elsewhere only its key and its tool are ever shown, and stay in what it began with.
    """
    if not words:
        return run
    said, answer = run.input, run.answer
    if said is not None and is_one_call(run.program):
        sent = json.loads(said)
        said = canonical({name: scrubbed(sent[name], words) for name in ("key", "tool")})
    elif said is not None:
        said = scrubbed(said, words)
    return replace(run, input=said, answer=None if answer is None else scrubbed(answer, words))


def secret_words(review: Review) -> frozenset[str]:
    """Return the secret texts in a review's calls, to be looked for in what others wrote."""
    return frozenset(
        found
        for call in review.calls
        for text in (call.arguments, call.proposed, *(each.arguments or "{}" for each in call.decisions))
        for found in secret_texts(text, call.verdict.secret)
    )


def _veiled(call: ReviewedCall) -> ReviewedCall:
    secret = call.verdict.secret
    if not secret:
        return call
    decisions = tuple(
        each if each.arguments is None else replace(each, arguments=masked(each.arguments, secret))
        for each in call.decisions
    )
    arguments, proposed = masked(call.arguments, secret), masked(call.proposed, secret)
    return replace(call, arguments=arguments, proposed=proposed, decisions=decisions)
