"""The facts about training images that come with muster; `make image-facts` brings them up to date."""

from functools import lru_cache
from importlib.resources import files

from muster.render.sagemaker.image_catalogue import ImageFacts, read_facts


@lru_cache(maxsize=1)
def image_facts() -> ImageFacts:
    """The facts, read once."""
    return read_facts(files("muster.render.sagemaker").joinpath("image_facts.json").read_text(encoding="utf-8"))
