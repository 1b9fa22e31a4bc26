# SPDX-License-Identifier: Apache-2.0
"""The command line: ``toto`` and ``python -m toto_cpp`` run the program that is part of this package;
``python -m toto_cpp dataset`` is ``toto_cpp.forecast_dataset``."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    if sys.argv[1:2] == ["dataset"]:
        from ._dataset_command import main as dataset

        sys.exit(dataset(sys.argv[2:]))
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "toto")
    os.execv(program, ["toto", *sys.argv[1:]])


if __name__ == "__main__":
    main()
