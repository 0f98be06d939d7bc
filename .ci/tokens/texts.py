"""Writes texts to count, one JSON string a line, packed by gzip:

    python texts.py FILE [SEED [NUMBER]]

The same seed always gives the same texts: of the languages in phrases.json, of code and markup, and
adversarial ones, drawn from the code points at which pre-tokenisers differ.
"""

import gzip
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "phrases.json"), encoding="utf-8") as f:
    PHRASES = json.load(f)
SCRIPTS = {name: text for name, text in PHRASES.items() if name not in ("code", "markup")}

BLANKS = list("\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2003\u2028\u2029\u202f\u205f\u3000")
# Like white space or like letters or numbers, but not, or not everywhere.
ODD = list("\u200b\u200c\u200d\u2060\ufeff\u180e\x00\x01\x1b\x1c\x1f\x7f\u00ad\u034f\ufe0f\u20e3\U000e0001\ufffd\uffff\ue000"
           "\U0010ffff\u0378\u05ff\U0003ffff\U000e01ef")
TITLE = list("\u01c5\u01c8\u01cb\u01f2\u1f88\u1fbc\u1ffc")
MODIFIERS = list("\u02b0\u02bc\u02c6\u02ee\u0374\u0640\u0e46\u3005\u309d\u30fc\ua67f\uff70\U00016b40")
MARKS = list("\u0300\u0301\u0308\u0323\u0338\u0345\u05b0\u064b\u0670\u093c\u0941\u094d\u0e31\u0e48\u1dce\u20d0\u20dd\u302a\u3099\u309a"
             "\u0488\u0903\u1abf\u16ff0\U0001d165\U0001e8d0\u0c3c\u0898\U00011938\U00011930")
NUMBERS = list("0123456789\u00b2\u00bd\u0660\u0661\u06f4\u0967\u0e51\u2160\u2167\u2460\u2488\u3007\u3021\u3220\u4e00\uff11\U0001d7ce"
               "\U00010107\U0001f100\U00011de0\U00016ff4")
CASED = list("aAzZ\u00e9\u00c9\u00df\u1e9e\u017f\u212a\u0130\u0131\u03c3\u03c2\u03a3\u10d0\u1c90\u13a0\uab70\U00010400\U00010428\ua7cb\u019b\u0587")
PLAIN = list("\u00aa\u00ba\u01bb\u05d0\u0627\u0905\u0e01\u4e2d\u3042\u30a2\uac00\u1100\u1161\u11a8\uff9e\U00020000\U00031350\u1820\U000105c0")
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u00a1\u00ab\u2014\u2018\u2019\u201c\u2026\u3001\u3002\uff0c\uff01\u20ac\u2192\u2211\u00b4\u2028")
EMOJI = ["\U0001f600", "\U0001f44d\U0001f3fd", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3", "\U0001fae8",
         "\u263a", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001f600\U0001f600"]
CONTRACTIONS = ["'s", "'S", "'t", "'T", "'re", "'RE", "'rE", "'ve", "'VE", "'m", "'M", "'ll", "'LL", "'lL", "'d", "'D", "'\u017f", "'\u017fe",
                "'r", "'v", "'l", "'", "''", "\u2019s", "'x", "'K", "'\u212a", "'d's", "'\ufb06", "'\u0073\u0301"]
BREAKS = ["\n", "\r", "\r\n", "\n\r", "\n\n", "\r\n\r\n", "\n \n", "\n\t", "\u2028", "\u0085", " \n", "\n ", "\v\n", "\n\u3000"]
SPECIAL = ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>",
           "</tool_call>", "<tool_response>", "<|begin_of_text|>", "<|eot_id|>", "[INST]", "[/INST]", "<s>", "</s>", "<unk>",
           "<\uff5cfim\u2581begin\uff5c>", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>", "<\uff5ctool\u2581sep\uff5c>", "<|EOT|>", "<|repo_name|>",
           "<mem>", "<mem >", "  word  ", "<a>b"]
COMPOSED = ["e\u0301", "\u00e9", "<\u0338", ">\u0338", "=\u0338", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u0041\u030a", "\u212b", "\u0958",
            "\u0344", "a\u0323\u0307", "a\u0307\u0323", "\uf900", "\U0002f800", "\u0f73", "\U0001d15e", "\u09c7\u09be", "\u0340"]
CLASSES = [BLANKS, ODD, TITLE, MODIFIERS, MARKS, NUMBERS, CASED, PLAIN, SIGNS, EMOJI, CONTRACTIONS, BREAKS, SPECIAL, COMPOSED]
SEPARATOR = "\n\n---\n\n"


class Writer:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def any(self, items):
        return items[self.r.randrange(len(items))]

    def code_point(self):
        """A code point, those of the lower planes more often."""
        while True:
            c = self.r.randrange(self.any([0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000]))
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    def phrase(self, name, most=160):
        """A stretch of a text, cut anywhere."""
        text = PHRASES[name]
        start = self.r.randrange(len(text))
        return text[start : start + self.r.randrange(1, most)]

    def language(self):
        return self.phrase(self.any(list(SCRIPTS)))

    def mixed(self):
        return "".join(self.phrase(self.any(list(PHRASES)), 24) + self.any(["", " ", "\n", "\uff0c"]) for _ in range(self.r.randrange(2, 8)))

    def code(self):
        return self.phrase("code", 400)

    def markup(self):
        return self.phrase("markup", 400)

    def hit(self):
        """A rendered memory."""
        text = self.any([self.language, self.mixed, self.adversarial])()
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return (f'<memory_hit memory_id="{self.r.randrange(10**6):06x}" authority="user_default" score="0.{self.r.randrange(10**4)}" '
                f'source_rank="{self.r.randrange(99)}" source_id="{self.any(["notes/7", "chat-12", "日记", "wiki"])}" '
                f'captured_at="2026-0{self.r.randrange(1, 9)}-17T09:00:00Z">{text}</memory_hit>\n')

    def hits(self):
        return "".join(self.hit() for _ in range(self.r.randrange(1, 4)))

    def segments(self):
        return SEPARATOR.join(self.any([self.language, self.adversarial, self.blank, self.hits])() for _ in range(self.r.randrange(2, 4)))

    def blank(self):
        return "".join(self.any(self.any([BLANKS, BREAKS, [" ", "\n", "a", "/", "<", "-"], [" ", "\n"]])) for _ in range(self.r.randrange(1, 16)))

    def adversarial(self):
        """Of few classes, so that their members meet."""
        classes = [self.any(CLASSES) for _ in range(self.r.randrange(1, 5))]
        return "".join(self.any(self.any(classes)) for _ in range(self.r.randrange(1, 24)))

    def random(self):
        return "".join(self.code_point() for _ in range(self.r.randrange(1, 20)))

    def repeated(self):
        unit = self.any([self.code_point, self.adversarial, lambda: self.any(self.any(CLASSES))])()
        return (unit * self.r.randrange(1, 1 + max(1, 300 // len(unit))))[:300]

    def letters(self):
        """Words of no language, whose merges meet in every order."""
        alphabet = self.any(["ab", "etaoin", "ETAoin", "aaab", "中国人民的", "はがの", "абв", "0123456789", "=-", " \n", "/\n", ".\r\n"])
        return "".join(self.any(alphabet) for _ in range(self.r.randrange(1, 150)))

    def text(self):
        kinds = [self.language] * 5 + [self.mixed, self.code, self.code, self.markup, self.hits, self.segments, self.blank, self.blank]
        kinds += [self.adversarial] * 5 + [self.random, self.random, self.repeated, self.letters]
        return self.any(kinds)()


def main(path, seed="1", number="20000"):
    w = Writer(int(seed))
    texts = [""] + [c for group in CLASSES for c in group] + [c + x for c in ("'", "a", "\n", " ") for group in CLASSES[:9] for x in group]
    texts += list(PHRASES.values())
    texts += [w.text() for _ in range(int(number))]
    # Long pieces, which are merged in another way.
    texts += [c * 3000 for c in ("a", " ", "\n", "中", "😀", "1", "=", "ab", "\u0301", "ʼ")]
    texts += ["".join(w.any(alphabet) for _ in range(2000)) for alphabet in ("中国人民的一是在不了有和", "etaoinshrdlu", "اليوم")]
    lines = "".join(json.dumps(t, ensure_ascii=False) + "\n" for t in texts)
    with gzip.GzipFile(path, "wb", compresslevel=9, mtime=0) as f:
        f.write(lines.encode())
    print(len(texts), "texts,", len(lines.encode()), "bytes")


main(*sys.argv[1:])
