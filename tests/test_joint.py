"""Joint coordinates: u first, x after, and back again."""

import pytest
import torch
from checks import normal

from beltrami.joint import Joint


def test_join_puts_positions_first_and_split_undoes_it() -> None:
    joint, u, x = Joint(2, 3), normal(4, 2), normal(4, 3, seed=1)
    z = joint.join(u, x)
    assert torch.equal(z, torch.cat((u, x), dim=1))
    assert all(torch.equal(a, b) for a, b in zip(joint.split(z), (u, x), strict=True))


def test_slices_cover_the_channels_once() -> None:
    joint = Joint(2, 3)
    channels = list(range(joint.channels))
    assert channels[joint.u] + channels[joint.x] == [0, 1, 2, 3, 4]
    assert channels[joint.u] == [0, 1]


@pytest.mark.parametrize(("pos", "feat"), [(0, 3), (3, 0)])
def test_either_part_may_be_empty(pos: int, feat: int) -> None:
    joint, z = Joint(pos, feat), normal(4, 3)
    u, x = joint.split(z)
    assert (u.shape, x.shape) == ((4, pos), (4, feat))
    assert torch.equal(joint.join(u, x), z)


def test_a_trajectory_splits_along_its_last_axis() -> None:
    u, x = Joint(1, 2).split(normal(5, 4, 3))
    assert u.shape == (5, 4, 1)
    assert x.shape == (5, 4, 2)


@pytest.mark.parametrize(("pos", "feat"), [(-1, 3), (3, -1), (0, 0)])
def test_widths_that_make_no_state_are_refused(pos: int, feat: int) -> None:
    with pytest.raises(ValueError, match=rf"not both 0; got Joint\(pos={pos}, feat={feat}\)"):
        Joint(pos, feat)


def test_wrong_widths_are_refused_in_joining_and_splitting() -> None:
    with pytest.raises(ValueError, match=r"Joint\(pos=2, feat=3\) joins .*; got \(4, 3\) and \(4, 3\)"):
        Joint(2, 3).join(normal(4, 3), normal(4, 3))
    with pytest.raises(ValueError, match=r"Joint\(pos=2, feat=3\) splits `z` \(n, 5\); got \(4, 4\)"):
        Joint(2, 3).split(normal(4, 4))
