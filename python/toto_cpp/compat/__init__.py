# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the classes that programs use today: change the import line, keep the rest."""
