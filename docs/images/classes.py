"""Draws docs/images/classes.svg: generated points, and the boxes that a release shows instead of them.

Run from the repository: .venv/bin/python docs/images/classes.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import sfumato
from sfumato.synthetic import make_generator

SIDE, MARGIN, K = 360, 40, 5
INK, SOFT, FILL = "#22313f", "#8a97a5", "#c9733c"


def panel(title: str, left: int, marks: list[str]) -> str:
    frame = f'<rect x="{left}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" fill="none" stroke="{SOFT}"/>'
    text = f'<text x="{left}" y="{MARGIN - 14}" font-size="16" fill="{INK}">{title}</text>'
    return "\n".join([text, *marks, frame])


def main() -> None:
    points = pa.Table.from_batches(make_generator("normal", dimensions=2).batches(300, seed=7))
    release = sfumato.anonymize(points, quasi_identifiers=["x1", "x2"], k=K, form="bounds", keep_order=True)
    xs, ys = points["x1"].to_pylist(), points["x2"].to_pylist()
    low, high = min(*xs, *ys) - 2, max(*xs, *ys) + 2
    scale = SIDE / (high - low)

    def across(value: float, left: int) -> float:
        return left + (value - low) * scale

    def down(value: float) -> float:
        return MARGIN + SIDE - (value - low) * scale

    right = 2 * MARGIN + SIDE
    dots = [
        f'<circle cx="{across(x, MARGIN):.1f}" cy="{down(y):.1f}" r="2.4" fill="{INK}" fill-opacity="0.55"/>'
        for x, y in zip(xs, ys, strict=True)
    ]
    rows = release.data.select(["x1_min", "x1_max", "x2_min", "x2_max"]).to_pylist()
    boxes = []
    for box in {tuple(row.values()) for row in rows}:
        x1, x2, y1, y2 = box
        boxes.append(
            f'<rect x="{across(x1, right):.1f}" y="{down(y2):.1f}" width="{(x2 - x1) * scale + 1.5:.1f}" '
            f'height="{(y2 - y1) * scale + 1.5:.1f}" fill="{FILL}" fill-opacity="0.28" stroke="{FILL}"/>'
        )
    width, height = 3 * MARGIN + 2 * SIDE, 2 * MARGIN + SIDE
    svg = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            panel("300 persons", MARGIN, dots),
            panel(f"k = {K}: {len(boxes)} classes, {release.losses.gcp:.1%} lost", right, sorted(boxes)),
            "</svg>",
        ]
    )
    Path(__file__).with_suffix(".svg").write_text(svg + "\n", "utf-8")


if __name__ == "__main__":
    main()
