from benchmarks.records.intervals import intervals, write_intervals
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    write_intervals(intervals(snakemake.input), snakemake.output[0])
