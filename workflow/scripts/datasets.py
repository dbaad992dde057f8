import json
from pathlib import Path

from benchmarks.data.prepare import status_table

table = status_table([json.loads(Path(path).read_text()) for path in snakemake.input])
Path(snakemake.log[0]).write_text(table + "\n", encoding="utf-8")
print(table)
