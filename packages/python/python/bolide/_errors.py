"""What can go wrong."""


class BolideError(Exception):
    """The base of all errors of this package."""


class StartError(BolideError):
    """The server did not start: no binary, or it ended, or it took too long. The message has the end of what it wrote to standard error."""


class RequestError(BolideError):
    """The server refused a request of the admin API, or did not answer; `status` is the HTTP status, or None without an answer."""

    def __init__(self, message: str, status: "int | None" = None) -> None:
        super().__init__(message)
        self.status = status
