"""A browser for the tests of the page: Chromium by the WebDriver protocol, with Python alone."""
import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Tab": "\ue004", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
        "ArrowDown": "\ue015", "Home": "\ue011", "End": "\ue010", "Escape": "\ue00c", "Shift": "\ue008", "Space": " "}


class Browser:
    def __init__(self, languages="en"):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        driver = shutil.which("chromedriver")
        if not chromium or not driver:
            raise SystemExit("The tests of the page need Chromium and its driver "
                             "(Debian: chromium chromium-driver fonts-noto-cjk).")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.driver = subprocess.Popen([driver, f"--port={port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        self.session = ""
        arguments = ["--headless=new", "--hide-scrollbars", "--force-color-profile=srgb", f"--lang={languages}",
                     f"--accept-lang={languages}",
                     "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium refuses to run as root with it
        options = {"binary": chromium, "args": arguments, "prefs": {"intl.accept_languages": languages}}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        for attempt in range(50):
            try:
                answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
                break
            except (urllib.error.URLError, ConnectionError):
                if attempt == 49:
                    raise
                time.sleep(0.2)
        self.session = f"/session/{answer['sessionId']}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + self.session + path, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def script(self, text, *arguments):
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def asynchronous(self, text, *arguments):
        return self.call("POST", "/execute/async", {"script": text, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def resize(self, width, height=900, scale=1):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                      mobile=width < 500)

    def media(self, **features):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": n.replace("_", "-"), "value": v} for n,
                                                              v in features.items()])

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})

    def click(self, selector):
        element = self.find(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        self.call("POST", f"/element/{element[ELEMENT]}/click", {})
        self.settle()

    def press(self, *keys):
        """Presses and releases keys one after another; "Shift+Tab" holds the first."""
        actions = []
        for key in keys:
            parts = [KEYS.get(part, part) for part in key.split("+")]
            actions += [{"type": "keyDown", "value": part} for part in parts]
            actions += [{"type": "keyUp", "value": part} for part in reversed(parts)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})
        self.settle()

    def pointer(self, x, y, click=False):
        actions = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse",
                                                    "parameters": {"pointerType": "mouse"}, "actions": actions}]})
        self.settle()

    def hover(self, selector, x=0.5, y=0.5, click=False):
        box = self.script("const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
                          "const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]", selector)
        self.pointer(box[0] + box[2] * x, box[1] + box[3] * y, click)

    def focus(self, selector):
        self.script("document.querySelector(arguments[0]).focus()", selector)
        self.settle()

    def settle(self):
        """Waits until what has changed is drawn."""
        self.asynchronous("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def screenshot(self, path, whole=True):
        self.settle()
        picture = self.devtools("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": {**self.script(
            "return {x: 0, y: 0, width: innerWidth, height: Math.min(document.documentElement.scrollHeight, 3000)}"),
            "scale": 1}} if whole else {}))
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
