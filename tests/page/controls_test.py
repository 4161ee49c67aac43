"""Every control of the page by mouse and by keyboard."""
import os
import re
import time

from page_case import FOLDER, VIEWS, PageTest, key, page_of, payload


class Mouse(PageTest):
    def test_views_layers_heads_and_units(self):
        self.show("translation")
        browser = self.browser
        self.assertEqual(self.tabs(), VIEWS)
        self.assertEqual(self.chosen_view(), "attention")
        # It starts with the heads that align best.
        self.assertEqual(self.attribute(key("part.decoder/cross_attention"), "aria-checked"), "true")
        self.assertEqual(self.attribute(key("card.align"), "aria-checked"), "true")
        self.assertIn("1 + 3", self.text(key("card.align")))
        for part in ("encoder/self_attention", "decoder/self_attention", "decoder/cross_attention"):
            for layer in (0, 1):
                browser.click(key(f"part.{part}"))
                browser.click(key(f"layer.{layer}"))
                for head in (0, 1, 2, 3, "mean"):
                    browser.click(key(f"card.{head}"))
                    self.assertEqual(self.attribute(key(f"card.{head}"), "aria-checked"), "true")
                    self.assertIn("Mean" if head == "mean" else f"Head {head + 1}",
                                  self.text(".two-panes .panel:last-child h3"))
        browser.click(".line-head-names button:nth-child(2)")
        self.assertEqual(self.attribute(key("card.1"), "aria-checked"), "true")
        self.assertEqual(len(self.texts(".query-word")), 8)
        browser.click(key("unit.words"))
        self.assertEqual(self.texts(".query-word")[:3], ["The", "cat", "sleeps"])
        self.assertEqual([t.split("%")[0] for t in self.texts(".key-word bdi")], ["고양이는", "침대에서", "잔다", "</s>"])
        browser.click(key("weights.rollout"))
        self.assertIn("Rollout", self.text(".two-panes .panel:last-child h3"))
        browser.click(key("weights.gradient"))
        browser.click(key("weights.raw"))
        browser.click(key("unit.tokens"))

    def test_hovering_a_word_shows_where_it_looks(self):
        self.show("translation")
        self.browser.click(key("card.0"))
        weights = [e for e in payload("translation")["inspections"][0]["attention"]
                   if (e["stack"], e["part"], e["layer"], e["head"]) == ("decoder", "cross_attention", 1,
                       0)][0]["weights"]
        for row in (1, 6):
            self.browser.hover(key(f"line.{row}"))
            self.assertEqual(self.attribute(key(f"line.{row}"), "aria-selected"), "true")
            shown = [float(t.replace("<", "").split(" ")[0]) / 100 for t in self.texts(".line-weight")]
            for found, expected in zip(shown, weights[row]):
                self.assertAlmostEqual(found, expected, 2)
        drawn = ("const c = document.querySelector('.line-links');"
                 "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v)")
        self.assertTrue(self.browser.script(drawn))

    def test_a_cell_opens_its_arithmetic_and_goes_back(self):
        self.show("translation")
        self.browser.click(key("card.0"))
        box = key("matrix")
        self.browser.hover(box, 0.28, 0.3)
        self.assertIn("→", self.text(".two-panes .panel:last-child .readout"))
        self.browser.hover(box, 0.28, 0.3, click=True)
        self.assertEqual(self.chosen_view(), "arithmetic")
        self.assertEqual(len(self.texts(".boxes > .note-box")), 4)
        self.browser.click(key("back"))
        self.assertEqual(self.chosen_view(), "attention")

    def test_the_arithmetic_adds_up(self):
        self.show("translation", "arithmetic")
        for part in ("encoder/self_attention", "decoder/self_attention", "decoder/cross_attention"):
            self.browser.click(key(f"part.{part}"))
            for head in range(4):
                self.browser.click(key(f"head.{head}"))
                for query, at in ((2, 1), (5, 0)):
                    self.browser.click(key(f"pick.query.{query}"))
                    self.browser.click(key(f"pick.key.{at}"))
                    value = lambda text: float(text.replace("−", "-"))
                    terms = [value(t) for t in self.texts(".boxes .note-box:nth-of-type(1) .terms b")]
                    self.assertEqual(len(terms), 8)
                    total = value(self.text(".boxes .note-box:nth-of-type(1) .result b"))
                    self.assertAlmostEqual(sum(terms), total, delta=0.05)
                    computed, stored = re.findall(r"\d\.\d{4}",
                                                  self.texts(".boxes .note-box:nth-of-type(3) > .result")[0])[-2:]
                    self.assertAlmostEqual(float(computed), float(stored), delta=0.0002)
                    computed, stored = re.findall(r"[−\d.]+\d",
                                                  self.texts(".boxes .note-box:nth-of-type(4) > .result")[-1])
                    self.assertAlmostEqual(value(computed), value(stored), delta=0.002)
        self.choose("dimension", 5)
        self.assertEqual(self.browser.script("return document.querySelector(arguments[0]).selectedIndex",
                                             key("dimension")), 5)
        self.browser.click(key("soft.3"))
        self.assertEqual(self.attribute(key("pick.key.3"), "aria-selected"), "true")
        self.browser.click(key("unit.words"))
        self.browser.click(key("pick.query.2"))
        self.assertIn("Pieces joined into words", self.text(".note-box h4"))

    def test_the_walk_follows_the_notes(self):
        self.show("translation", "walk")
        titles = []
        while True:
            titles.append(self.text(".stage.open h4").strip("[]"))
            self.assertTrue(self.browser.script("return document.querySelector('.stage.open').childElementCount > 1"))
            if self.browser.script("return document.querySelector(arguments[0]).disabled", key("walk.next")):
                break
            self.browser.click(key("walk.next"))
        attention = ["Query / Key / Value", "Similarity of query · key", "÷ √d", "Softmax", "Weighted sum",
                     "Concat: heads side by side", "Linear", "Add & Norm"]
        masked = attention[:3] + ["Mask"] + attention[3:]
        feed_forward = ["Feed-forward network (FFN)", "Add & Norm"]
        start = ["Tokens", "Token ids", "Embedding", "Positional encoding", "Embedding + position"]
        end = ["Output of the stack"]
        encoder = start + (attention + feed_forward) * 2 + end
        self.assertEqual(titles, encoder + start + (masked + attention + feed_forward) * 2 + end +
                         ["Logits → Softmax", "Detokenising"])
        self.browser.click(key("walk.previous"))
        self.browser.click(key("segment.4"))
        self.assertEqual(self.text(".stage.open h4"), "[Query / Key / Value]")
        stage = int(self.attribute(".stage.open .stage-title", "data-key").split(".")[1])
        self.browser.click(key(f"stage.{stage + 3}"))
        self.assertEqual(self.text(".stage.open h4"), "[Mask]")
        self.browser.hover(key("walk.token.2"))
        self.assertEqual(len([t for t in self.texts(".score-lines li") if "−∞" in t]), 5)
        self.browser.click(key("walk.head.2"))
        self.browser.hover(key("cells.mask"), 0.3, 0.5, click=True)
        self.assertEqual(self.chosen_view(), "arithmetic")

    def test_words_positions_norms_and_beam(self):
        self.show("translation", "words")
        for i in (3, 6):
            self.browser.click(key(f"step.{i}"))
            self.assertEqual(len(self.texts(".best tbody tr:not(.rest)")), 10)
            self.assertIn("chosen", self.text(".best tr.chosen"))
        self.go("positions")
        for name, index in (("positionA", 3), ("positionB", 40), ("positionDimension", 31)):
            self.choose(name, index)
            self.assertEqual(self.browser.script("return document.querySelector(arguments[0]).selectedIndex",
                                                 key(name)), index)
        self.assertIn("‖3 − 40‖", self.text(".result"))
        self.go("norms")
        before = self.text(".sums tbody")
        self.browser.hover(key("norm.encoder.2"))
        self.assertNotEqual(self.text(".sums tbody"), before)
        self.go("beam")
        dropped = len(self.texts(".beam-node.dropped"))
        self.assertGreater(dropped, 0)
        self.assertGreater(self.browser.script("return document.querySelectorAll('.beam-edges path.best').length"), 5)
        self.browser.hover(".beam-node.dropped")
        self.assertIn("rank 4, and 3 are kept", self.text(".beam-details"))
        self.browser.click(key("dropped"))
        self.assertEqual(len(self.texts(".beam-node.dropped")), 0)

    def test_language_and_theme(self):
        self.show("translation")
        self.browser.click(key("language.ko"))
        self.assertEqual(self.browser.script("return document.documentElement.lang"), "ko")
        self.assertIn("어텐션", self.text(key("tab.attention")))
        self.browser.click(key("theme.dark"))
        self.assertEqual(self.browser.script("return document.documentElement.dataset.theme"), "dark")
        self.browser.open("file://" + page_of("translation"))
        kept = self.browser.script("const e = document.documentElement; return [e.lang, e.dataset.theme]")
        self.assertEqual(kept, ["ko", "dark"])
        self.browser.click(key("theme.system"))
        self.browser.click(key("language.en"))
        self.browser.media(prefers_color_scheme="dark")
        self.browser.settle()
        self.assertEqual(self.browser.script("return document.documentElement.dataset.theme"), "dark")

    def test_another_view_starts_at_its_beginning_with_its_tab_in_view(self):
        self.browser.resize(320)
        self.show("translation")
        self.browser.script("window.scrollTo(0, 1200)")
        self.go("beam")
        place = self.browser.script("const tab = document.querySelector('#tab-beam').getBoundingClientRect();"
                                    "const view = document.querySelector('#view').getBoundingClientRect();"
                                    "return [tab.left >= 0 && tab.right <= innerWidth, view.top >= 0 && view.top < 300]")
        self.assertEqual(place, [True, True])

    def test_numbers_open_as_a_table(self):
        self.show("translation")
        self.browser.click(key("matrix.table"))
        self.assertEqual(len(self.texts(".as-table tbody tr")), 8)
        total = sum(float(t) for t in self.texts(".as-table tbody tr:nth-child(2) td"))
        self.assertAlmostEqual(total, 1, delta=0.005)


class Keyboard(PageTest):
    def test_every_control_is_reached_and_shows_its_focus(self):
        self.show("translation")
        for view in VIEWS:
            self.go(view)
            self.browser.focus("#skip")
            stops, faults = ["skip"], []
            for _ in range(80):
                self.browser.press("Tab")
                stop = self.focused()
                outline = self.browser.script("const s = getComputedStyle(document.activeElement);"
                                              "return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2")
                if stop in stops or stop == "BODY":
                    break
                if not outline:
                    faults.append(stop)
                stops.append(stop)
            self.assertEqual(faults, [], view)
            self.assertIn(f"tab.{view}", stops)
            # The order of the tab stops is that of the page, from top to bottom.
            order = self.browser.script(
                "const all = [...document.querySelectorAll('*')].map((e) => e.dataset.key || e.id);"
                "return arguments[0].map((k) => all.indexOf(k)).filter((i) => i >= 0)", stops)
            self.assertEqual(order, sorted(order), view)
            reached = self.browser.script(
                "return pageChecks.focusable().filter((e) => e.tabIndex === 0 && e.dataset.key)"
                ".map((e) => e.dataset.key).filter((k) => !arguments[0].includes(k))", stops)
            self.assertEqual(reached, [], f"{view}: not in the tab order")

    def test_the_skip_link_leads_to_the_view(self):
        self.show("translation")
        self.browser.press("Tab", "Enter")
        self.assertEqual(self.focused(), "view")

    def test_arrow_keys_move_in_tabs_choices_and_words(self):
        self.show("translation")
        browser = self.browser
        browser.focus(key("tab.attention"))
        browser.press("ArrowRight")
        self.assertEqual((self.chosen_view(), self.focused()), ("arithmetic", "tab.arithmetic"))
        browser.press("Home")
        self.assertEqual(self.chosen_view(), "walk")
        browser.press("End")
        self.assertEqual(self.chosen_view(), "beam")
        browser.press("ArrowRight", "ArrowRight")
        self.assertEqual(self.chosen_view(), "attention")
        browser.focus(key("part.decoder/cross_attention"))
        browser.press("ArrowLeft")
        self.assertEqual(self.focused(), "part.decoder/self_attention")
        self.assertEqual(self.attribute(key("part.decoder/self_attention"), "aria-checked"), "true")
        browser.focus(key("layer.1"))
        browser.press("ArrowLeft")
        self.assertEqual(self.attribute(key("layer.0"), "aria-checked"), "true")
        browser.focus(key("card.0"))
        browser.press("ArrowRight", "ArrowRight")
        self.assertEqual((self.focused(), self.attribute(key("card.2"), "aria-checked")), ("card.2", "true"))
        browser.focus(key("line.0"))
        browser.press("ArrowDown", "ArrowDown")
        self.assertEqual(self.attribute(key("line.2"), "aria-selected"), "true")
        self.assertTrue(self.texts(".line-weight")[0])
        for group, first, value in (("unit", "tokens", "words"), ("weights", "raw", "gradient"),
                                    ("theme", "system", "light"), ("language", "en", "ko")):
            browser.focus(key(f"{group}.{first}"))
            browser.press("ArrowRight" if group not in ("language",) else "ArrowLeft")
            self.assertEqual(self.attribute(key(f"{group}.{value}"), "aria-checked"), "true", group)

    def test_the_matrix_by_keys(self):
        self.show("translation")
        browser = self.browser
        browser.click(key("card.0"))
        browser.focus(key("matrix"))
        browser.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight")
        self.assertIn("▁sleep → 는", self.text(".two-panes .panel:last-child .readout"))
        browser.press("End")
        self.assertIn("→ </s>", self.text(".two-panes .panel:last-child .readout"))
        browser.press("Home", "Enter")
        self.assertEqual(self.chosen_view(), "arithmetic")
        self.assertEqual(self.attribute(key("pick.query.2"), "aria-selected"), "true")
        browser.focus(key("pick.query.2"))
        browser.press("ArrowRight")
        self.assertEqual((self.focused(), self.attribute(key("pick.query.3"), "aria-selected")),
                         ("pick.query.3", "true"))
        browser.focus(key("soft.4"))
        browser.press("Enter")
        self.assertEqual(self.attribute(key("pick.key.4"), "aria-selected"), "true")
        browser.focus(key("back"))
        browser.press("Enter")
        self.assertEqual(self.chosen_view(), "attention")

    def test_the_walk_by_keys(self):
        self.show("translation", "walk")
        browser = self.browser
        browser.script("document.activeElement.blur()")
        browser.press("n", "n", "p")
        self.assertEqual(self.text(".stage.open h4"), "[Token ids]")
        browser.focus(key("segment.0"))
        browser.press("ArrowRight")
        self.assertEqual((self.focused(), self.text(".stage.open h4")), ("segment.1", "[Query / Key / Value]"))
        browser.focus(key("walk.next"))
        browser.press("Enter", "Enter")
        self.assertEqual((self.focused(), self.text(".stage.open h4")), ("walk.next", "[÷ √d]"))
        browser.focus(key("walk.token.0"))
        browser.press("ArrowRight")
        self.assertIn("Q2", self.texts(".score-lines li")[0])

    def test_beam_words_and_norms_by_keys(self):
        self.show("translation", "beam")
        browser = self.browser
        browser.focus(key("beam.1"))
        browser.press("ArrowRight")
        self.assertEqual(self.focused(), "beam.5")
        browser.press("ArrowDown")
        self.assertIn("dog", self.text(".beam-text"))
        browser.press("ArrowUp", "ArrowLeft")
        self.assertEqual(self.focused(), "beam.1")
        browser.focus(key("dropped"))
        browser.press("Space")
        self.assertEqual(len(self.texts(".beam-node.dropped")), 0)
        self.go("words")
        browser.focus(key("step.0"))
        browser.press("ArrowRight", "ArrowRight")
        self.assertEqual((self.focused(), self.text(".view-words .panel:last-child h3")), ("step.2", "Step 3"))
        self.go("norms")
        before = self.text(".sums tbody")
        browser.focus(key("norm.encoder.0"))
        browser.press("ArrowRight")
        self.assertNotEqual(self.text(".sums tbody"), before)


class Checkpoints(PageTest):
    def test_slider_play_and_curve(self):
        self.show("checkpoints")
        browser = self.browser
        self.assertLess(os.path.getsize(os.path.join(FOLDER, "checkpoints.html")), 5_000_000)
        self.assertIn("step 2000", self.text(".checkpoint-row output"))
        self.assertIn("arithmetic", self.tabs())
        browser.focus(key("checkpoint"))
        browser.press("Home")
        self.assertIn("step 100", self.text(".checkpoint-row output"))
        self.assertIn("the the the", self.text(".checkpoints .written"))
        self.assertNotIn("arithmetic", self.tabs())  # only the last one has tensors
        browser.press("ArrowRight", "ArrowRight")
        self.assertEqual((self.focused(), self.attribute(key("checkpoint"), "value")), ("checkpoint", "2"))
        self.assertIn("loss", self.attribute(key("checkpoint"), "aria-valuetext"))
        self.check("checkpoints")
        self.picture("checkpoints-start")
        browser.click(key("play"))
        self.assertEqual(self.attribute(key("play"), "aria-pressed"), "true")
        time.sleep(1.8)
        self.assertGreaterEqual(int(self.attribute(key("checkpoint"), "value")), 3)
        browser.click(key("play"))
        at = self.attribute(key("checkpoint"), "value")
        time.sleep(0.9)
        self.assertEqual(self.attribute(key("checkpoint"), "value"), at)
        browser.hover(".checkpoints .chart", 0.97, 0.5, click=True)
        self.assertEqual(self.attribute(key("checkpoint"), "value"), "19")
        self.picture("checkpoints-end")
