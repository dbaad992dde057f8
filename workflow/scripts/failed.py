from pathlib import Path

from benchmarks.records.cells import failures, read_cells
from workflow.failed import describe
from workflow.runtime.seals import check

check(Path(snakemake.input[0]))
print(describe(failures(read_cells(snakemake.input[0])), snakemake.params.configfiles))
