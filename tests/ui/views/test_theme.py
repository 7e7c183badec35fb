"""Colours can be told apart in both themes and with every kind of colour vision; every state and event has its look."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from dashboards.views import theme
from schemas.states import Evidence, GroupEventKind, GroupState

COLOURS = {style.colour for style in theme.STYLES.values()}
CSS = (Path(theme.__file__).parents[1] / "assets" / "regroup.css").read_text(encoding="utf-8").lower()

# Machado, Oliveira, Fernandes 2009, severity 1.0, for linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
APART = {"normal": 19.2, "protan": 17.2, "deutan": 17.0, "tritan": 17.5}


def linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    ) @ np.clip(rgb, 0, 1)
    t = xyz / [0.95047, 1.0, 1.08883]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one: np.ndarray, two: np.ndarray) -> float:
    (l1, a1, b1), (l2, a2, b2) = one, two
    c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(c**7 / (c**7 + 25**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1)) % 360, math.degrees(math.atan2(b2, a2)) % 360
    dh = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    mean_h = h1 + h2 if c1 * c2 == 0 else (h1 + dh / 2) % 360
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    delta_h = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(dh / 2))
    t = (
        1
        - 0.17 * math.cos(math.radians(mean_h - 30))
        + 0.24 * math.cos(math.radians(2 * mean_h))
        + 0.32 * math.cos(math.radians(3 * mean_h + 6))
        - 0.20 * math.cos(math.radians(4 * mean_h - 63))
    )
    sl = 1 + 0.015 * (mean_l - 50) ** 2 / math.sqrt(20 + (mean_l - 50) ** 2)
    sc, sh = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    rc = 2 * math.sqrt(mean_c**7 / (mean_c**7 + 25**7))
    rt = -math.sin(math.radians(60 * math.exp(-(((mean_h - 275) / 25) ** 2)))) * rc
    dl, dc, dh2 = (l2 - l1) / sl, (c2 - c1) / sc, delta_h / sh
    return math.sqrt(dl**2 + dc**2 + dh2**2 + rt * dc * dh2)


def test_ciede2000_gives_the_published_value_of_its_test_data():
    # Sharma, Wu, Dalal 2005, pair 1.
    assert pytest.approx(2.0425, abs=1e-4) == ciede2000(np.array([50, 2.6772, -79.7751]), np.array([50, 0, -82.7485]))


@pytest.mark.parametrize("background", ["#FFFFFF", "#1A1B1E"])
@pytest.mark.parametrize("colour", sorted(COLOURS))
def test_every_look_has_a_contrast_of_three_on_both_backgrounds(colour, background):
    assert contrast(colour, background) >= 3.0


@pytest.mark.parametrize("vision", sorted(VISIONS))
def test_looks_stay_apart_for_every_kind_of_colour_vision(vision):
    seen = {c: lab(VISIONS[vision] @ linear(c)) for c in COLOURS}
    nearest = min(ciede2000(seen[a], seen[b]) for a, b in itertools.combinations(COLOURS, 2))
    assert pytest.approx(APART[vision], abs=0.06) == nearest


def test_no_two_looks_differ_by_colour_alone():
    shapes = [(style.height, style.pattern) for style in theme.STYLES.values()]
    assert len(shapes) == len(set(shapes))
    assert len(theme.STYLES) == len({style.word for style in theme.STYLES.values()})


def test_the_style_sheet_has_the_same_colours():
    for name, style in theme.STYLES.items():
        if name != "unknown":
            assert f"--{name}: {style.colour.lower()};" in CSS


def test_every_state_has_a_look_and_an_unheard_of_one_looks_unknown():
    assert set(GroupState) == set(theme.STATE_STYLES)
    assert "unknown" == theme.style_of("SomethingNew")
    assert "unknown" == theme.style_of(None)


def test_every_event_has_a_glyph_with_a_word_of_its_own():
    assert set(GroupEventKind) == set(theme.GLYPHS)
    for part in ("character", "symbol", "word"):
        assert len(theme.GLYPHS) == len({getattr(g, part) for g in theme.GLYPHS.values()})


def test_every_grade_of_evidence_is_explained():
    assert set(Evidence) == set(theme.EVIDENCE)


def test_a_name_keeps_its_hue():
    assert theme.hue("billing-1") == theme.hue("billing-1")
    assert {theme.hue(str(i)) for i in range(200)} == set(theme.HUES)


def test_names_shown_together_differ_while_there_are_hues():
    names = [f"billing-{i}" for i in range(len(theme.HUES) + 1)]
    found = theme.hues(names)
    assert set(theme.HUES) == set(found.values())
    assert found[names[0]] == theme.hue(names[0])


def test_no_share_group_looks_as_if_it_worked():
    assert "working" == theme.style_of("Stable", "consumer")
    assert ("unseen", "empty") == (theme.style_of("Stable", "share"), theme.style_of("Empty", "share"))
    assert "work not observed" == theme.STYLES["unseen"].word
