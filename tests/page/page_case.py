"""What the tests of the page share: opening a page, asking about it, pictures of it.

The folder with page.html and payloads/ is the first argument of the program."""
import json
import os
import sys
import unittest

from browser import Browser

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.abspath(sys.argv[1])
SHOTS = os.path.join(FOLDER, "screenshots")
VIEWS = ["walk", "attention", "arithmetic", "words", "positions", "norms", "beam"]


def escaped(text):
    """What html_page (nunchi/views/html_page.cpp) does to a payload."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def payload(name):
    return json.loads(read(os.path.join(FOLDER, "payloads", name + ".json")))


def page_of(name):
    page = read(os.path.join(FOLDER, "page.html"))
    path = os.path.join(FOLDER, name + ".html")
    marker = 'id="payload">'
    assert page.count(marker) == 1
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.replace(marker, marker + escaped(read(os.path.join(FOLDER, "payloads", name + ".json")))))
    return path


def key(name):
    return f'[data-key="{name}"]'


class PageTest(unittest.TestCase):
    languages = "en"

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(cls.languages)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.browser.media()
        self.browser.resize(1280)

    def show(self, name, view=None):
        """Opens a page as a first visitor sees it."""
        url = "file://" + page_of(name)
        self.browser.open(url)
        self.browser.script("try { localStorage.clear() } catch {}")
        self.browser.open(url)
        self.browser.log("browser")
        self.browser.script(read(os.path.join(HERE, "checks.js")))
        if view:
            self.go(view)

    def go(self, view):
        self.browser.script("document.querySelector(arguments[0]).click()", key(f"tab.{view}"))
        self.browser.settle()

    def tearDown(self):
        errors = [entry["message"] for entry in self.browser.log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(errors, self.expected_errors if hasattr(self, "expected_errors") else [])

    def text(self, selector):
        return self.browser.script("const e = document.querySelector(arguments[0]); return e && e.textContent",
                                   selector)

    def texts(self, selector):
        return self.browser.script("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
                                   selector)

    def attribute(self, selector, name):
        return self.browser.script("return document.querySelector(arguments[0]).getAttribute(arguments[1])", selector,
                                   name)

    def focused(self):
        return self.browser.script("const e = document.activeElement; return e.dataset.key || e.id || e.tagName")

    def tabs(self):
        return self.browser.script(
            "return [...document.querySelectorAll('[role=tab]')].map((e) => e.dataset.key.slice(4))")

    def chosen_view(self):
        return self.attribute('[role="tab"][aria-selected="true"]', "data-key")[4:]

    def choose(self, name, index):
        self.browser.script("const s = document.querySelector(arguments[0]); s.selectedIndex = arguments[1];"
                            "s.dispatchEvent(new Event('change'))", key(name), index)

    def check(self, where):
        for name, faults in self.browser.script("return pageChecks.all()").items():
            self.assertEqual(faults[:8], [], f"{where}: {name}")

    def picture(self, name):
        """A picture of the whole page, after a look at every part of it: matrices are drawn when they come near."""
        self.browser.asynchronous(
            "const done = arguments[0]; let y = 0; const step = () => { scrollTo(0, y); y += 500;"
            "if (y < document.documentElement.scrollHeight + 500) setTimeout(step, 20);"
            "else { scrollTo(0, 0); setTimeout(done, 50); } }; step()")
        os.makedirs(SHOTS, exist_ok=True)
        self.browser.screenshot(os.path.join(SHOTS, name + ".png"))
