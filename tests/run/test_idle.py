"""When an interactive session counts as idle."""

from __future__ import annotations

from easel.run.idle import IdleWatch


def test_a_session_is_warned_and_then_ends() -> None:
    watch = IdleWatch(1200.0, 0.0)
    words = [watch.look(float(now), 0.0, 0.0, lambda: 0.0) for now in range(0, 1220, 5)]
    said = [word for word in words if word is not None]
    assert [word.over for word in said[:2]] == [False, True]
    assert said[0].text == "idle for 15 min: the session is saved and ends in 5 min, unless it is used"
    first_end = next(now for now, word in zip(range(0, 1220, 5), words, strict=True) if word and word.over)
    assert 1200 <= first_end <= 1200 + 120  # freed at most two minutes after its limit


def test_whoever_works_in_it_keeps_it_and_is_warned_again_later() -> None:
    watch = IdleWatch(600.0, 0.0)
    said = [
        (now, word.over)
        for now in range(0, 1400, 15)
        if (word := watch.look(float(now), 400.0 if now >= 400 else 0.0, 0.0, lambda: 0.0)) is not None
    ]
    assert said[0] == (300, False)
    assert said[1] == (705, False)
    assert said[2] == (1005, True)


def test_processors_and_gpus_count_as_use() -> None:
    by_cpu, by_gpu = IdleWatch(60.0, 0.0), IdleWatch(60.0, 0.0)
    for now in range(0, 600, 6):
        assert by_cpu.look(float(now), 0.0, 0.2 * now, lambda: 0.0) is None
        assert by_gpu.look(float(now), 0.0, 0.01 * now, lambda: 0.5) is None


def test_the_gpu_is_asked_only_when_a_look_is_due() -> None:
    asked: list[float] = []

    def use() -> float:
        asked.append(1.0)
        return 0.0

    watch = IdleWatch(1200.0, 0.0)
    for now in range(60):
        watch.look(float(now), 0.0, 0.0, use)
    assert len(asked) == 3


def test_use_between_two_looks_counts_until_the_second() -> None:
    """A session that stopped using its GPU at 95.8 s was ended 4.8 s early: use had last been seen at 91 s."""
    for stops in (90.5, 93.0, 95.8):
        watch, ended = IdleWatch(60.0, 0.0), None
        for now in range(300):
            word = watch.look(float(now), 0.0, 0.0, lambda use=0.5 * (now < stops): use)  # type: ignore[misc]
            if word is not None and word.over:
                ended = now
                break
        assert ended is not None
        assert stops + 60 <= ended <= stops + 60 + 2 * 6
