from pathlib import Path

from benchmarks.records.cells import collect, write_cells, write_runs
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    cells, runs = collect(Path(record).parent for record in snakemake.input.records)
    write_cells(cells, snakemake.output.cells)
    write_runs(runs, snakemake.output.runs)
