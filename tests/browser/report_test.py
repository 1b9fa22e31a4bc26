# SPDX-License-Identifier: Apache-2.0
# Clicks through the report of `toto backtest` in a real browser.
#   python3 tests/browser/report_test.py build/release/toto [SCREENSHOT.png]
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

from browser import Browser

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(ROOT, "build/release/toto")
PICTURE = sys.argv[2] if len(sys.argv) > 2 else None
SYMBOLS = ("AA", "BB", "<b>odd</b>")


def write_bars(folder):
    with open(os.path.join(folder, "all.csv"), "w", encoding="utf-8") as file:
        file.write("Date,Symbol,Open,High,Low,Close,Volume\n")
        for number, symbol in enumerate(SYMBOLS):
            for t in range(160):
                day = datetime.date(2020, 1, 1) + datetime.timedelta(days=t)
                p = 50 + 20 * number + 6 * math.sin(t / 9) + 3 * math.sin(t / 2.3 + number)
                file.write(f"{day},{symbol},{p:.2f},{p + 1:.2f},{p - 1:.2f},{p + 0.3:.2f},{100 + t}\n")
    with open(os.path.join(folder, "broken.csv"), "w", encoding="utf-8") as file:
        file.write("Date,Open,High,Low,Close\n2020-01-01,1,2,3\n")


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="toto-report-")
        write_bars(cls.folder.name)
        out = os.path.join(cls.folder.name, "out")
        done = subprocess.run([PROGRAM, "backtest", cls.folder.name, "--model",
                               os.path.join(ROOT, "tests/data/golden/toto1-tiny-a"), "--targets", "close,high",
                               "--horizon", "4", "--context", "48", "--trade", "--quiet", "--out", out],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 65, done.stderr  # one file is broken
        cls.page = os.path.join(out, "report.html")
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            cls.summary = json.load(file)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.open(self.page)

    def tearDown(self):
        self.assertEqual(self.browser.problems, [])

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def column(self, number):
        return self.browser.run("[...document.querySelectorAll('#summary tbody tr')]"
                                f".map(r => r.children[{number}].textContent)")

    def test_nothing_is_fetched(self):
        self.assertEqual({u for u in self.browser.requests if not u.startswith(("file://", "data:"))}, set())

    def test_every_group_has_a_row_and_names_stay_text(self):
        # All, each target, each symbol, each symbol and target.
        self.assertEqual(len(self.column(0)), 1 + 2 + 3 + 6)
        self.assertIn("<b>odd</b>", self.column(0))
        self.assertEqual(self.browser.run("document.querySelectorAll('#summary b').length"), 0)

    def test_the_table_shows_the_numbers_of_the_summary(self):
        total = self.summary["metrics"][0]
        self.assertEqual(self.column(3)[0], f"{total['mase']:.3f}")
        self.assertEqual(int(self.column(2)[0]), total["count"])

    def test_headings_sort(self):
        button = "#summary th button[data-column='3']"
        self.browser.click(button)
        up = [float(x) for x in self.column(3)]
        self.assertEqual(up, sorted(up))
        self.assertEqual(self.browser.run("document.querySelectorAll('th[aria-sort=ascending]').length"), 1)
        self.browser.click(button)
        self.assertEqual([float(x) for x in self.column(3)], sorted(up, reverse=True))
        self.browser.click("#summary th button[data-column='0']")
        self.assertEqual(self.column(0), sorted(self.column(0), key=str.lower))

    def test_a_row_shows_its_pictures(self):
        before = [self.text("#cards"), self.browser.run("document.querySelector('#time path').outerHTML")]
        row = self.column(0).index("BB")
        self.browser.click(f"#summary tbody tr:nth-child({row + 1})")
        self.assertIn("BB", self.text("#pictures"))
        self.assertIn("BB", self.text("#fan-title"))
        after = [self.text("#cards"), self.browser.run("document.querySelector('#time path').outerHTML")]
        self.assertNotEqual(before[0], after[0])
        self.assertNotEqual(before[1], after[1])
        self.assertEqual(self.browser.run("document.querySelectorAll('#summary tr.chosen').length"), 1)

    def test_windows_go_back_and_forth(self):
        last = self.text("#fan-title")
        self.browser.click("#before")
        self.browser.click("#before")
        self.assertNotEqual(self.text("#fan-title"), last)
        self.browser.click("#after")
        self.browser.click("#after")
        self.browser.click("#after")  # there is none after the last
        self.assertEqual(self.text("#fan-title"), last)
        self.browser.choose("#series", "3")
        self.assertIn("BB / high", self.text("#fan-title"))

    def test_baselines_are_in_every_picture(self):
        for picture in ("fan", "steps", "calibration", "time"):
            strokes = self.browser.run(f"[...document.querySelectorAll('#{picture} path')]"
                                       ".filter(p => p.getAttribute('d').length > 8)"
                                       ".map(p => p.getAttribute('stroke'))")
            for colour in ("--model", "--last", "--season", "--drift"):
                self.assertIn(f"var({colour})", strokes, picture)
        self.assertEqual(self.browser.run("document.querySelectorAll('#fan polygon').length"), 3)
        self.assertIn("var(--actual)", self.browser.run("document.querySelector('#fan').innerHTML"))

    def test_measures_can_be_chosen(self):
        seen = set()
        for measure in ("mase", "return_mae", "wql", "relative"):
            self.browser.choose("#measure", measure)
            seen.add(self.browser.run("document.querySelector('#steps').innerHTML"))
        self.assertEqual(len(seen), 4)

    def test_the_pointer_reads_values(self):
        for picture in ("fan", "steps", "calibration", "time"):
            self.browser.point_at(f"#{picture} svg")
            self.assertRegex(self.text(f"#{picture}-read"), r"(known|toto) -?[0-9.]+", picture)

    def test_what_is_not_good_is_said(self):
        self.assertIn("broken was not evaluated", self.text("#findings"))
        self.assertIn("ragged_row", self.text("#findings"))
        self.assertIn("no advice", self.text("#trades"))

    def test_it_fits_a_narrow_screen_and_the_dark(self):
        self.addCleanup(self.browser.call, "Emulation.clearDeviceMetricsOverride")
        self.addCleanup(self.browser.call, "Emulation.setEmulatedMedia", features=[])
        self.browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.open(self.page)
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 400)
        self.assertEqual(self.browser.run("getComputedStyle(document.body).backgroundColor"), "rgb(22, 24, 29)")

    def page_of(self, missing):
        """The page of one window of four bars, of which the last ones were not observed."""
        folder = os.path.join(self.folder.name, f"missing{missing}")
        os.mkdir(folder)
        with open(os.path.join(folder, "AA.csv"), "w", encoding="utf-8") as file:
            file.write("Date,Open,High,Low,Close\n")
            for t in range(120):
                day = datetime.date(2020, 1, 1) + datetime.timedelta(days=t)
                close = "" if t >= 120 - missing else f"{50 + 6 * math.sin(t / 9):.2f}"
                file.write(f"{day},50,60,40,{close}\n")
        out = os.path.join(folder, "out")
        done = subprocess.run([PROGRAM, "backtest", folder, "--model",
                               os.path.join(ROOT, "tests/data/golden/toto1-tiny-a"), "--horizon", "4", "--windows", "1",
                               "--context", "48", "--quiet", "--out", out], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.browser.open(os.path.join(out, "report.html"))

    def test_where_nothing_was_observed_the_page_says_so(self):
        self.page_of(4)
        self.assertIn("nothing can be measured", self.text("#nothing"))
        self.assertIn("none of these bars was observed", self.text("#fan-read"))

    def test_steps_without_observations_leave_the_others_where_they_are(self):
        self.page_of(2)
        self.assertRegex(self.text("#fan-read"), r"^\d of 2 bars inside")
        self.assertIn("too few windows", self.text("#cards"))
        labels = self.browser.run("[...document.querySelectorAll('#steps text[text-anchor=middle]')].map(t => t.textContent)")
        self.assertEqual(labels, ["1", "2", "3", "4"])
        shown = self.browser.run("(() => { const w = D.fans[0].windows[0]; let sum = 0; w.actual.forEach((a, i) =>"
                                 "{ if (a !== null) sum += Math.abs(w.point[i] - a); }); return short(sum / 2); })()")
        self.assertIn(f"mean absolute error toto {shown},", self.text("#fan-read"))

    def test_screenshot(self):
        path = PICTURE or os.path.join(self.folder.name, "report.png")
        self.browser.screenshot(path)
        self.assertGreater(os.path.getsize(path), 50000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
