from pathlib import Path

from benchmarks.common.atomic import atomic_path
from benchmarks.records.cells import collect
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    frames = collect(Path(record).parent for record in snakemake.input.records)
    for path, frame in zip(snakemake.output, frames, strict=True):
        with atomic_path(path) as temporary:
            frame.to_csv(temporary, index=False)
