"""The pages people work in: rendered here, complete without scripts, kept fresh by them."""

from fastapi import APIRouter, FastAPI


def routers() -> list[APIRouter]:
    """Return the routes of every page."""
    from clearance.web.pages import (
        account,
        audit,
        chat,
        inbox,
        links,
        live,
        login,
        oidc,
        review,
        runs,
        settings,
        speech,
        static,
    )

    return [
        static.router,
        live.router,
        inbox.router,
        review.router,
        runs.router,
        audit.router,
        speech.router,
        chat.router,
        login.router,
        oidc.router,
        account.router,
        links.router,
        *settings.routers(),
    ]


def add_pages(app: FastAPI) -> None:
    """Put the guard before the pages of an application, and send whoever is not signed in to do so.

    Raises `SettingsError` where an identity provider is set and cannot be asked.
    """
    from clearance.web.pages.failures import add_failures, refused
    from clearance.web.pages.guard import PageGuard
    from clearance.web.pages.provider import Provider
    from clearance.web.pages.viewer import add_sign_in

    settings = app.state.workspace.identity_provider
    app.state.provider = None if settings is None else Provider(settings)
    add_failures(app)
    app.add_middleware(PageGuard, refused=refused)
    add_sign_in(app)
