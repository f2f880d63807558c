"""Butcher tableaux of the explicit Runge-Kutta methods."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tableau:
    r"""The coefficients of an explicit Runge-Kutta method of s stages.

    .. math:: k_i = f(t_0 + c_i h, \; y_0 + h \sum_{j<i} a_{ij} k_j), \qquad y_1 = y_0 + h \sum_i b_i k_i

    Args:
        order: order of ``y1``.
        a: rows 2 to s, row i with i - 1 entries.
        b: weights of ``y1``.
        c: nodes of rows 2 to s.
        error: weights of ``y1`` minus those of the embedded method; empty without one.
        error_order: order of the embedded method.
        dense: weights d of the quartic term theta^2 (1 - theta)^2 h sum d_i k_i that turns the cubic Hermite
            interpolant into the continuous extension of the method; empty without one.
    """

    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]
    error: tuple[float, ...] = ()
    error_order: int | None = None
    dense: tuple[float, ...] = ()

    @property
    def fsal(self) -> bool:
        """Whether the last stage is the first stage of the next step ("first same as last"): its row is ``b``."""
        return len(self.a) > 0 and (*self.a[-1], 0.0) == self.b


EULER = Tableau(order=1, a=(), b=(1.0,), c=())
MIDPOINT = Tableau(order=2, a=((1 / 2,),), b=(0.0, 1.0), c=(1 / 2,))
HEUN = Tableau(order=2, a=((1.0,),), b=(1 / 2, 1 / 2), c=(1.0,), error=(-1 / 2, 1 / 2), error_order=1)
RK4 = Tableau(
    order=4, a=((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)), b=(1 / 6, 1 / 3, 1 / 3, 1 / 6), c=(1 / 2, 1 / 2, 1.0)
)
BOSH3 = Tableau(
    order=3,
    a=((1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
    b=(2 / 9, 1 / 3, 4 / 9, 0.0),
    c=(1 / 2, 3 / 4, 1.0),
    error=(-5 / 72, 1 / 12, 1 / 9, -1 / 8),
    error_order=2,
)
DOPRI5 = Tableau(
    order=5,
    a=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    c=(1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    error=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    error_order=4,
    dense=(
        -12715105075 / 11282082432,
        0.0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    ),
)
