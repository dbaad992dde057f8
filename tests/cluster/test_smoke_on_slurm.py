"""The smoke configuration through SLURM."""


def test_the_smoke_configuration_gives_the_local_values(started, root):
    run = started(root / "config/smoke.yaml")
    run.start("results/cells.csv")
    run.finish()
    run.queue()
    assert run.workspace.read("results/cells.csv") == run.locally()
    run.transcript.says("`results/cells.csv` is that of the same run without a cluster.")
    arrays = {job.partition("_")[0] for job, of in run.cluster.jobs().items() if "fit_shard" in of}
    assert len(arrays) == 2, "the shards of each of the two cells are one array"
    assert max(run.submitted().values()) == 2, "a task per shard; everything else once"
