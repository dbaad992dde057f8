from pathlib import Path

from benchmarks.records.cells import collect, write_cells, write_runs
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    cells, runs = collect(Path(record).parent for record in snakemake.input.records)
    write_cells(cells, snakemake.output.cells)
    write_runs(runs, snakemake.output.runs)
