from pathlib import Path

from benchmarks.cells import read_cells
from benchmarks.tables import relative_improvement, write_table
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    table = relative_improvement(read_cells(snakemake.input[0]), snakemake.params.ks)
    write_table(table, Path(snakemake.output[0]).with_suffix(""))
