"""The veil: a review as it is shown, with masks in place of what is secret in its calls."""

from dataclasses import replace

from clearance.redaction import masked, secret_texts
from clearance.review import Review, ReviewedCall


def veiled(review: Review) -> Review:
    """Return the review as it is shown: with masks in place of what is secret in its calls' arguments."""
    return replace(review, calls=tuple(_veiled(call) for call in review.calls))


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
