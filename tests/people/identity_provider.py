"""An identity provider on loopback, over real HTTP, that can do everything wrong which one can do wrong."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

CLIENT, SECRET = "clearance", "a secret: with / and + in it"
WRONGS = (
    "nonce", "no nonce", "aud", "azp", "no azp", "iss", "expired", "not yet", "from the future", "no sub",
    "alg none", "HS256 by the public key", "HS256 by the secret", "another key", "altered", "no token",
    "not JSON", "long ago",
)  # fmt: skip
"""What it can do wrong in a token."""


@dataclass
class User:
    """Somebody who has an account there, and is signed in there since `auth_time`."""

    sub: str
    claims: dict[str, Any] = field(default_factory=dict)
    auth_time: float = 0.0


@dataclass
class IdentityProvider:
    """It signs in whoever `user` is, as long as it is asked properly. `wrong` is what it does wrong."""

    issuer: str
    user: User = field(
        default_factory=lambda: User("u-1", {"preferred_username": "eva", "name": "Eva Mayer"})
    )
    wrong: str = ""
    algorithm: str = "RS256"
    basic: bool = True
    redirects: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    fetched_keys: int = 0
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _keys: list[Any] = field(default_factory=list)

    def rotate(self) -> None:
        """Sign by a new key from now on, and publish it alone."""
        made: Any = (
            ECKey.generate_key("P-256") if self.algorithm.startswith("ES") else RSAKey.generate_key(2048)
        )
        self._keys = [made]
        made.ensure_kid()

    def settings(self, **more: str) -> dict[str, str]:
        """Return the environment of a server that knows it."""
        return {
            "CLEARANCE_OIDC_ISSUER": self.issuer,
            "CLEARANCE_OIDC_CLIENT_ID": CLIENT,
            "CLEARANCE_OIDC_CLIENT_SECRET": SECRET,
            **{f"CLEARANCE_OIDC_{name.upper()}": value for name, value in more.items()},
        }

    def visit(self, address: str) -> str:
        """Do what a browser does that is sent there: sign in, and return where it is sent back to."""
        parts = urlsplit(address)
        asked = dict(parse_qsl(parts.query, strict_parsing=True))
        self.asked.append(asked)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        assert asked["redirect_uri"] in self.redirects, "it sends browsers only where it was told of"
        if asked.get("prompt") == "login" or not self.user.auth_time:
            self.user.auth_time = time.time() - (3600 if self.wrong == "long ago" else 0)
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        told = {"code": code, "state": asked["state"], "iss": self.issuer}
        if self.wrong == "mix-up":
            told["iss"] = "https://evil.example"
        if self.wrong == "does not name itself":
            del told["iss"]
        return f"{asked['redirect_uri']}?{urlencode(told)}"

    def answer_token(self, form: dict[str, str], authorization: str) -> tuple[int, bytes]:
        """Exchange a code: once, for who proves to have begun it."""
        asked = self._codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if not self._is_client(form, authorization):
            return 401, b'{"error": "invalid_client"}'
        if (
            asked is None
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or challenge.rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return 400, b'{"error": "invalid_grant"}'
        if self.wrong == "not JSON":
            return 200, b"<html>"
        token = self._token(asked["nonce"])
        self.tokens.append(token)
        told = {"access_token": "an access token", "token_type": "Bearer", "id_token": token}
        if self.wrong == "no token":
            del told["id_token"]
        return 200, json.dumps(told).encode()

    def published(self, path: str) -> tuple[int, bytes]:
        """Return what it publishes."""
        if path == "/keys":
            self.fetched_keys += 1
            public = [key.as_dict(private=False) | {"use": "sig"} for key in self._keys]
            return 200, json.dumps({"keys": public}).encode()
        if path != "/.well-known/openid-configuration":
            return 404, b"{}"
        document = {
            "issuer": "https://evil.example" if self.wrong == "another issuer" else self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": "http://evil.example/keys"
            if self.wrong == "keys elsewhere"
            else f"{self.issuer}/keys",
            "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": [
                "client_secret_basic" if self.basic else "client_secret_post"
            ],
        }
        return 200, json.dumps(document).encode()

    def _is_client(self, form: dict[str, str], authorization: str) -> bool:
        if not self.basic:
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        kind, _, coded = authorization.partition(" ")
        shown = base64.b64decode(coded).decode() if kind == "Basic" else ""
        return shown == urlencode({CLIENT: SECRET}).replace("=", ":", 1)

    def _token(self, nonce: str) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": self.user.sub,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "auth_time": int(self.user.auth_time),
            **self.user.claims,
        }
        changes: dict[str, dict[str, Any]] = {
            "nonce": {"nonce": "another"},
            "no nonce": {"nonce": None},
            "aud": {"aud": "another client"},
            "azp": {"aud": [CLIENT, "another"], "azp": "another"},
            "no azp": {"aud": [CLIENT, "another"]},
            "iss": {"iss": "https://evil.example"},
            "expired": {"exp": now - 300, "iat": now - 600},
            "not yet": {"nbf": now + 600},
            "from the future": {"iat": now + 600},
            "no sub": {"sub": None},
            "no auth_time": {"auth_time": None},
        }
        claims |= changes.get(self.wrong, {})
        return self._signed({name: value for name, value in claims.items() if value is not None})

    def _signed(self, claims: dict[str, Any]) -> str:
        key = self._keys[0]
        header = {"alg": self.algorithm, "kid": key.kid}
        match self.wrong:
            case "alg none":
                head, body, _ = jwt.encode(header, claims, key, algorithms=[self.algorithm]).split(".")
                head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
                return f"{head}.{body}."
            case "HS256 by the public key":
                public = key.as_pem(private=False)
                header["alg"] = "HS256"
                return _by_text(header, claims, public)
            case "HS256 by the secret":
                header["alg"] = "HS256"
                return _by_text(header, claims, SECRET.encode())
            case "another key":
                other: Any = RSAKey.generate_key(2048)
                return jwt.encode(header, claims, other, algorithms=[self.algorithm])
            case "altered":
                head, _, sign = jwt.encode(header, claims, key, algorithms=[self.algorithm]).split(".")
                changed = json.dumps({**claims, "sub": "somebody else"}).encode()
                return f"{head}.{base64.urlsafe_b64encode(changed).rstrip(b'=').decode()}.{sign}"
        return jwt.encode(header, claims, KeySet([key]), algorithms=[self.algorithm])


def _by_text(header: dict[str, str], claims: dict[str, Any], secret: bytes) -> str:
    """Sign by a shared secret, which may be a public key that was taken for one."""
    import hmac

    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)
    ]
    signed = ".".join(parts)
    mac = hmac.new(
        OctKey.import_key(secret).raw_value if not secret.startswith(b"-") else secret,
        signed.encode(),
        "sha256",
    )
    return f"{signed}.{base64.urlsafe_b64encode(mac.digest()).rstrip(b'=').decode()}"


@contextmanager
def provider_at_work(algorithm: str = "RS256") -> Iterator[IdentityProvider]:
    """Give an identity provider that answers on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(found.published(urlsplit(self.path).path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[-1] for name, values in parse_qs(body, strict_parsing=True).items()}
            self._send(found.answer_token(form, self.headers.get("Authorization", "")))

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def _send(self, answer: tuple[int, bytes]) -> None:
            status, body = answer
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = IdentityProvider(f"http://127.0.0.1:{server.server_port}", algorithm=algorithm)
        found.rotate()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
