# SPDX-License-Identifier: Apache-2.0
# schemathesis reads our OpenAPI document and makes requests of it, good and bad ones.
import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = os.environ.get("TOTO_SCHEMA_EXAMPLES", "15")


def test_the_interface_is_as_its_document_says(server, tmp_path):
    # A schema cannot say that rows have one length or that a model has this name, so a request that it
    # allows may still be refused: the one check that is left out.
    # 504 is the answer to a request that allows itself a millisecond.
    (tmp_path / "schemathesis.toml").write_text(
        '[checks]\nmax_response_time = 60.0\n[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", 504]\n')
    run = subprocess.run(
        [Path(sys.executable).with_name("schemathesis"), "run", server.url + "/openapi.json", "--checks", "all",
         "--exclude-checks", "positive_data_acceptance", "--max-examples", EXAMPLES, "--seed", "1",
         "--request-timeout", "60", "--suppress-health-check", "all"],
        cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert re.search(r"\b(\d+) generated, \1 passed", run.stdout), run.stdout[-3000:]
    assert server.get("/health").status == 200
