"""The identity provider, as this server talks to it: its discovery document, its keys, a code for a token.

Nothing that it sends stands in an error or a log, and nothing that it says counts before its signature holds.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode, urlsplit

from clearance.errors import ClearanceError, SettingsError, UnauthorizedError
from clearance.identity import IdentityProvider

if TYPE_CHECKING:
    from httpx import Client, Response
    from joserfc.jwk import KeySet

LEEWAY = 60
"""Seconds by which its clock and ours may differ."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key that only the provider has. `none` and those by a shared secret are not among them."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SECONDS = 10
_KEPT_FOR = 3600.0
_KEYS_AT_MOST_EVERY = 5.0
_AWAY_FOR = 2.0
_MOST_BYTES = 1_000_000


class NotVouchedForError(UnauthorizedError):
    """What the provider answered does not hold. `why` is a word for the trail, never a value."""

    def __init__(self, why: str, message: str | None = None) -> None:
        super().__init__(
            message or f"What the identity provider answered does not hold ({why}). Sign in again from here."
        )
        self.why = why


class ProviderAwayError(ClearanceError):
    """The identity provider does not answer, or not as one does."""

    status = 503
    exit_code = 13

    def __init__(self) -> None:
        super().__init__(
            "The identity provider does not answer now, so nobody signs in through it. Try later."
        )


@dataclass(frozen=True)
class Journey:
    """One way to the provider and back: what has to come back with the browser for it to count."""

    state: str
    nonce: str
    verifier: str
    started: int
    next: str
    again: bool


def new_journey(*, next: str, again: bool, now: datetime) -> Journey:
    """Return a new one; `again` has its person show there once more who they are."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    return Journey(state, nonce, verifier, int(now.timestamp()), next, again)


class Provider:
    """Talks to one identity provider; used from many threads. What it publishes is kept for an hour."""

    def __init__(self, settings: IdentityProvider) -> None:
        try:
            import joserfc  # noqa: F401  # part of an extra: whoever serves learns of it, not who signs in
        except ImportError:
            raise SettingsError(
                "CLEARANCE_OIDC_ISSUER is set, and the packages for it are not there: "
                "pip install 'clearance[oidc]'"
            ) from None
        self.settings = settings
        self._document: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._away_until = 0.0

    @cached_property
    def _http(self) -> "Client":
        import httpx

        # No redirect is followed: it is asked at the addresses that it published.
        return httpx.Client(timeout=_SECONDS, follow_redirects=False)

    def address(self, journey: Journey, *, back: str) -> str:
        """Return where the browser goes to sign in. Raises `ProviderAwayError`."""
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": back,
            "scope": self.settings.scopes,
            "state": journey.state,
            "nonce": journey.nonce,
            "code_challenge": challenge_of(journey.verifier),
            "code_challenge_method": "S256",
        }
        if journey.again:
            asked |= {"prompt": "login", "max_age": "0"}
        where = self._endpoint("authorization_endpoint")
        return f"{where}{'&' if urlsplit(where).query else '?'}{urlencode(asked)}"

    def claims(self, code: str, journey: Journey, *, back: str, now: datetime) -> Mapping[str, Any]:
        """Exchange a code for a token, and return what it says, once all of it holds.

        Raises `NotVouchedForError` for anything that does not, `ProviderAwayError`.
        """
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "code_verifier": journey.verifier,
        }
        answer = self._ask("POST", self._endpoint("token_endpoint"), **self._with_client(sent))
        if answer.status_code >= 500:
            raise ProviderAwayError
        token = _object(answer).get("id_token") if answer.status_code == 200 else None
        if not isinstance(token, str):
            raise NotVouchedForError("code")
        return self._verified(token, journey, now=now)

    @property
    def names_itself(self) -> bool:
        """Whether it says in each answer who it is (RFC 9207)."""
        return self._published().get("authorization_response_iss_parameter_supported") is True

    def _verified(self, token: str, journey: Journey, *, now: datetime) -> Mapping[str, Any]:
        from joserfc.errors import ClaimError
        from joserfc.jwt import JWTClaimsRegistry

        claims = self._signed(token)
        checks = JWTClaimsRegistry(
            int(now.timestamp()),
            LEEWAY,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": journey.nonce},
        )
        try:
            checks.validate(claims)
        except ClaimError as error:
            raise NotVouchedForError(error.claim) from None
        audience, party = claims["aud"], claims.get("azp")
        others = isinstance(audience, list) and len(audience) > 1
        if (others and party is None) or party not in (None, self.settings.client_id):
            raise NotVouchedForError("azp")
        if not isinstance(claims["nonce"], str) or len(claims["sub"]) > 255:
            raise NotVouchedForError("sub")
        if journey.again:
            _check_just_now(claims, journey)
        return claims

    def _signed(self, token: str) -> dict[str, Any]:
        """Return what a token says whose signature holds; by a key that is new there as well."""
        from joserfc import jwt
        from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError

        for renewed in (False, True):
            try:
                return jwt.decode(token, self._key_set(renewed=renewed), algorithms=ALGORITHMS).claims
            except (InvalidKeyIdError, BadSignatureError):
                continue
            except (JoseError, ValueError, TypeError, KeyError):
                break
        raise NotVouchedForError("signature")

    def _key_set(self, *, renewed: bool) -> "KeySet":
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        age = _KEYS_AT_MOST_EVERY if renewed else _KEPT_FOR
        if self._keys is not None and time.monotonic() < self._keys[0] + age:
            return self._keys[1]
        found = _object(self._ask("GET", self._endpoint("jwks_uri")))
        try:
            keys = KeySet.import_key_set({"keys": found["keys"]})
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            raise ProviderAwayError from None
        self._keys = (time.monotonic(), keys)
        return keys

    def _published(self) -> Mapping[str, Any]:
        if self._document is not None and time.monotonic() < self._document[0] + _KEPT_FOR:
            return self._document[1]
        where = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        found = _object(self._ask("GET", where))
        if found.get("issuer") != self.settings.issuer:
            raise NotVouchedForError(
                "issuer", "The identity provider calls itself otherwise than it is set here."
            )
        self._document = (time.monotonic(), found)
        return found

    def _endpoint(self, name: str) -> str:
        where = self._published().get(name)
        if not isinstance(where, str) or not is_safe(where):
            raise ProviderAwayError
        return where

    def _with_client(self, sent: dict[str, str]) -> dict[str, Any]:
        """Return a request to which this client has added who it is, in a way that the provider takes."""
        id, secret = self.settings.client_id, self.settings.client_secret
        if secret is None:
            return {"data": {**sent, "client_id": id}}
        ways = self._published().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if "client_secret_basic" in ways:
            # Encoded first, as a form is (RFC 6749, 2.3.1).
            return {"data": sent, "auth": (quote_plus(id), quote_plus(secret))}
        return {"data": {**sent, "client_id": id, "client_secret": secret}}

    def _ask(self, method: str, where: str, **more: Any) -> "Response":
        import httpx

        if time.monotonic() < self._away_until:
            raise ProviderAwayError
        try:
            return self._http.request(method, where, headers={"Accept": "application/json"}, **more)
        except (httpx.HTTPError, httpx.InvalidURL):
            # Who waits for it holds a thread of this server: the next ones are told at once.
            self._away_until = time.monotonic() + _AWAY_FOR
            raise ProviderAwayError from None


def challenge_of(verifier: str) -> str:
    """Return what is sent ahead of a verifier: its SHA-256 (PKCE, S256)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_safe(address: str) -> bool:
    """Whether what is sent there can be read on the way by nobody else."""
    parts = urlsplit(address)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    )


def _check_just_now(claims: Mapping[str, Any], journey: Journey) -> None:
    at = claims.get("auth_time")
    if not isinstance(at, int | float) or isinstance(at, bool) or at < journey.started - LEEWAY:
        raise NotVouchedForError(
            "auth_time",
            "The identity provider did not say that you signed in there just now, so nothing was decided. "
            "Sign in there with all that you sign in with.",
        )


def _object(answer: "Response") -> Mapping[str, Any]:
    """Return the JSON object of an answer."""
    try:
        found = answer.json() if answer.status_code == 200 and len(answer.content) <= _MOST_BYTES else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ProviderAwayError
    return found
