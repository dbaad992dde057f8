from pathlib import Path

from benchmarks.papers import dataset_counts
from benchmarks.papers.spec import load_papers
from benchmarks.render import label_distributions as dataset_figures
from benchmarks.render.table import write_table
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    data = Path(snakemake.input[0]).parents[1]
    for paper in load_papers():
        table = dataset_counts.table(paper, data)
        write_table(table, f"results/tables/datasets_{paper.id}")
    write_table(dataset_counts.overview(data), "results/tables/datasets")
    dataset_figures.write_all(data, "figures")
