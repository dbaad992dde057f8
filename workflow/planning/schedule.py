"""How long tasks that wait for one another take on some cores and cards."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A job: its seconds, what it occupies, and the names of those it waits for."""

    name: str
    seconds: float
    cores: int = 1
    gpus: int = 0
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chain:
    """Tasks of which each waits for the one before."""

    seconds: float
    names: tuple[str, ...]


def longest_chain(tasks: Sequence[Task]) -> Chain:
    """The critical path: what remains however many cores there are."""
    until: dict[str, Chain] = {}
    for task in _in_order(tasks):
        before = max((until[name] for name in task.after), key=_length, default=Chain(0.0, ()))
        until[task.name] = Chain(before.seconds + task.seconds, (*before.names, task.name))
    return max(until.values(), key=_length, default=Chain(0.0, ()))


def makespan(tasks: Sequence[Task], cores: int, gpus: int = 0) -> float:
    """Seconds until all are done, when those with the longest way to go are started first.

    A task that wants more cores or cards than there are gets all of them.
    """
    if not tasks:
        return 0.0
    ahead = _ahead(tasks)
    by_name = {task.name: task for task in tasks}
    waits = {task.name: len(set(task.after)) for task in tasks}
    followers: dict[str, list[str]] = {task.name: [] for task in tasks}
    for task in tasks:
        for name in set(task.after):
            followers[name].append(task.name)

    def place_of(name: str) -> tuple[float, int, str]:
        # Of those with as far to go, first who needs a card: there are fewer of them than cores.
        return -ahead[name], -by_name[name].gpus, name

    ready = [place_of(task.name) for task in tasks if not task.after]
    heapq.heapify(ready)
    running: list[tuple[float, str, int, int]] = []
    now, free_cores, free_gpus = 0.0, cores, gpus
    while ready or running:
        held = []
        while ready and free_cores > 0:
            place = heapq.heappop(ready)
            task = by_name[place[2]]
            own_cores, own_gpus = min(task.cores, cores), min(task.gpus, gpus)
            if own_cores <= free_cores and own_gpus <= free_gpus:
                free_cores, free_gpus = free_cores - own_cores, free_gpus - own_gpus
                heapq.heappush(running, (now + task.seconds, task.name, own_cores, own_gpus))
            else:
                held.append(place)
        for place in held:
            heapq.heappush(ready, place)
        now, name, own_cores, own_gpus = heapq.heappop(running)
        free_cores, free_gpus = free_cores + own_cores, free_gpus + own_gpus
        for follower in followers[name]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready, place_of(follower))
    return now


def _ahead(tasks: Sequence[Task]) -> Mapping[str, float]:
    """Seconds of the longest chain that starts with each task."""
    own = {task.name: task.seconds for task in tasks}
    ahead = dict(own)
    for task in reversed(_in_order(tasks)):
        for name in task.after:
            ahead[name] = max(ahead[name], own[name] + ahead[task.name])
    return ahead


def _in_order(tasks: Sequence[Task]) -> list[Task]:
    """Each after those it waits for; a circle is an error."""
    by_name = {task.name: task for task in tasks}
    done: dict[str, Task] = {}
    todo = list(tasks)
    while todo:
        rest = [task for task in todo if not all(name in done for name in task.after)]
        if len(rest) == len(todo):
            raise ValueError(f"these tasks wait for one another: {[t.name for t in rest]}")
        left = {task.name for task in rest}
        done |= {task.name: by_name[task.name] for task in todo if task.name not in left}
        todo = rest
    return list(done.values())


def _length(chain: Chain) -> float:
    return chain.seconds
