from pathlib import Path

from benchmarks import dataset_figures, dataset_tables
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    data = Path(snakemake.input[0]).parents[1]
    dataset_tables.write_all(data, "results/tables")
    dataset_figures.write_all(data, "figures")
