from pathlib import Path

from benchmarks.data.prepare import ensure
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    name = snakemake.wildcards.dataset
    root = Path(snakemake.output[0]).parents[1]
    folder = ensure(name, root, snakemake.params.mirror, snakemake.params.cards)
    (folder / "meta.json").touch()  # newer than its inputs, even if it was ready
