from pathlib import Path

from benchmarks.data.prepared import read_meta
from benchmarks.records.cells import collect, write_cells, write_runs
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    folders = [Path(record).parent for record in snakemake.input.records]
    cells, runs = collect(folders, lambda dataset: read_meta(f"results/data/{dataset}"))
    write_cells(cells, snakemake.output.cells)
    write_runs(runs, snakemake.output.runs)
