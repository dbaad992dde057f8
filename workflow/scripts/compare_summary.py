import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.papers.compare import tally
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    frames = dict(zip(snakemake.params.papers, map(pd.read_csv, snakemake.input), strict=True))
    write_csv(snakemake.output[0], tally(frames))
