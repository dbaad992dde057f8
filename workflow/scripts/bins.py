from benchmarks.records.bins import bins, write_bins
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    write_bins(bins(snakemake.input), snakemake.output[0])
