"""The clock of a server."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from ._admin import Admin

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)


class Clock:
    """Reads and moves the clock of a server.

    It counts milliseconds and stands still until it is moved. Everything in the server follows it: expiry, `_ts`, TTL indexes. It may be used
    from several threads.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def now(self) -> datetime:
        """Returns the time of the server, in UTC."""
        return _instant(self._admin.request("GET", "clock")["nowMs"])

    def advance(
        self,
        by: timedelta | None = None,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> datetime:
        """Moves the clock forward, and returns the new time.

        The arguments add up. Raises `ValueError` for a time that is negative or not a whole number of milliseconds, and if there is no argument;
        `RequestError` if the server runs on the system's clock.
        """
        parts = timedelta(
            weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        total = parts if by is None else by + parts
        if by is None and not any((weeks, days, hours, minutes, seconds, milliseconds)):
            raise ValueError("advance: by how much? for example days=30")
        if total < timedelta(0):
            raise ValueError(f"advance: a negative time; `set` also moves the clock back. value=`{total}`")
        return _instant(self._admin.request("PUT", "clock", {"advanceMs": _milliseconds(total)})["nowMs"])

    def set(self, instant: datetime) -> datetime:
        """Moves the clock to an instant, forward or back, and returns the new time: the instant without its part of a millisecond.

        When the clock is moved back, time stands still for everything that is stored until it has caught up. Raises `ValueError` for an instant
        without a time zone; `RequestError` if the server runs on the system's clock.
        """
        if instant.tzinfo is None:
            raise ValueError(f"set: the instant has no time zone. value=`{instant}`")
        return _instant(self._admin.request("PUT", "clock", {"setMs": (instant - _EPOCH) // _MILLISECOND})["nowMs"])


def _instant(epoch_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=epoch_ms)


def _milliseconds(time: timedelta) -> int:
    """The whole number of milliseconds; a part of one is an error, because the server's clock would lose it."""
    whole, rest = divmod(time, _MILLISECOND)
    if rest:
        raise ValueError(f"the clock counts whole milliseconds. value=`{time}`")
    return whole
