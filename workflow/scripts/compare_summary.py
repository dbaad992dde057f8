import pandas as pd

from benchmarks.common.atomic import write_csv
from benchmarks.papers.compare import tally
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    frames = dict(zip(snakemake.params.papers, map(pd.read_csv, snakemake.input), strict=True))
    write_csv(snakemake.output[0], tally(frames))
