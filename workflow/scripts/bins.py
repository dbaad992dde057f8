from benchmarks.records.bins import bins, write_bins
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    write_bins(bins(snakemake.input), snakemake.output[0])
