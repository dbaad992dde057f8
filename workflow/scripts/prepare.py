from pathlib import Path

from benchmarks.data import load
from benchmarks.data.prepared import write
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    folder = Path(snakemake.output[0]).parent
    train, test = load(snakemake.wildcards.dataset)
    write(folder, train, test, train.meta)
