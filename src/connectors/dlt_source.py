"""A dlt source of Practice Data: a table for each resource, kept in step by the feed of all changes.

    pip install "dlt[duckdb]" && python3 dlt_source.py

PRACTICE_DATA_URL and PRACTICE_DATA_API_KEY name the service and the key. practice_data.py lies beside this file.
"""
import json
import os
import sys
from decimal import Decimal

import dlt

from practice_data import PracticeData, PracticeDataError

AGAIN = "read everything again: dlt_source.py --refresh, or pipeline.run(..., refresh='drop_sources')"


def exact(record):
    """Numbers as decimals: of 22 and 23.25, dlt would make two columns."""
    return json.loads(json.dumps(record), parse_int=Decimal, parse_float=Decimal)


@dlt.source(name="practice_data")
def practice_data(url=None, api_key=None):
    client = PracticeData(url or os.environ["PRACTICE_DATA_URL"], api_key or os.environ["PRACTICE_DATA_API_KEY"])

    @dlt.resource(
        name="changes",
        table_name=lambda item: item["resource"],
        primary_key="id",
        write_disposition="merge",
        columns={
            "deleted_row": {"data_type": "bool", "hard_delete": True},
            "change_number": {"data_type": "bigint", "dedup_sort": "desc"},
        },
    )
    def changes():
        # dlt saves this state with the rows that it loads.
        state = dlt.current.resource_state()
        known, number = state.setdefault("resources", []), state.get("number", 0)
        try:
            for page in client.changes(state.get("cursor")):
                rows = []
                for number, item in enumerate(page["body"], number + 1):
                    resource = item["resource"]
                    if "reset" in item and resource in known:
                        raise RuntimeError(f"The table of {resource} was emptied: {AGAIN}")
                    row = exact(item.get("record", {"id": item.get("removed")}))
                    if row["id"] is not None:
                        row = {**row, "resource": resource.replace("-", "_"), "change_number": number}
                        rows.append({**row, "deleted_row": "removed" in item})
                    if resource not in known:
                        known.append(resource)
                yield rows
                state.update(cursor=page["cursor"], number=number)
        except PracticeDataError as error:
            if error.status == 410:
                raise RuntimeError(f"The order of changes restarted: {AGAIN}") from error
            raise

    return changes


if __name__ == "__main__":
    pipeline = dlt.pipeline("practice_data", destination="duckdb", dataset_name="practice_data")
    print(pipeline.run(practice_data(), refresh="drop_sources" if "--refresh" in sys.argv else None))
