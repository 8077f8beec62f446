#!/usr/bin/env python3
"""Draws the plots of docs/engine.md from the tables in it: `python3 docs/images/plots.py`."""

import re
from pathlib import Path

HERE = Path(__file__).parent
TEXT = (HERE.parent / "engine.md").read_text()
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #333 } .t { font-weight: 600 } .g { stroke: #ddd } .v { font-size: 10px }
.c0 { fill: #b9c0c9 } .c1 { fill: #8d99a6 } .c2 { fill: #63b3a4 } .c3 { fill: #1f6feb } .c4 { fill: none; stroke: #1f6feb; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .g { stroke: #444 } .c0 { fill: #565d66 } .c1 { fill: #7f8a96 } }
</style>"""


def f1_by_population():
    """(rule, [flaky F1 of S1 to S5]) from the table of rules."""
    names = {
        "flip rate > 0.1": "flip rate > 0.1",
        "same commit >= 1": "same commit",
        "same commit, outside mass failures": "same commit outside mass failures",
        "**engine**": "engine",
        "upper bound": "upper bound",
    }
    rows = {}
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] in names and len(cells) == 6 and names[cells[0]] not in rows:
            values = []
            for cell in cells[1:]:
                found = re.search(r"/\*{0,2}(\d?\.?\d+)\*{0,2}(;|$)", cell)
                values.append(float(found[1]) if found else values[0] if cell == "as S1" else 0.0)
            rows[names[cells[0]]] = values
    return list(rows.items())


# The rates and recalls that `assay-evaluate simulate --population S1 --seeds 201,202,203,204 --rates` prints.
RECALL_BY_RATE = [("0.5 %", ".40"), ("1 %", ".67"), ("2 %", ".82"), ("5 %", "1.0")]


def svg(name, width, height, title, body):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}">'
    text = f"{head}\n{STYLE}\n<text class='t' x='40' y='18'>{title}</text>\n{body}\n</svg>\n"
    (HERE / name).write_text(text)


def grid(top, bottom, right):
    lines = []
    for tenth in range(0, 11, 2):
        y = bottom - (bottom - top) * tenth / 10
        lines.append(f"<line class='g' x1='40' y1='{y:.1f}' x2='{right}' y2='{y:.1f}'/><text x='34' y='{y + 4:.1f}' text-anchor='end'>{tenth / 10:.1f}</text>")
    return lines


def bars():
    rules, parts = f1_by_population(), grid(40, 240, 740)
    for population in range(5):
        left = 56 + population * 136
        for place, (_, values) in enumerate(rules):
            high = 200 * values[population]
            x = left + place * 21
            parts.append(f"<rect class='c{place}' x='{x}' y='{240 - high:.1f}' width='18' height='{high:.1f}'/>")
            parts.append(f"<text class='v' x='{x + 9}' y='{236 - high:.1f}' text-anchor='middle'>{values[population]:.2f}</text>")
        parts.append(f"<text x='{left + 51}' y='256' text-anchor='middle'>S{population + 1}</text>")
    x = 40
    for place, (rule, _) in enumerate(rules):
        parts.append(f"<rect class='c{place}' x='{x}' y='270' width='11' height='11'/><text x='{x + 16}' y='280'>{rule.replace('>', '&gt;')}</text>")
        x += 34 + 6.6 * len(rule)
    svg("flaky-f1.svg", 760, 290, "F1 of flaky verdicts, simulated populations S1 to S5", "\n".join(parts))


def steps():
    parts = grid(40, 200, 340)
    for place, (rate, recall) in enumerate(RECALL_BY_RATE):
        x, high = 60 + place * 72, 160 * float(recall)
        parts.append(f"<rect class='c3' x='{x}' y='{200 - high:.1f}' width='40' height='{high:.1f}'/>")
        parts.append(f"<text class='v' x='{x + 20}' y='{196 - high:.1f}' text-anchor='middle'>{recall}</text><text x='{x + 20}' y='216' text-anchor='middle'>{rate}</text>")
    svg("flaky-recall.svg", 420, 226, "Flaky tests found, by their true failure rate (S1)", "\n".join(parts))


bars()
steps()
