from pathlib import Path

from benchmarks.papers import dataset_counts as dataset_tables
from benchmarks.render import label_distributions as dataset_figures
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    data = Path(snakemake.input[0]).parents[1]
    dataset_tables.write_all(data, "results/tables")
    dataset_figures.write_all(data, "figures")
