# SPDX-License-Identifier: Apache-2.0
"""Loads the fixtures and options of tests/lib/plugin.py, such as --identity."""

pytest_plugins = ["lib.again", "lib.isolate", "lib.selection", "lib.plugin"]
