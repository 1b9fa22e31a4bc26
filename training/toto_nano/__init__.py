# SPDX-License-Identifier: Apache-2.0
"""Trains, exports and evaluates the small Toto 1.0 model that ships with the project."""
