from benchmarks.papers.audit.page import write_audit
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    frame = write_audit(snakemake.output.csv, snakemake.output.page, snakemake.params.papers)
    print(frame["verdict"].value_counts().to_string())
