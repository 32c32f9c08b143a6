"""The facts about training images in this release of muster; `make image-facts` updates them."""

from functools import lru_cache
from importlib.resources import files

from muster.render.sagemaker.image_catalogue import ImageFacts, read_facts


@lru_cache(maxsize=1)
def load_image_facts() -> ImageFacts:
    """Return the facts, which are parsed only once."""
    return read_facts(files("muster.render.sagemaker").joinpath("image_facts.json").read_text(encoding="utf-8"))
