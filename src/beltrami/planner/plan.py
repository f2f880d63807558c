"""The plan for a graph: the estimates of all modes, the one to use, and its command."""

import re
from dataclasses import dataclass

from beltrami.memory import in_bytes, parse_bytes
from beltrami.planner.modes import MODES, PLANNED, Devices, ModeCost
from beltrami.planner.workload import Workload

MOST_USED = 0.9  # share of a device's memory, and of the host's, that an estimate may take
DEVICES = re.compile(r"(.+?)\s*(?:[x*]\s*(\d+))?")
DESCRIPTIONS = {
    "whole": "everything on one device",
    "workers": "several devices, with the numbers of one",
    "blocks": "one device, in blocks of columns and edges",
    "precomputed": "diffuse the features once, train on rows",
}
COMMANDS = {
    "whole": "beltrami train {graph} --device cuda",
    "workers": "beltrami train {graph} --workers {count} --device cuda",
    "blocks": "beltrami train {graph} --memory {memory} --device cuda",
    "precomputed": "beltrami train {graph} --recipe precomputed --device cuda",
}


@dataclass(frozen=True)
class Plan:
    """The estimates by mode, and the mode to use: the fastest epoch of those that fit; None if none does."""

    workload: Workload
    devices: Devices
    host: int
    estimates: dict[str, ModeCost]
    best: str | None

    def fits(self, mode: str) -> bool:
        """Return whether the estimate of a mode fits into the devices and the host."""
        found = self.estimates[mode]
        return found.device_bytes <= MOST_USED * self.devices.memory and found.host_bytes <= MOST_USED * self.host

    def command(self, mode: str, graph: str) -> str:
        """Return the command that trains in a mode."""
        memory = in_bytes(PLANNED * self.devices.memory).replace(" ", "")
        return COMMANDS[mode].format(graph=graph, count=self.devices.count, memory=memory)


def make_plan(workload: Workload, devices: Devices, *, host: int) -> Plan:
    """Return the plan for a workload on devices and a host with so many bytes of memory."""
    estimates = {
        name: mode(workload, devices) for name, mode in MODES.items() if name != "workers" or devices.count > 1
    }
    plan = Plan(workload, devices, host, estimates, None)
    fitting = [name for name in estimates if plan.fits(name)]
    # The precomputed features are another model: it is named where no exact mode fits.
    exact = [name for name in fitting if name != "precomputed"]
    best = min(exact or fitting, key=lambda name: estimates[name].epoch_seconds, default=None)
    return Plan(workload, devices, host, estimates, best)


def parse_devices(text: str) -> Devices:
    """Return the devices that a text such as ``80GiB x 4`` or ``24GiB`` describes."""
    found = DEVICES.fullmatch(text.strip())
    try:
        devices = Devices(parse_bytes(found[1]), int(found[2] or 1)) if found else None
    except ValueError:
        devices = None
    if devices is None or devices.memory < 1 or devices.count < 1:
        raise ValueError(f"`--gpus` takes a size and a number, such as `80GiB x 4` or `24GiB`; got {text!r}.")
    return devices
