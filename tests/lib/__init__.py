# SPDX-License-Identifier: Apache-2.0
"""Code that all suites share: identities, running holt, terminals, hostile programs, the check for leaks."""
