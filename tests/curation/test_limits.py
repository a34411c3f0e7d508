"""The throttle follows the server; the budget is kept, whatever is under way."""

from __future__ import annotations

import asyncio

import pytest

from torus_ray.curation.limits import Budget, CurationStop, Spend, Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def test_a_burst_of_429_is_one_step_down_and_a_lasting_limit_many() -> None:
    async def go() -> None:
        throttle = Throttle(32, Clock())
        burst = [await throttle.enter() for _ in range(32)]
        for began in burst:
            throttle.leave(began, ok=False, too_many=True)
        assert throttle.limit == 16
        for expected in (8, 4, 2, 1, 1):
            throttle.leave(await throttle.enter(), ok=False, too_many=True)
            assert throttle.limit == expected

    asyncio.run(go())


def test_the_limit_comes_back_a_step_for_each_full_round_of_successes() -> None:
    async def go() -> None:
        throttle = Throttle(4, Clock())
        for _ in range(3):
            throttle.leave(await throttle.enter(), ok=False, too_many=True)
        assert throttle.limit == 1
        limits = []
        for _ in range(12):
            throttle.leave(await throttle.enter(), ok=True)
            limits.append(throttle.limit)
        assert limits == [2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4]

    asyncio.run(go())


def test_no_more_than_the_limit_are_in_flight_and_those_who_wait_get_their_turn() -> None:
    async def go() -> None:
        throttle = Throttle(3)
        done = 0

        async def one() -> None:
            nonlocal done
            began = await throttle.enter()
            assert throttle.in_flight <= 3
            await asyncio.sleep(0)
            throttle.leave(began, ok=True)
            done += 1

        await asyncio.gather(*(one() for _ in range(50)))
        assert (done, throttle.peak, throttle.in_flight) == (50, 3, 0)

    asyncio.run(go())


def test_a_retry_after_holds_back_every_new_call() -> None:
    async def go() -> None:
        throttle = Throttle(2)
        began = await throttle.enter()
        throttle.leave(began, ok=False, too_many=True, wait_s=0.03)
        assert await throttle.enter() >= began + 0.03

    asyncio.run(go())


def test_a_budget_counts_what_is_under_way_at_its_worst() -> None:
    async def go() -> None:
        budget = Budget(Spend(tokens=100), tokens=40)
        await budget.hold(50, 0.0)
        second = asyncio.ensure_future(budget.hold(50, 0.0))
        await asyncio.sleep(0)
        assert not second.done()  # it may fit, once the first is known to have taken less
        budget.settle((50, 0.0), 10, None)
        await second
        budget.settle((50, 0.0), 50, None)
        assert budget.tokens == 100
        with pytest.raises(CurationStop, match="at most 100 tokens"):
            await budget.hold(1, 0.0)

    asyncio.run(go())


@pytest.mark.parametrize("most", [Spend(calls=3), Spend(money=0.3), Spend(calls=9, tokens=30)])
def test_many_at_once_never_overspend(most: Spend) -> None:
    async def go() -> int:
        budget = Budget(most)
        done = 0

        async def one() -> None:
            nonlocal done
            await budget.hold(10, 0.1)
            await asyncio.sleep(0)
            budget.settle((10, 0.1), 10, 0.1)
            done += 1

        ended = await asyncio.gather(*(one() for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(end, CurationStop) for end in ended) == 20 - done
        return done

    assert asyncio.run(go()) == 3
