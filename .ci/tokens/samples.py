"""Writes the texts that the benchmarks count, 64 KiB of each kind:

    python samples.py FOLDER

Clauses are put together anew, so that hardly any is there twice; code is this project's own.
"""

import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).parent
PHRASES = json.loads((HERE / "phrases.json").read_text(encoding="utf-8"))
SIZE = 64 << 10
r = random.Random(1)


def english(size):
    words, text = PHRASES["english"].split(), ""
    while len(text) < size:
        text += " ".join(r.choice(words) for _ in range(r.randrange(5, 20))) + r.choice([" ", ", ", ". ", ".\n"])
    return text


def chinese(size):
    plain, text = [c for c in PHRASES["chinese"] if "\u4e00" <= c <= "\u9fff"], ""
    while len(text.encode()) < size:
        for _ in range(r.randrange(2, 6)):
            start = r.randrange(len(plain) - 6)
            text += "".join(plain[start : start + r.randrange(2, 6)])
        text += r.choice("，，，。。；：！、") if r.random() < 0.95 else f"{r.randrange(3000)}"
    return text


def hits(size):
    lines = ""
    while len(lines.encode()) < size:
        text = chinese(400) if r.random() < 0.125 else english(400).replace("&", "&amp;")
        lines += (f'<memory_hit memory_id="mem-{r.randrange(10**6):06d}" authority="user_default" score="0.{r.randrange(10**4):04d}" '
                  f'source_rank="{r.randrange(1, 100)}" source_id="conversation-{r.randrange(1000)}" source_type="conversation" '
                  f'captured_at="2026-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}T09:{r.randrange(60):02d}:00Z">{text}</memory_hit>\n')
    return lines


def code(size):
    files = sorted((HERE / "../../server/memory").glob("*.go"))
    return "".join(f.read_text(encoding="utf-8") for f in files)[:size]


for make in (hits, chinese, code, english):
    (pathlib.Path(sys.argv[1]) / f"{make.__name__}.txt").write_text(make(SIZE), encoding="utf-8", newline="\n")
