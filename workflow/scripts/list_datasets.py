import json
from pathlib import Path

from benchmarks.common.atomic import write_json
from benchmarks.data.prepare import status_table

paths = [Path(path) for path in snakemake.input]
records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
table = status_table(records)
Path(snakemake.log[0]).write_text(table + "\n", encoding="utf-8")
write_json(paths[0].parent / "status.json", records)
for path in paths:
    path.unlink()  # so that the next `snakemake datasets` looks again
print(table)
