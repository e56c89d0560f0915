"""The pages of settings: policies, people, channels, keys and rules, by the verbs of the other doors."""

from fastapi import APIRouter

from clearance.web.pages.settings import channels, keys, people, policies, rules, sections


def routers() -> list[APIRouter]:
    """Return the routes of all of them."""
    return [sections.router, policies.router, people.router, channels.router, keys.router, rules.router]
