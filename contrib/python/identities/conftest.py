# SPDX-License-Identifier: Apache-2.0
"""The fixtures and options of tests/lib/plugin.py, --identity among them."""

pytest_plugins = ["lib.again", "lib.isolate", "lib.selection", "lib.plugin"]
