from benchmarks.records.intervals import intervals, write_intervals
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    write_intervals(intervals(snakemake.input), snakemake.output[0])
