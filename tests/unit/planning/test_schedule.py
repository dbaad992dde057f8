"""Schedules against all orders tried, on small sets of tasks."""

import itertools

import numpy as np
import pytest

from workflow.planning.schedule import Task, longest_chain, makespan


def random_tasks(seed, n=6):
    rng = np.random.default_rng(seed)
    tasks = []
    for number in range(n):
        after = tuple(f"t{other}" for other in range(number) if rng.random() < 0.3)
        seconds = float(rng.integers(1, 9))
        tasks.append(Task(f"t{number}", seconds, int(rng.integers(1, 3)), 0, after))
    return [tasks[n] for n in rng.permutation(n)]


def all_chains(tasks):
    by_name = {task.name: task for task in tasks}

    def until(task):
        if not task.after:
            return [task.seconds]
        return [task.seconds + rest for name in task.after for rest in until(by_name[name])]

    return [length for task in tasks for length in until(task)]


def best_span(tasks, cores):
    """The shortest of all schedules that start tasks in some order, each as soon as it may."""
    best = np.inf
    for order in itertools.permutations(tasks):
        done, used = {}, []
        for task in order:
            if not all(name in done for name in task.after):
                break
            ready = max((done[name] for name in task.after), default=0.0)
            starts = sorted({ready, *(end for _, end, _ in used if end > ready)})
            wanted = min(task.cores, cores)
            for start in starts:
                end = start + task.seconds
                moments = {start, *(begin for begin, _, _ in used if start < begin < end)}
                if all(sum(c for b, e, c in used if b <= m < e) + wanted <= cores for m in moments):
                    break
            used.append((start, start + task.seconds, wanted))
            done[task.name] = start + task.seconds
        else:
            best = min(best, max(done.values()))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_the_longest_chain_is_the_longest_of_all(seed):
    tasks = random_tasks(seed, 8)
    chain = longest_chain(tasks)
    assert chain.seconds == max(all_chains(tasks))
    by_name = {task.name: task for task in tasks}
    assert sum(by_name[name].seconds for name in chain.names) == chain.seconds
    for before, after in itertools.pairwise(chain.names):
        assert before in by_name[after].after


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_a_span_lies_between_the_best_and_twice_the_best(seed, cores):
    tasks = random_tasks(seed)
    span, best = makespan(tasks, cores), best_span(tasks, cores)
    assert best <= span <= 2 * best
    if cores == 1:
        assert span == best == sum(task.seconds for task in tasks)


@pytest.mark.parametrize("seed", range(8))
def test_with_cores_for_all_the_longest_chain_remains(seed):
    tasks = random_tasks(seed)
    assert makespan(tasks, 100) == longest_chain(tasks).seconds


def test_cards_are_shared_and_cores_go_on_meanwhile():
    on_card = [Task(f"gpu{n}", 10.0, 1, 1) for n in range(3)]
    on_core = [Task(f"cpu{n}", 10.0) for n in range(3)]
    assert makespan([*on_card, *on_core], cores=2, gpus=1) == 30.0
    assert makespan([*on_card, *on_core], cores=6, gpus=3) == 10.0


def test_nothing_takes_no_time_and_a_circle_is_an_error():
    assert makespan([], 4) == longest_chain([]).seconds == 0.0
    with pytest.raises(ValueError, match="wait for one another"):
        longest_chain([Task("a", 1.0, after=("b",)), Task("b", 1.0, after=("a",))])
