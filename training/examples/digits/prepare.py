"""Write scikit-learn's bundled digits (1,797 images of handwriting, 8 x 8 pixels) as PNG files, by channel and class.

`python prepare.py DIR` writes DIR/train/<class>/*.png and DIR/validation/<class>/*.png. It downloads nothing, writes
the same files each time, and skips a channel that exists.
"""

import argparse
import contextlib
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

# The data is ordered by writer: every fifth image of a class includes all of them.
VALIDATION_EVERY = 5


def main() -> None:
    """Prepare both channels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR", help="the folder for train/ and validation/")
    directory: Path = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    for channel in ("train", "validation"):
        if not (directory / channel).exists():
            write_channel(directory, channel)
        count = sum(1 for _ in (directory / channel).glob("*/*.png"))
        print(f"{directory / channel}: {count} images")


def write_channel(directory: Path, channel: str) -> None:
    """Write one channel to a temporary folder and rename it, so that it is never visible half-written."""
    with tempfile.TemporaryDirectory(prefix=f".{channel}-", dir=directory) as scratch:
        content = Path(scratch) / channel
        write_images(content, channel)
        # Renaming fails if another process has already written the same files.
        with contextlib.suppress(OSError):
            content.rename(directory / channel)
    if not (directory / channel).is_dir():
        raise SystemExit(f"{directory / channel}: could not be written; is something else in its place?")


def write_images(folder: Path, channel: str) -> None:
    """Write the channel's images as FOLDER/<class>/<index in the data set>.png."""
    digits = load_digits()
    for label in range(10):
        (folder / str(label)).mkdir(parents=True)
        for position, index in enumerate(np.flatnonzero(digits.target == label)):
            is_validation = position % VALIDATION_EVERY == 0
            if is_validation == (channel == "validation"):
                # scikit-learn counts 0..16 inked points per pixel; PNG uses 0..255.
                pixels = np.rint(digits.images[index] * (255 / 16)).astype(np.uint8)
                Image.fromarray(pixels).save(folder / str(label) / f"{index:04}.png")


if __name__ == "__main__":
    main()
