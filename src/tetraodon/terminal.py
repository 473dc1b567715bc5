"""Text for a terminal: no name in it begins a line, moves the cursor, changes colours, turns the line around or hides what is beside it.

Names of attributes, categories, editions and releases come from settings, files of codes and ledgers, which others may have
written; a terminal would obey the control sequences in them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from .errors import OutputError

# Control characters but the tab and the line feed, lone surrogates, and marks that reorder or hide what surrounds them.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\ufffe\uffff]"
)


def harmless(text: str) -> str:
    """Text that a terminal shows and does not obey.

    >>> harmless("red \\x1b[31m, and \\u202eback")
    'red �[31m, and �back'
    """
    return UNSAFE.sub("\ufffd", text)


def text_of(lines: Iterable[str]) -> str:
    """Lines put together. A line break inside of one, as a name may hold it, begins no line of its own.

    >>> print(text_of(["Spent on 'a\\nTogether 0: it fits':", "  epsilon 1"]))
    Spent on 'a␤Together 0: it fits':
      epsilon 1
    """
    return "\n".join(line.replace("\n", "␤") for line in lines)


def say(text: str, file: TextIO | None = None) -> None:
    """Print to standard output, or to another stream.

    Raises:
        OutputError: it takes no more, as on a full disk. A reader who went away is left to the caller.
    """
    stream = sys.stdout if file is None else file
    try:
        print(harmless(text), file=stream, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        with contextlib.suppress(
            OSError, ValueError
        ):  # what is left in the buffer fails again at the end, in Python's own words
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise OutputError(
            f"what was to be printed cannot be written ({error.strerror}); what was done before stays done."
        ) from None


def json_text(value: Any) -> str:
    """JSON that says the same in any reader and does nothing on a terminal.

    >>> json_text({"a": "é\\x9b"})
    '{\\n  "a": "é\\\\u009b"\\n}'
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
