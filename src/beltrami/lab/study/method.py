"""Row: a method of a study."""

from dataclasses import dataclass

from beltrami.config.parse import override
from beltrami.config.recipe.catalogue import RECIPES, is_file, load_recipe
from beltrami.config.spec import RunConfig
from beltrami.errors import UnknownName


@dataclass(frozen=True)
class Method:
    """A recipe, and where it is departed from.

    Args:
        name: what ``--methods`` calls it.
        recipe: one of ``RECIPES``, or a configuration file.
        settings: departures, as ``--set`` takes them.
        series: which curve the row is a point of, if of any.
        at: where on that curve.
    """

    name: str
    recipe: str
    settings: tuple[str, ...] = ()
    series: str | None = None
    at: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is such a recipe."""
        return self.recipe in RECIPES or is_file(self.recipe)

    def knows(self, dataset: str) -> bool:
        """Whether the recipe has settings for the dataset."""
        try:
            load_recipe(self.recipe, dataset)
        except UnknownName:
            return False
        return True

    def config(self, dataset: str, *, protocol: str, split_seed: int, seed: int) -> RunConfig:
        """One run of the row."""
        config = load_recipe(self.recipe, dataset, protocol=protocol, seed=seed, split_seed=split_seed)
        return override(config, self.settings)


def recipes(*names: str) -> tuple[Method, ...]:
    """Rows that are recipes as they stand."""
    return tuple(Method(name, name) for name in names)
