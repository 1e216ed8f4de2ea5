"""Options of hide-and-seek and what follows from them; loads no simulator."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from srlhpc.environment import ArraySpec, Kind, MultiDiscrete, Spaces
from srlhpc.errors import counted
from srlhpc.specs.named_modules import EnvironmentSettings, Panel
from srlhpc.specs.spec import Spec, refusal

KIND = "agent"
FLOOR = 6.0
"""Side of the floor at map scale 1."""
CELLS = 30
"""Cells of a side of the placement grid at map scale 1."""
BINS = 11
"""Forces to choose from on each of x, y and the vertical axis; the middle one is none."""

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Range = tuple[NonNegativeInt, NonNegativeInt]
"""Lowest and highest number, both included."""
TeamSize = tuple[PositiveInt, PositiveInt]
Rectangle = tuple[float, float, float, float]
"""Left, lower, right, upper edge."""


class Quadrant(Spec):
    """One walled-off quadrant with one or two doors, and cubes in it."""

    kind: Literal["quadrant"] = "quadrant"
    boxes: Range = (2, 2)
    """Cubes in the quadrant: lowest and highest number of an episode."""
    ramps: NonNegativeInt = 1
    """Ramps, anywhere."""
    lock_ramps: bool = False
    """Whether ramps can be locked."""
    door_dropout: Probability = 0.5
    """Probability that only one of the two inner walls has a door."""
    hiders_anywhere: bool = True
    """Whether hiders start anywhere, not only in the quadrant; seekers start outside it."""
    horizon: PositiveInt = 80
    """Steps of an episode at map scale 1."""
    restrict: Rectangle | None = (0.1, 0.1, 5.9, 5.9)
    """Agents outside of this rectangle are punished with -10; given for map scale 1."""
    penalize_objects_out: bool = True
    """Whether all agents are punished when a box or a ramp is outside of the rectangle."""

    @property
    def elongated(self) -> Range:
        return (0, 0)


class RandomWalls(Spec):
    """Random rooms with random doors, with or without walls around them; teams start together."""

    kind: Literal["random_walls"] = "random_walls"
    boxes: Range = (3, 9)
    """Boxes: lowest and highest number of an episode."""
    elongated: Range = (3, 9)
    """How many of the boxes are elongated: lowest number, and highest where there are as many boxes."""
    ramps: NonNegativeInt = 2
    """Ramps, anywhere."""
    lock_ramps: bool = True
    """Whether ramps can be locked."""
    rooms: tuple[PositiveInt, PositiveInt] = (1, 4)
    """Rooms: lowest and highest number of an episode."""
    outer_walls: Probability = 0.5
    """Probability that there are walls around the floor."""
    team_radius: PositiveFloat = 0.5
    """How far from the first of its team an agent may start, per axis; given for map scale 1."""
    horizon: PositiveInt = 240
    """Steps of an episode at map scale 1."""
    restrict: Rectangle | None = (-6.0, -6.0, 12.0, 12.0)
    """Agents outside of this rectangle are punished with -10; given for map scale 1."""
    penalize_objects_out: bool = False
    """Whether all agents are punished when a box or a ramp is outside of the rectangle."""


class Food(Spec):
    """Food for hiders: sites without a body, each with some helpings.

    After the preparation phase a hider eats one helping of a site in every step in which it is near the site and saw
    it before the step, unless a seeker saw a hider then. The last helpings are shared evenly.
    """

    sites: PositiveInt = 1
    """Places with food."""
    radius: PositiveFloat = 0.5
    """Distance from a hider's lower corner to a site within which it eats."""
    health: PositiveInt = 10
    """Helpings of a site."""
    respawn_steps: PositiveInt | None = None
    """Steps after which an empty site is full again; null: never."""
    reward: float = 1.0
    """Reward of one helping."""
    shared: bool = False
    """Whether the hiders' food rewards are averaged over the team."""
    eat_when_seen: bool = False
    """Whether hiders may eat although a seeker sees one of them."""


class Settings(EnvironmentSettings):
    """Hide-and-seek (Baker et al. 2019, arXiv:1909.07528)."""

    requires: ClassVar[dict[str, str]] = {"mujoco": "mujoco"}
    former_values: ClassVar[dict[str, dict[str, str]]] = {"team_sizes": {"per_copy": "per_environment"}}

    scenario: Annotated[Quadrant | RandomWalls, Field(discriminator="kind")] = RandomWalls()
    """Where it is played and with what."""
    hiders: TeamSize = (1, 3)
    """Hiders: lowest and highest number; the highest is how many agents the kind has."""
    seekers: TeamSize = (1, 3)
    """Seekers: lowest and highest number."""
    team_sizes: Literal["per_environment", "per_episode"] = "per_environment"
    """Whether the numbers of hiders and seekers are drawn once for every environment at its reset, or for every
    episode."""
    map_scale: PositiveFloat = 1.0
    """Side of the floor in multiples of 6; the number of objects stays."""
    horizon_scales: bool = True
    """Whether episodes are longer by the map scale too."""
    prep_fraction: Probability = 0.4
    """Part of an episode in which seekers cannot act and nothing is rewarded."""
    reward: Literal["joint_zero_sum", "joint_mean", "selfish"] = "joint_zero_sum"
    """What a team shares: the hiders' worst and the seekers' best reward, the mean, or nothing."""
    lidar_rays: PositiveInt = 30
    """Directions in which an agent measures distances."""
    cone_to_centres: bool = False
    """Whether the vision cone goes by the centres of objects, not (as in the original) by their lower corners."""
    food: Food | None = None
    """Food for hiders; null for none."""
    deterministic: bool = False
    """Whether episode k of an environment is drawn from its seed + k alone, whatever was played before."""

    @model_validator(mode="after")
    def _check_ranges(self) -> Self:
        scenario = self.scenario
        pairs: dict[tuple[str, ...], tuple[int, int]] = {
            ("hiders",): self.hiders,
            ("seekers",): self.seekers,
            ("scenario", "boxes"): scenario.boxes,
            ("scenario", "elongated"): scenario.elongated,
        }
        if isinstance(scenario, RandomWalls):
            pairs["scenario", "rooms"] = scenario.rooms
        for where, (low, high) in pairs.items():
            if low > high:
                raise refusal(f"is [{low}, {high}]; the lowest number comes first.", *where)
        if scenario.elongated[0] > scenario.boxes[0]:
            raise refusal(
                f"is [{scenario.elongated[0]}, {scenario.elongated[1]}], but there may be only "
                f"{counted(scenario.boxes[0], 'box', 'boxes')}; lower the first number or raise that of boxes.",
                *("scenario", "elongated"),
            )
        if self.cells < 12:
            raise refusal(f"is {self.map_scale:g}; it must be at least 0.4.", "map_scale")
        return self

    @property
    def agents(self) -> tuple[str, ...]:
        """Names in the order of the agent axis, hiders first."""
        hiders = (f"hider_{number}" for number in range(self.hiders[1]))
        seekers = (f"seeker_{number}" for number in range(self.seekers[1]))
        return (*hiders, *seekers)

    @property
    def cells(self) -> int:
        """Cells of a side of the placement grid."""
        return int(CELLS * self.map_scale)

    @property
    def floor(self) -> float:
        """Side of the floor."""
        return FLOOR * self.map_scale

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        return int(self.scenario.horizon * (self.map_scale if self.horizon_scales else 1.0))

    @property
    def restrict(self) -> Rectangle | None:
        """The rectangle that agents are to stay in."""
        if self.scenario.restrict is None:
            return None
        left, lower, right, upper = (self.map_scale * edge for edge in self.scenario.restrict)
        return left, lower, right, upper

    @property
    def shows_box_sizes(self) -> bool:
        """Whether boxes (and, padded, ramps) are observed with their edges: if they can differ."""
        return self.scenario.elongated[1] > 0

    def spaces(self) -> Spaces:
        others, boxes, ramps = len(self.agents) - 1, self.scenario.boxes[1], self.scenario.ramps
        sizes = 3 * self.shows_box_sizes
        shapes: dict[str, tuple[int, ...]] = {
            "observation_self": (10,),
            "lidar": (1, self.lidar_rays),
            "agent_qpos_qvel": (others, 10),
        }
        masks = {"mask_aa_obs": others}
        if boxes:
            shapes["box_obs"] = (boxes, 12 + sizes)
            masks["mask_ab_obs"] = boxes
        if ramps:
            shapes["ramp_obs"] = (ramps, 9 + sizes + 3 * self.scenario.lock_ramps)
            masks["mask_ar_obs"] = ramps
        if self.food:
            shapes["food_obs"] = (self.food.sites, 4)
            masks["mask_af_obs"] = self.food.sites
        observations = {key: ArraySpec(shape, "float32") for key, shape in shapes.items()}
        for key, entities in masks.items():
            observations[key] = ArraySpec((entities,), "bool")
            observations[f"{key}_spoof"] = ArraySpec((entities,), "bool")
        actions = MultiDiscrete((BINS, BINS, BINS, 2, 2))
        return Spaces((Kind(KIND, self.agents, observations, actions),))

    def statistics(self) -> tuple[Panel, ...]:
        """Returns by team, then how far objects are moved and how many are locked, where there are such objects."""
        scenario = self.scenario
        panels = [Panel("Return", "return of an episode", {"hider_return": "hiders", "seeker_return": "seekers"})]
        if scenario.boxes[1]:
            panels.append(_at_both_ends("Box movement", "largest distance", "max_box_move"))
        if scenario.ramps:
            panels.append(_at_both_ends("Ramp movement", "largest distance", "max_ramp_move"))
        if scenario.boxes[1]:
            panels.append(_at_both_ends("Box locks", "locked boxes", "num_box_lock"))
        if scenario.ramps and scenario.lock_ramps:
            panels.append(_at_both_ends("Ramp locks", "locked ramps", "num_ramp_lock"))
        if self.food:
            panels.append(Panel("Food", "helpings eaten", {"food_eaten": "hiders"}))
        return tuple(panels)


def _at_both_ends(title: str, unit: str, statistic: str) -> Panel:
    return Panel(title, unit, {f"{statistic}_prep": "end of preparation", statistic: "end of episode"})
