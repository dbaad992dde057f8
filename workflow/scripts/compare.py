from benchmarks.papers.compare import prepared_facts, saved_instances
from benchmarks.papers.compare_page import write_comparison
from benchmarks.records.cells import read_cells, read_runs
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    write_comparison(
        snakemake.wildcards.paper,
        read_cells(snakemake.input.cells),
        saved_instances("results"),
        snakemake.output.csv,
        snakemake.output.page,
        runs=read_runs(snakemake.input.runs),
        facts=prepared_facts("results"),
        papers=snakemake.params.papers,
    )
