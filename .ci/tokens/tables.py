"""Writes the Unicode tables of the references, as seen from outside:

    python tables.py CLASSES NFC

The references bring tables of their own, of different Unicode versions, and what they count depends
on them; so do the counters, which must not change with a toolchain. Here they are found by asking the
library about every code point. classes.mjs checks that the npm package tiktoken has the same classes.

CLASSES is runs over all code points from 0: the classes as bits of one byte, then the run's length as
a varint (7 bits a byte, low bits first, 0x80 set on all but the last byte).

NFC is two lists of varints. First the combining classes that are not 0, a code point's distance from
the one before, then its class, up to a distance of 0. Then the canonical decompositions: the distance,
then the first code point, the second one (0 if there is none), and 1 if the two compose again or 0;
up to a distance of 0.
"""

import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# The bits, in their order.
CLASSES = [r"[\p{Lu}\p{Lt}]", r"\p{Ll}", r"[\p{Lm}\p{Lo}]", r"\p{M}", r"\p{N}", r"\s", r"\p{P}", r"\p{S}"]

nfd = normalizers.NFD().normalize_str
nfc = normalizers.NFC().normalize_str


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def matched(pattern):
    """The code points that a pattern of one character matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for i in range(0, len(CODE_POINTS), 1000):
        chunk = {chr(c) for c in CODE_POINTS[i : i + 1000]}
        kept = {c for piece, _ in split.pre_tokenize_str("".join(chunk)) for c in piece}
        found.update(ord(c) for c in chunk - kept)
    return found


def classes():
    flags = bytearray(0x110000)
    for bit, pattern in enumerate(CLASSES):
        for c in matched(pattern):
            flags[c] |= 1 << bit
    digits = pre_tokenizers.Digits(individual_digits=True)
    odd = [f"{c:X}" for c in CODE_POINTS if (len(digits.pre_tokenize_str(f"a{chr(c)}a")) == 3) != bool(flags[c] & 16)]
    print("Digits differs from \\p{N} at", " ".join(odd))
    out, start = bytearray(), 0
    for c in range(1, len(flags) + 1):
        if c == len(flags) or flags[c] != flags[start]:
            out += bytes([flags[start]]) + varint(c - start)
            start = c
    return bytes(out)


def combining_classes():
    """The class of each code point that has one: what it changes places with tells it."""
    marks = {}  # a mark of each class, whose class has always been known
    for c in map(chr, CODE_POINTS):
        value = unicodedata.ucd_3_2_0.combining(c)
        if value and nfd(c) == c:
            marks.setdefault(value, c)
    lowest, highest = marks[min(marks)], marks[max(marks)]
    found = {}
    for c in map(chr, CODE_POINTS):
        if nfd(c) != c or nfd("a" + c + lowest) == "a" + c + lowest and nfd("a" + highest + c) == "a" + highest + c:
            continue
        below = {v for v, m in marks.items() if m != c and nfd("a" + c + m) == "a" + m + c}
        above = {v for v, m in marks.items() if m != c and nfd("a" + m + c) == "a" + c + m}
        own = [v for v in marks if v not in below and v not in above]
        if not own:  # a class that no old mark has
            own = [unicodedata.combining(c)]
        if len(own) != 1 or any(v >= own[0] for v in below) or any(v <= own[0] for v in above):
            raise ValueError(f"U+{ord(c):04X}: between {below} and {above}")
        found[ord(c)] = own[0]
    return found


def decompositions():
    """First and second code point, and whether they compose again, of each that has them."""
    found = {}
    for c in map(chr, CODE_POINTS):
        raw = unicodedata.decomposition(c)
        if nfd(c) == c or not raw or 0xAC00 <= ord(c) < 0xD7A4:
            continue
        first, second = ([int(x, 16) for x in raw.split()] + [0])[:2]
        composes = second != 0 and nfc(chr(first) + chr(second)) == c
        if nfc(c) != c and composes:
            raise ValueError(f"U+{ord(c):04X} composes, but not by itself")
        found[ord(c)] = first, second, int(composes)

    def full(c):
        first, second, _ = found.get(c, (0, 0, 0))
        return (full(first) + (full(second) if second else "")) if first else chr(c)

    for c in CODE_POINTS:
        if not 0xAC00 <= c < 0xD7A4 and nfd(full(c)) != nfd(chr(c)) or c in found and nfd(chr(c)) != full(c):
            raise ValueError(f"U+{c:04X} decomposes otherwise")
    return found


def nfc_tables():
    out, last = bytearray(), 0
    for c, value in sorted(combining_classes().items()):
        out += varint(c - last) + varint(value)
        last = c
    out += varint(0)
    last = 0
    for c, (first, second, composes) in sorted(decompositions().items()):
        out += varint(c - last) + varint(first) + varint(second) + varint(composes)
        last = c
    return bytes(out + varint(0))


for path, made in zip(sys.argv[1:], (classes(), nfc_tables())):
    with open(path, "wb") as f:
        f.write(made)
    print(path, len(made), "bytes")
