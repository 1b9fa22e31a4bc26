# SPDX-License-Identifier: Apache-2.0
# A headless Chromium, driven through its debugging pipe with nothing but the standard library.
#
# Chromium reads commands from file descriptor 3 and writes answers and events to 4: JSON, a zero byte after
# each (https://chromedevtools.github.io/devtools-protocol/).
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, width=1280, height=900):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            raise SystemExit("there is no chromium; on Debian: apt-get install chromium")
        self.profile = tempfile.mkdtemp(prefix="toto-browser-")
        command_read, self.commands = os.pipe()
        self.answers, answer_write = os.pipe()

        def connect():
            # Both may have the numbers 3 and 4 themselves, so they move out of the way first.
            read, write = os.dup(command_read), os.dup(answer_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        arguments = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-extensions",
                     f"--window-size={width},{height}", f"--user-data-dir={self.profile}",
                     "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(arguments, close_fds=False, preexec_fn=connect,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(command_read)
        os.close(answer_write)
        self.rest = b""
        self.last = 0
        self.session = None
        self.problems = []  # exceptions and errors of the page
        self.requests = []  # what it fetched
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", seconds=10)
            self.process.wait(timeout=10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, seconds=60, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            answer = self._receive(end)
            if answer.get("id") != self.last:
                self._note(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def _receive(self, end):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def _note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, path, ready="yes"):
        """`ready`: what the page says of itself once it is; empty for one that says nothing."""
        self.call("Page.navigate", url=path if "://" in path else "file://" + os.path.abspath(path))
        end = time.monotonic() + 30
        while self.run("document.readyState + (document.body && document.body.dataset.ready || '')") != "complete" + ready:
            if time.monotonic() > end:
                raise RuntimeError(f"the page was not ready: {self.problems}")
            time.sleep(0.05)

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def _middle(self, selector):
        box = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                       "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
                       "return [r.x + r.width / 2, r.y + r.height / 2, r.width]; })()")
        if not box or box[2] == 0:
            raise RuntimeError(f"nothing to see of {selector}")
        return box[0], box[1]

    def click(self, selector):
        """A real click of the mouse, in the middle of an element."""
        x, y = self._middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def point_at(self, selector):
        x, y = self._middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def choose(self, selector, value):
        """Chooses an option, as a user would with the keyboard."""
        self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
                 "e.dispatchEvent(new Event('change', {bubbles: true})); return e.value; })()")

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
