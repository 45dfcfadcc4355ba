"""Requests to the admin API of a server on this machine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from ._errors import RequestError

# A proxy of the environment must not see requests to 127.0.0.1.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SECONDS = 60


class Admin:
    """Sends requests below `/_bolide/`, with the account key."""

    def __init__(self, endpoint: str, key: str) -> None:
        self._endpoint = endpoint
        self._authorization = f"Bearer {key}"

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns the JSON object of the answer, {} for an empty one.

        `path` is relative to `/_bolide/` and escaped already. Raises `RequestError` with the server's message.
        """
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": self._authorization, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._endpoint}/_bolide/{path}", content, headers, method=method)
        return send(request, f"{method} /_bolide/{path}")


def send(request: urllib.request.Request, what: str) -> dict[str, Any]:
    """Sends a request and returns the JSON object of the answer; `what` names it in errors."""
    try:
        with _OPENER.open(request, timeout=_SECONDS) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        raise RequestError(f"{what}: {error.code} {_message(error.read())}", error.code) from None
    except OSError as error:
        raise RequestError(f"{what}: {error}") from error
    return json.loads(text) if text.strip() else {}


def _message(body: bytes) -> str:
    """The message of an error's body, or the body as it is."""
    text = body.decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text
