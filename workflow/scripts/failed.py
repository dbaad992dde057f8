from benchmarks.records.cells import failures, read_cells
from workflow.failed import describe

print(describe(failures(read_cells(snakemake.input[0])), snakemake.params.configfiles))
