from pathlib import Path

import pandas as pd

from benchmarks.records.cells import read_cells
from benchmarks.render.table import relative_improvement, write_table
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    cells = read_cells(snakemake.input.cells)
    table = relative_improvement(cells, snakemake.params.ks, pd.read_csv(snakemake.input.intervals))
    write_table(table, Path(snakemake.output[0]).with_suffix(""))
