"""The server's virtual clock, moved through the admin API."""

import json
import ssl
import urllib.request


class Clock:
    """Reads and moves the clock of a server that was started with `--virtual-clock`."""

    def __init__(self, endpoint, key):
        self._url = f"{endpoint.rstrip('/')}/_bolide/clock"
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        # The certificate is the server's own, as with the official emulator.
        self._tls = ssl._create_unverified_context() if endpoint.startswith("https") else None

    def now_ms(self):
        """Returns the server's time in epoch milliseconds."""
        return self._call("GET", None)["nowMs"]

    def set_ms(self, instant):
        """Moves the clock to `instant`, epoch milliseconds."""
        self._call("PUT", {"setMs": instant})

    def set_seconds(self, instant):
        """Moves the clock to the first millisecond of a second."""
        self.set_ms(instant * 1000)

    def _call(self, method, body):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url, data=data, headers=self._headers, method=method)
        with urllib.request.urlopen(request, timeout=10, context=self._tls) as answer:
            return json.load(answer)
