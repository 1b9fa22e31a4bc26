# SPDX-License-Identifier: Apache-2.0
"""Where messages of the library go: the logger ``toto_cpp``."""

import logging

_logger = logging.getLogger("toto_cpp")


def warning(line: str) -> None:
    _logger.warning("%s", line)


def info(line: str) -> None:
    _logger.info("%s", line)
