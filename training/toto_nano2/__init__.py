# SPDX-License-Identifier: Apache-2.0
"""Training of a small model in the format of Toto 2.0, on synthetic series only."""
