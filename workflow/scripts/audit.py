from benchmarks.papers.audit.page import write_audit
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    frame = write_audit(snakemake.output.csv, snakemake.output.page, snakemake.params.papers)
    print(frame["verdict"].value_counts().to_string())
