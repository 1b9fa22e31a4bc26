# SPDX-License-Identifier: Apache-2.0
# Looks at the pages of `toto forecast --plot` and `toto detect --plot` in a real browser: in a wide window, and
# in one of 360 pixels.
#   python3 tests/browser/plot_test.py build/release/toto [SCREENSHOT.png]
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


class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="toto-plot-")
        cls.page, cls.anomalies = (os.path.join(cls.folder.name, name) for name in ("plot.html", "anomalies.html"))
        table = os.path.join(cls.folder.name, "latency.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.write("time,latency\n")
            for t in range(900):
                value = 50 + 10 * math.sin(t / 20) + math.sin(t * t) + (60 if t in (500, 501, 700) else 0)
                file.write(f"2024-03-{1 + t // 288:02}T{t % 288 // 12:02}:{t % 12 * 5:02}:00,{value:.3f}\n")
        done = subprocess.run([PROGRAM, "detect", table, "--quiet", "--plot", cls.anomalies], check=False)
        assert done.returncode == 1, done  # there are anomalies
        subprocess.run([PROGRAM, "forecast", os.path.join(ROOT, "examples/data/seattle_weather.csv"), "--values",
                        "temp_max,wind", "--horizon", "28", "--seed", "1", "--level", "80,95", "--quiet", "--plot",
                        cls.page], check=True)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def show(self, width, page=None):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=2, mobile=True)
        self.browser.open(page or self.page, ready="")

    def tearDown(self):
        self.assertEqual(self.browser.problems, [])

    def drawn(self):
        """Which drawing is seen."""
        return self.browser.run("[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 0)"
                                ".map(s => s.getAttribute('class'))")

    def test_each_window_has_its_drawing(self):
        for width, name in ((360, "narrow"), (599, "narrow"), (800, "wide"), (1280, "wide")):
            self.show(width)
            self.assertEqual(self.drawn(), [name], width)

    def test_a_telephone_can_read_it(self):
        for page in (self.page, self.anomalies):
            self.show(360, page)
            self.check_fits()
        if PICTURE:
            self.browser.screenshot(PICTURE)

    def check_fits(self):
        # Nothing is to be scrolled to the side, and no text is smaller than 10 pixels or cut off.
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 360)
        texts = self.browser.run("[...document.querySelectorAll('.narrow text')].map(t => { const r = "
                                 "t.getBoundingClientRect(); return [t.textContent, r.left, r.right, "
                                 "parseFloat(getComputedStyle(t).fontSize)]; })")
        self.assertGreater(len(texts), 15)
        for text, left, right, size in texts:
            self.assertGreaterEqual(size, 10, text)
            self.assertGreaterEqual(left, 0, text)
            self.assertLessEqual(right, 360, text)

    def test_labels_do_not_touch(self):
        for width, name in ((360, "narrow"), (1280, "wide")):
            self.show(width)
            boxes = self.browser.run(f"[...document.querySelectorAll('.{name} text')].map(t => {{ const r = "
                                     "t.getBoundingClientRect(); return [t.textContent, r.left, r.right, r.top, "
                                     "r.bottom]; })")
            for i, (a, left, right, top, bottom) in enumerate(boxes):
                for b, left2, right2, top2, bottom2 in boxes[:i]:
                    apart = right <= left2 or right2 <= left or bottom - 2 <= top2 or bottom2 - 2 <= top
                    self.assertTrue(apart, f"{width}: {a!r} and {b!r}")

    def test_a_finger_reads_values(self):
        for width, name in ((360, "narrow"), (1280, "wide")):
            self.show(width)
            self.browser.point_at(f".{name} g .m")  # not that of the legend
            tip = self.browser.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")
            for word in ("Median", "80 %", "95 %"):
                self.assertIn(word, tip)
            right = self.browser.run("document.getElementById('tip').getBoundingClientRect().right")
            self.assertLessEqual(right, width)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
