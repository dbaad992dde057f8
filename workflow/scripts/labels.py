from pathlib import Path

from benchmarks.common.atomic import write_csv
from benchmarks.records.cell import Cell
from benchmarks.records.labels import labels
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    cells = [Cell.from_path(Path(path).parent) for path in snakemake.input.predictions]
    write_csv(snakemake.output[0], labels(snakemake.wildcards.dataset, cells))
