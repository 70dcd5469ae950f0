# SPDX-License-Identifier: Apache-2.0
"""What the suites share: identities, running holt, terminals, hostile programs, the check for leaks."""
