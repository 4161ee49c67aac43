#!/usr/bin/env python3
"""Writes unicode.json: Python's results of lowercasing, NFC and UTF-8 repair, for tests/text/unicode_test.cpp."""
import json
import pathlib
import random
import unicodedata

assert unicodedata.unidata_version == "14.0.0", "another version of Unicode would change the digests"
random.seed(2017)


def fnv(strings):
    digest = 0xCBF29CE484222325
    for string in strings:
        for byte in string.encode() + b"\n":
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return f"{digest:016x}"


def nfc(text):
    return unicodedata.normalize("NFC", text)


def ranges(numbers):
    found = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


assigned = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
marks = [c for c in assigned if unicodedata.combining(chr(c))]
decomposed = [c for c in assigned if unicodedata.decomposition(chr(c))]
pools = [marks, decomposed, range(0x1100, 0x1200), range(0x20, 0x300), range(0xAC00, 0xD7A4),
         [0x3A3, 0x130, 0x49, 0x27, 0x2E, 0xAD], assigned]
mixed = ["".join(chr(random.choice(random.choice(pools))) for _ in range(random.randint(1, 8)))
         for _ in range(150)]
words = ["", "ΌΔΟΣ ΟΔΥΣΣΕΎΣ", "Σ", "ΑΣ.", "Α.ΣΑ", "Α'Σ'Α", "ªΣ", "ⅠΣ", "İSTANBUL", "I", "ẞ",
         unicodedata.normalize("NFD", "한국어와 눈치"), "가\u11a7", "\u1100\u1161\u11a8", "가\u11a8",
         "e\u0301", "e\u0327\u0301", "a\u0301\u0327", "\u212b", "\u2126", "\ufb01"]

leads = [0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1,
         0xF4, 0xF5, 0xFF]
broken = [bytes(random.choice(leads) for _ in range(random.randint(1, 6))) for _ in range(150)]
broken += [b"", b"\x00", b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80",
           b"\xf0\x9f\x98", b"a\xea\xb0b", b"\xf8\x88\x80\x80\x80", b"\xef\xbf\xbe"]

golden = {
    "assigned": ranges(assigned),
    "lowercased": {
        "alone": fnv(chr(c).lower() for c in assigned),
        "before_sigma": fnv((chr(c) + "Σ").lower() for c in assigned),
        "between": fnv(("A" + chr(c) + "Σ").lower() for c in assigned),
        "after_sigma": fnv(("AΣ" + chr(c) + "a").lower() for c in assigned),
    },
    "nfc": {
        "alone": fnv(nfc(chr(c)) for c in assigned),
        "marked": fnv(nfc(chr(c) + "\u0301\u0327\u05b0") for c in assigned),
    },
    "texts": [{"text": t, "lowercased": t.lower(), "nfc": nfc(t)} for t in words + mixed],
    "repaired": [{"bytes": b.hex(), "text": b.decode("utf-8", "replace")} for b in broken],
}
target = pathlib.Path(__file__).with_name("unicode.json")
target.write_text(json.dumps(golden, separators=(",", ":"), ensure_ascii=True) + "\n")
