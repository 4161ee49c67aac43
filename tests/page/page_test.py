#!/usr/bin/env python3
"""usage: page_test.py FOLDER [TEST…]

Tests FOLDER/page.html with the payloads in FOLDER/payloads in Chromium, every control by mouse and by
keyboard, and leaves pictures of every view in FOLDER/screenshots. TEST is a class or CLASS.METHOD.
"""
import sys
import unittest

# The tests are found among the names of this file.
from appearance_test import Appearance, KoreanVisitor, Large  # noqa: F401
from controls_test import Checkpoints, Keyboard, Mouse  # noqa: F401
from documents_test import Documents, Modules, Network  # noqa: F401
from real_test import Real  # noqa: F401

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
