"""Files that are whole or not there: written beside their place under another name, then moved in one step."""

import os
import secrets
from pathlib import Path


def write_file(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write text (UTF-8) or bytes, replacing what was there at once; a failure or a kill leaves the old file."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(6)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return place
