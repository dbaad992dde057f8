"""What jobs ask SLURM for."""

import signal

import yaml

PARTITIONS = {
    "partitions": {
        "short": {"max_runtime": 120, "max_mem_mb": 5000},
        "long": {"max_runtime": "30d", "max_mem_mb": 5000},
        "gpu": {"max_runtime": "30d", "max_mem_mb": 5000, "max_gpu": 1},
    }
}


def test_jobs_ask_for_the_budgets_of_their_cells(started):
    """Nothing runs: on a drained node the requests are read, and then withdrawn by two signals."""
    blocks = [
        {"bases": ["DiSMEC"], "shards": 2, "budget": {"wall_s": 90 * 60, "memory_mb": 1500}},
        {"bases": ["popularity"], "budget": {"wall_s": 10 * 3600, "threads": 2}},
        {"bases": ["random"], "budget": {"device": "cuda", "memory_mb": 700}},
    ]
    cells = [{"datasets": ["tiny-bow"], **block} for block in blocks]
    run = started({"cells": cells, "top_k": 10, "budget": {"memory_mb": 1000}})
    partitions = run.workspace.folder / "partitions.yaml"
    partitions.write_text(yaml.safe_dump(PARTITIONS))
    prepared = "results/data/tiny-bow/meta.json"
    run.workspace.run("--cores", "1", prepared, config=run.config)
    run.cluster.drain("nothing is to run")
    try:
        run.start("--slurm-partition-config", str(partitions), "results/cells.csv")
        run.until(lambda: len(run.cluster.jobs("PENDING")) == 4, "four jobs are queued")
        run.queue()
        shown = {}
        for job, of in run.cluster.jobs("PENDING").items():
            shown[of.removeprefix("rule_")] = run.cluster.show(job)
        shards = shown["fit_shard_wildcards_tiny-bow_DiSMEC_plain_0"]
        # The scheduler's limits are wider than the supervisor's, which end a cell in words.
        assert (shards["TimeLimit"], shards["MinMemoryNode"]) == ("01:35:00", "2500M")
        assert (shards["Partition"], shards["NumCPUs"]) == ("short", "1")
        longer = shown["run_cell_wildcards_tiny-bow_popularity_plain_0"]
        assert (longer["TimeLimit"], longer["MinMemoryNode"]) == ("10:05:00", "2000M")
        assert (longer["Partition"], longer["NumCPUs"]) == ("long", "2")
        on_card = shown["run_cell_wildcards_tiny-bow_random_plain_0"]
        assert (on_card["Partition"], on_card["TresPerJob"]) == ("gpu", "gres:gpu:1")
        for _ in range(2):
            run.process.send_signal(signal.SIGINT)
            run.until(lambda: "Stopping." in run.words(), "the signal is understood")
        assert run.process.wait(300) != 0
        run.transcript.says("After two signals the run has ended.")
        assert run.cluster.jobs("PENDING", "RUNNING") == {}
        run.transcript.says("It has withdrawn its jobs.")
    finally:
        run.cluster.resume()
