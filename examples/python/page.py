"""Pages through everything that a read key sees, with a client that is generated from docs/openapi.json.

    pip install -r requirements.txt
    openapi-python-client generate --path ../../docs/openapi.json --output-path client --overwrite
    pip install ./client
    ASSAY_KEY=svc_ro_… python page.py
"""

import os

from assay_test_results_read_api_client import AuthenticatedClient
from assay_test_results_read_api_client.api.flakiness import list_flaky_tests
from assay_test_results_read_api_client.api.projects import list_projects
from assay_test_results_read_api_client.api.runs import list_runs
from assay_test_results_read_api_client.types import UNSET

client = AuthenticatedClient(
    base_url=os.environ.get("ASSAY_URL", "http://127.0.0.1:8080/api/v1"),
    token=os.environ["ASSAY_KEY"],
    raise_on_unexpected_status=True,
)

for project in list_projects.sync(client=client).projects:
    # The runs list pages by cursor: it stays complete while newer runs arrive.
    runs, cursor = 0, UNSET
    while cursor is not None:
        page = list_runs.sync(project.id, client=client, cursor=cursor)
        runs += len(page.runs)
        cursor = page.next_cursor
    assert runs == page.total, f"{runs} of {page.total} runs"

    # The flaky list is judged whole at each call, so it pages by number.
    flaky, number, last = [], 1, 1
    while number <= last:
        page = list_flaky_tests.sync(project.id, client=client, page=number)
        flaky += [f"{test.status.value}: {test.test_name} ({test.explanation})" for test in page.tests]
        number, last = number + 1, page.page.page_count
    print(f"{project.name}: {runs} runs, {len(flaky)} flaky or broken tests")
    for line in flaky:
        print(f"  {line}")
