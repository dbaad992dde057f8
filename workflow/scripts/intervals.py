from pathlib import Path

from benchmarks.records.intervals import write_intervals
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    write_intervals(map(Path, snakemake.input), Path(snakemake.output[0]))
