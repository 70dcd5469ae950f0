# SPDX-License-Identifier: Apache-2.0
"""Every suite below uses the fixtures and options of lib/plugin.py."""

pytest_plugins = ["lib.again", "lib.isolate", "lib.selection", "lib.plugin"]
