# SPDX-License-Identifier: Apache-2.0
# The page at / in a real browser, at desktop and phone size, and what axe says of it.
import gzip
import json
import shutil
import sys
import time
from pathlib import Path

import axe_playwright_python
import pytest
from conftest import ROOT, request

sys.path.insert(0, str(ROOT / "tests/browser"))
from browser import Browser  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe*.js"))


@pytest.fixture(params=[(1280, 900), (360, 740)], ids=["desktop", "phone"])
def browser(request, server):
    one = Browser(*request.param)
    one.width = request.param[0]
    one.call("Emulation.setDeviceMetricsOverride", width=request.param[0], height=request.param[1],
             deviceScaleFactor=1, mobile=request.param[0] < 500)
    one.open(server.url + "/")
    yield one
    assert one.problems == []
    outside = [u for u in one.requests if not u.startswith((server.url, "blob:", "data:"))]
    assert outside == [], "the page asks other hosts"
    one.close()


def wait(browser, expression, seconds=60):
    end = time.monotonic() + seconds
    while not browser.run(expression):
        assert time.monotonic() < end, (expression, browser.run("document.getElementById('state').textContent"))
        time.sleep(0.05)


def text(browser, identity):
    return browser.run(f"document.getElementById({json.dumps(identity)}).textContent")


def test_the_example_needs_no_click(browser):
    assert "example" in text(browser, "state")
    assert "sunspots" in text(browser, "title") and "48 steps" in text(browser, "title")
    wait(browser, "document.getElementById('chart').naturalWidth > 100")
    assert "toto-nano-2" in text(browser, "facts")
    assert browser.run("document.querySelectorAll('#numbers tbody tr').length") == 48
    assert browser.run("document.documentElement.scrollWidth") <= browser.width, "wider than the window"


def test_a_pasted_table_is_measured_and_shown_as_text(browser):
    odd = "<img src=x onerror=alert(1)>"
    rows = "\n".join(f"2026-01-{d:02d},{d % 7},{d * d % 11}" for d in range(1, 32))
    browser.run("document.querySelector('form details').open = true")
    browser.run(f"document.getElementById('text').value = {json.dumps(f'date,a,{odd}' + chr(10) + rows)}")
    browser.run("document.getElementById('horizon').value = '5'")
    browser.click("button[type=submit]")
    wait(browser, "document.getElementById('state').textContent === 'Read pasted.'")
    assert odd in text(browser, "title")
    assert browser.run("document.querySelectorAll('img[onerror]').length") == 0
    browser.click("#holdout")
    wait(browser, "document.querySelectorAll('#measures tbody tr').length === 2")
    assert "The last 5 steps" in text(browser, "title")
    for kind in ("csv", "json", "svg"):
        assert browser.run(f"document.getElementById('{kind}').href.startsWith('blob:')"), kind
    wait(browser, "document.getElementById('chart').complete")
    assert browser.run("document.documentElement.scrollWidth") <= browser.width, "wider than the window"
    browser.click("#curl")  # where copying is not allowed the text is in the field
    wait(browser, "/opied|the field/.test(document.getElementById('state').textContent)")


def test_anomalies_are_marked(browser):
    rows = "\n".join(f"2026-01-{1 + h // 24:02d} {h % 24:02d}:00,{10 + h % 24 + (500 if h == 600 else 0)}" for h in range(700))
    browser.run("document.querySelector('form details').open = true")
    browser.run(f"document.getElementById('text').value = {json.dumps('date,a' + chr(10) + rows)}")
    browser.click("#anomalies")
    wait(browser, "!document.getElementById('odd').hidden")
    assert "2026-01-26 00:00" in text(browser, "odd-points") and "510" in text(browser, "odd-points")
    wait(browser, "document.getElementById('odd-chart').naturalWidth > 100")
    assert browser.run("document.documentElement.scrollWidth") <= browser.width, "wider than the window"


def test_what_is_wrong_is_said(browser):
    browser.run("document.querySelector('form details').open = true")
    browser.run("document.getElementById('text').value = 'date,a\\n2026-01-01,x\\n2026-01-02,1\\n2026-01-03,2'")
    browser.click("button[type=submit]")
    wait(browser, "document.getElementById('state').className === 'error'")
    assert text(browser, "state")
    browser.problems = [p for p in browser.problems if "400" not in p]  # the browser notes the status


def test_it_is_driven_by_the_keyboard(browser):
    order = []
    for _ in range(10):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        order.append(browser.run("document.activeElement.id || document.activeElement.type || "
                                 "document.activeElement.tagName"))
    for part in ("file", "horizon", "model", "seed", "holdout", "submit", "anomalies", "example"):
        assert part in order, order


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, scheme):
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.click("#anomalies")
    wait(browser, "!document.getElementById('odd').hidden")
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    browser.run(AXE.read_text(encoding="utf-8") + ";1")
    browser.run("axe.run().then((r) => { window.found = JSON.stringify(r.violations.map((v) => "
                "[v.id, v.nodes.map((n) => n.html + n.failureSummary)])); }) && 1")
    wait(browser, "window.found")
    assert json.loads(browser.run("window.found")) == []


def test_it_is_small_and_allows_nothing_else(server):
    total = 0
    for path in ("/", "/page.css", "/page.js"):
        answer = request("GET", server.url + path, headers={"Accept-Encoding": "gzip"})
        assert answer.status == 200 and answer.headers["Content-Encoding"] == "gzip"
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert b"http" not in gzip.decompress(answer.body).replace(b"http-equiv", b"").replace(b"urllib", b"") \
            or path == "/page.js"
        total += len(answer.body)
    assert total <= 100_000


def test_tables_that_are_wrong_or_large(server):
    post = lambda body, query="": request("POST", f"{server.url}/ui/forecast?{query}", body)
    assert post(b"").status == 200
    assert post(b"", "horizon=0").status == 400
    assert post(b"", "horizon=100000").status == 422
    assert post(b"", "model=none").status == 404
    assert post(b"", "a").status == 400
    assert post(b"\0\1\2").json()["error"]["code"] == "encoding"
    assert post(b"a,b\n").json()["error"]["code"] == "no_rows"
    many = ",".join(f"s{i}" for i in range(40)) + "\n" + "\n".join(
        ",".join(str((t * i) % 11) for i in range(1, 41)) for t in range(20))
    answer = post(many.encode(), "horizon=3").json()
    assert len(answer["series"]) == 12 and answer["read"]["series_left_out"] == 28
    short = post(many.encode(), "horizon=15&holdout=1")
    assert (short.status, short.json()["error"]["code"]) == (400, "too_short")
