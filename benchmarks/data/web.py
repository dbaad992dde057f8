"""Requests repeated with patience, and what can go wrong with them."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from benchmarks.data.errors import DataError

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Patience:
    """How long to try."""

    attempts: int = 4
    first_wait_s: float = 0.5
    connect_s: float = 5.0
    read_s: float = 30.0
    total_s: float = 12 * 3600.0
    """Of one origin, all attempts together: a server that sends a byte a minute is given up."""

    def waits(self) -> Iterator[float]:
        """Seconds before each further attempt, doubling, with jitter against stampedes."""
        for attempt in range(self.attempts - 1):
            yield self.first_wait_s * 2**attempt * random.uniform(0.8, 1.2)


@dataclass(frozen=True)
class Place:
    """A web address or a local path, and the arguments its ``httpx.Client`` needs."""

    address: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The address without any user name and password."""
        return re.sub(r"(?<=://)[^/?#]*@", "", self.address)


class SourceError(DataError):
    """One origin failed; another may do."""


class TryAgainError(DataError):
    """This origin failed in a way that may pass."""


def patiently(
    attempt: Callable[[httpx.Client], _Result], patience: Patience, options: Mapping[str, Any]
) -> _Result:
    """What the first good attempt returns; :class:`SourceError` after as many as allowed."""
    timeout = httpx.Timeout(patience.read_s, connect=patience.connect_s)
    waits = patience.waits()
    deadline = time.monotonic() + patience.total_s
    with httpx.Client(timeout=timeout, follow_redirects=True, **options) as client:
        while True:
            try:
                return attempt(client)
            except (httpx.TooManyRedirects, httpx.InvalidURL) as error:
                raise SourceError(str(error)) from error
            except (TryAgainError, httpx.RequestError) as error:
                wait = next(waits, None)
                if wait is None or time.monotonic() > deadline:
                    reason = str(error) or type(error).__name__
                    raise SourceError(f"{reason} (gave up)") from error
                if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    waits = iter(())  # no address or no answer: one more try is enough
                time.sleep(wait)


def refuse_errors(response: httpx.Response, part_asked: bool = False) -> None:
    """Raise unless the answer is what was asked for: the whole, or the part, of a file."""
    if response.status_code in _RETRY_STATUS:
        raise TryAgainError(f"the server answered {response.status_code}")
    if response.status_code == 206 and not part_asked:
        raise SourceError("the server sent a part of the file that was not asked for")
    if response.status_code not in (200, 206):  # 204 and 304 bring no file, either
        raise SourceError(f"the server answered {response.status_code}")
