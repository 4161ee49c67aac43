"""Pages that the program itself has written: tests/page/make_real.py. Without them the tests are skipped."""
import os
import unittest

from page_case import FOLDER, VIEWS, PageTest, read

REAL = os.path.join(FOLDER, "real")


@unittest.skipUnless(os.path.isdir(REAL), "the program is not built")
class Real(PageTest):
    def open_page(self, name):
        self.browser.open("file://" + os.path.join(REAL, name + ".html"))
        self.browser.log("browser")
        self.browser.script(read(os.path.join(os.path.dirname(__file__), "checks.js")))

    def test_every_family_has_its_views(self):
        without = {"transformer": [], "t5": [], "gpt": [], "bert": ["beam"], "rnn": ["positions", "norms"]}
        for family, missing in without.items():
            self.open_page(family)
            self.assertEqual(self.tabs(), [view for view in VIEWS if view not in missing], family)
            for view in self.tabs():
                self.go(view)
                self.check(f"real {family} {view}")
                self.picture(f"real_{family}_{view}")

    def test_the_arithmetic_of_the_page_gives_the_weights_of_the_program(self):
        for family in ("transformer", "t5", "gpt", "bert", "rnn"):
            self.open_page(family)
            faults = self.browser.script(
                "const m = (name) => modules['./' + name + '.js'];"
                "const {inspections} = m('inspection').readPayload(document.getElementById('payload').textContent);"
                "const doc = inspections[0]; const faults = [];"
                "for (const entry of doc.raw.attention) {"
                "  const a = doc.arithmetic(entry);"
                "  if (!a) { faults.push(['none', entry.stack, entry.part, entry.layer, entry.head]); continue; }"
                "  for (let row = 0; row < a.weights.rows; ++row) {"
                "    const sum = a.weights.row(row).reduce((x, y) => x + y, 0);"
                "    if (Math.abs(sum - 1) > 0.01) faults.push(['sum', entry.stack, entry.part, row, sum]);"
                "    const context = a.value && a.context;"
                "    for (let d = 0; context && d < a.value.columns; ++d) {"
                "      let value = 0;"
                "      for (let j = 0; j < a.weights.columns; ++j) value += a.weights.at(row, j) * a.value.at(j, d);"
                "      if (Math.abs(value - a.context.at(row, d)) > 0.02)"
                "        faults.push(['context', entry.stack, entry.part, row, d]);"
                "    }"
                "  }"
                "}"
                "return faults.slice(0, 5)")
            self.assertEqual(faults, [], family)

    def test_checkpoints_have_a_slider(self):
        self.open_page("checkpoints")
        self.assertTrue(self.browser.script("return document.querySelector('input[type=range]') !== null"))
        self.assertLess(os.path.getsize(os.path.join(REAL, "checkpoints.html")), 5_000_000)
        self.check("real checkpoints")
        self.picture("real_checkpoints")
