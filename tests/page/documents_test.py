"""The functions of the modules, and documents of every kind, hostile ones too."""
import http.server
import json
import os
import re
import threading

from page_case import FOLDER, HERE, VIEWS, PageTest, read


class Modules(PageTest):
    def module(self, expression):
        return self.browser.script("const m = (name) => modules['./' + name + '.js']; return " + expression)

    def setUp(self):
        super().setUp()
        self.show("translation")

    def test_matrices_of_every_form_are_read(self):
        rows = "((x) => x && [x.rows, x.columns, [...x.values].map(String)])(m('matrix').decodeMatrix(%s))"
        self.assertEqual(self.module(rows % "[[1, null], [0.5, -2]]"), [2, 2, ["1", "-Infinity", "0.5", "-2"]])
        # 1, -2, infinity, the smallest half float, 65504
        halves = "{shape: [1, 5], f16: btoa(String.fromCharCode(0, 0x3c, 0, 0xc0, 0, 0x7c, 1, 0, 0xff, 0x7b))}"
        self.assertEqual(self.module(rows % halves), [1, 5, ["1", "-2", "Infinity", "5.960464477539063e-8", "65504"]])
        self.assertEqual(self.module(rows % "{shape: [1, 2], u8: btoa(String.fromCharCode(0, 200)), scale: 0.5}"),
                         [1, 2, ["0", "100"]])

    def test_matrices_of_a_wrong_size_are_refused(self):
        for raw in ("[[1], [2, 3]]", "{shape: [2, 2], f16: btoa('abc')}", "{shape: [1, 2], u8: btoa('a')}",
                    "{shape: [-1, 2], u8: ''}", "{}", "null", "[3]"):
            self.assertIsNone(self.module(f"m('matrix').decodeMatrix({raw})"), raw)

    def test_words_add_the_weights_of_keys_and_average_queries(self):
        pieces = "m('matrix').decodeMatrix([[.5,.25,.25],[.1,.2,.7],[0,0,1]])"
        joined = self.module(f"[...m('matrix').joinWords({pieces}, [[0,2],[2,3]], [[0,1],[1,3]]).values]")
        for found, expected in zip(joined, [0.3, 0.7, 0.0, 1.0]):
            self.assertAlmostEqual(found, expected, 5)

    def test_numbers_and_pieces_as_text(self):
        self.assertEqual(self.module("[-1.234, -0.001, -Infinity, NaN, 1234.5].map((x) => m('format').number(x))"),
                         ["−1.23", "0.00", "−∞", "?", "1235"])
        self.assertEqual(self.module("m('format').wordText(['▁', '<0xEA>', '<0xB0>', '<0x80>', '는'])"), "가는")
        self.assertEqual(self.module("m('format').visible('a\\u202eb\\u0000\\n')"), "a⟨U+202E⟩b⟨U+0000⟩↵")
        self.assertEqual(self.module("m('format').shorten('👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦', 2)"), "👩‍👩‍👧‍👦…")

    def test_korean_particles_follow_the_word(self):
        self.module("m('language').setLanguage('ko')")
        self.assertEqual(self.module("m('language').t('between', {query: '침대', key: 'x'})"), '"침대"와 "x"')
        self.assertEqual(self.module("m('language').t('between', {query: '▁는', key: 'x'})"), '"▁는"과 "x"')

    def test_both_languages_have_every_text(self):
        texts = self.module("[m('strings_en').english, m('strings_ko').korean]")
        self.assertEqual(sorted(texts[0]), sorted(texts[1]))
        holes = lambda text: sorted(re.findall(r"\{\w+\}", text))
        for name in texts[0]:
            self.assertEqual(holes(texts[0][name]), holes(texts[1][name]), name)
        web = os.path.join(HERE, "..", "..", "web", "modules")
        used = set()
        for file in os.listdir(web):
            if not file.startswith("strings_"):
                used |= set(re.findall(r'\bt\("([^"]+)"', read(os.path.join(web, file))))
        self.assertEqual(sorted(used - set(texts[0])), [])

    def test_scores_that_do_not_lead_to_the_weights_are_not_shown(self):
        place = "{stack: 'decoder', part: 'cross_attention', layer: 1, head: 0}"
        make = ("((raw) => { %s; return new (m('inspection').Inspection)(raw).arithmetic(" + place + ") !== null })"
                "(JSON.parse(document.getElementById('payload').textContent).inspections[0])")
        self.assertTrue(self.module(make % ""))
        self.assertTrue(self.module(make % "raw.tensors = raw.tensors.filter((t) => !/scores/.test(t.tap))"))
        # Scores that are not divided by √d, as in T5.
        unscaled = ("raw.tensors = raw.tensors.filter((t) => !/scores/.test(t.tap)); const width = Math.sqrt(8);"
                    "raw.tensors.filter((t) => t.tap === 'query').forEach((t) => {"
                    "t.values = t.values.map((row) => row.map((x) => x / width)) })")
        self.assertTrue(self.module(make % unscaled))
        self.assertFalse(self.module(make % "raw.tensors.filter((t) => t.tap === 'masked_scores')"
                                     ".forEach((t) => t.values.forEach((row) => row.reverse()))"))


class Documents(PageTest):
    def test_parts_that_a_document_lacks_are_not_offered(self):
        for name, expected in (("continuation", ["walk", "attention", "arithmetic", "words", "norms"]),
                               ("masked", ["walk", "attention", "arithmetic", "words", "norms"]),
                               ("recurrent", ["walk", "attention", "arithmetic", "words", "beam"]),
                               ("many_words", ["walk", "words"])):
            self.show(name)
            self.assertEqual(self.tabs(), expected, name)
            for view in expected:
                self.go(view)
                self.check(f"{name} {view}")
            self.picture(f"{name}")
            self.go("walk")
            self.assertTrue(self.text(".stage.open"))

    def test_additive_scores_are_not_shown_as_products(self):
        self.show("recurrent", "arithmetic")
        self.assertIn("Additive attention", self.text(".note-box"))
        self.assertEqual(self.texts(".note-box h4"), ["[Similarity of query · key]", "[Softmax]", "[Weighted sum]"])
        self.assertEqual(len(self.texts(".boxes .note-box:nth-of-type(1) .terms li")), 0)
        computed, stored = re.findall(r"\d\.\d{4}", self.texts(".boxes .note-box:nth-of-type(2) > .result")[0])[-2:]
        self.assertAlmostEqual(float(computed), float(stored), delta=0.0002)

    def test_an_empty_payload_says_so(self):
        self.show("empty")
        self.assertIn("no inspection", self.text("#header"))

    def test_a_damaged_payload_says_so(self):
        path = os.path.join(FOLDER, "damaged.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(read(os.path.join(FOLDER, "page.html")).replace('id="payload">',
                'id="payload">{"inspections": ['))
        self.browser.open("file://" + path)
        self.assertIn("cannot be read", self.text("#header"))

    def test_hostile_text_is_only_text(self):
        self.show("hostile")
        for view in self.tabs():
            self.go(view)
            faults = self.browser.script(
                "return [document.scripts.length,"
                "document.querySelectorAll('img, iframe, object, embed, #view b > b, #view i, [onerror]').length]")
            self.assertEqual(faults, [2, 0])  # scripts: the payload and the page's own
            self.check(f"hostile {view}")
        self.go("attention")
        self.assertIn("</script><script>alert(1)</script>", self.texts(".key-word bdi"))
        self.assertIn("⟨U+202E⟩abc⟨U+202C⟩", self.texts(".key-word bdi"))
        self.assertIn("👩‍👩‍👧‍👦", self.texts(".key-word bdi"))
        self.assertIn("longer than the limit", self.text("#header"))
        self.assertIn("<b>bold</b>⟨U+202E⟩ · transformer", self.text(".facts"))
        self.picture("hostile")

    def test_ten_thousand_words_are_bounded(self):
        self.show("many_words")
        for view in self.tabs():
            self.go(view)
            self.assertLess(self.browser.script("return document.querySelectorAll('*').length"), 3000)
        self.go("walk")
        self.assertIn("first 400 of 10000", self.text(".stage.open"))


class Network(PageTest):
    def test_no_request_leaves(self):
        hits = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                hits.append(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.browser.log("performance")
        self.show("translation")
        for view in VIEWS:
            self.go(view)
        loaded = self.browser.script("return performance.getEntriesByType('resource').map((e) => e.name)")
        self.assertEqual([name for name in loaded if not name.startswith("data:")], [])
        # Whatever a script on the page would try is refused by the policy.
        base = f"http://127.0.0.1:{server.server_port}/"
        tried = self.browser.asynchronous("""
          const [base, done] = arguments;
          const image = new Image();
          image.src = base + "image";
          const link = document.createElement("link");
          link.rel = "stylesheet";
          link.href = base + "style";
          document.head.append(link);
          const frame = document.createElement("iframe");
          frame.src = base + "frame";
          document.body.append(frame);
          const inline = document.createElement("script");
          inline.textContent = "window.ran = true";
          document.body.append(inline);
          navigator.sendBeacon?.(base + "beacon");
          const refused = () => setTimeout(() => done(window.ran ? "ran" : "refused"), 300);
          fetch(base + "fetch").then(() => done("fetched"), refused);""", base)
        self.assertEqual(tried, "refused")
        self.assertEqual(hits, [])
        sent = [json.loads(entry["message"])["message"] for entry in self.browser.log("performance")]
        urls = [m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"]
        allowed = ("file://", "data:", base)  # those to `base` were refused: the server saw none
        self.assertEqual([url for url in urls if not url.startswith(allowed)], [])
        self.browser.log("browser")  # the refusals that the policy reports
