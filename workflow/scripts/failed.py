from workflow.failed import describe, read_records

records = read_records(snakemake.params.records)
print(describe(records, len(snakemake.params.records), snakemake.params.configfiles))
