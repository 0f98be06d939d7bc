"""Trains a small vocabulary and writes it in many variants, each a tokenizer.json:

    python train.py FOLDER

It is trained without cutting texts into pieces, so that tokens span whatever a pre-tokeniser cuts:
one that cut elsewhere would count otherwise.
"""

import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
FOLDER = pathlib.Path(sys.argv[1])
PHRASES = json.loads((HERE / "phrases.json").read_text(encoding="utf-8"))
EXTRA = ["\n\n---\n\n<memory_hit n=\"", "</memory_hit>\n<memory_hit n=\"", "  \n\n \n  ", "it's I'll they'RE don't", "12345678901234567890", "e\u0301\u0323 \u1100\u1161"]

ANY_CASE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER_FIRST = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
UPPER_ONLY = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
OTHERS = r" ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
OTHERS_PATH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def added(content, special=False, normalized=False):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": normalized, "special": special}


DEEPSEEK = ["\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
            " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
# Of DeepSeek V2, with fewer letters, and of DeepSeek Coder.
DEEPSEEK2 = ["[\r\n]", "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿΑ-Ωα-ωЀ-ҁ𐐀-𐑏]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", "[一-龥ࠀ-一가-퟿]+"]
CODER = ["[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+"]
INDIVIDUAL = {"type": "Digits", "individual_digits": True}
NFC = {"type": "NFC"}
TOKENS = [added("<tool_call>"), added("</tool_call>", special=True), added("<think>"), added("think>"), added("</think>", special=True),
          added("<mem", special=True), added("mem>"), added("  ", normalized=True), added("\n\n\n", normalized=True), added("<a>b"), added("=="),
          added("e\u0301"), added("\u00e9", normalized=True), added("\u0041\u030a", normalized=True), added("中国", normalized=True)]

VARIANTS = {
    "gpt2": {"pre_tokenizer": byte_level(regex=True)},
    "llama3": {"pre_tokenizer": sequence(split(ANY_CASE + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + OTHERS), byte_level()), "model": {"ignore_merges": True}},
    "qwen": {"normalizer": NFC, "pre_tokenizer": sequence(split(ANY_CASE + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + OTHERS), byte_level())},
    "qwen35": {"normalizer": NFC, "pre_tokenizer": sequence(split(ANY_CASE + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES), byte_level())},
    "gpt4o": {"pre_tokenizer": sequence(split(f"{UPPER_FIRST}{ANY_CASE}?|{UPPER_ONLY}{ANY_CASE}?|\\p{{N}}{{1,3}}|{OTHERS_PATH}", "Removed", True), byte_level())},
    "nemo": {"pre_tokenizer": sequence(split(f"{UPPER_FIRST}|{UPPER_ONLY}|\\p{{N}}|{OTHERS_PATH}"), byte_level()), "model": {"ignore_merges": True}},
    "deepseek": {"normalizer": {"type": "Sequence", "normalizers": []}, "pre_tokenizer": sequence(*map(split, DEEPSEEK), byte_level())},
    "deepseek2": {"pre_tokenizer": sequence(*map(split, DEEPSEEK2), INDIVIDUAL, byte_level())},
    "coder": {"pre_tokenizer": sequence(*map(split, CODER), INDIVIDUAL, byte_level())},
    "runs": {"pre_tokenizer": sequence(split(r"\s+$"), split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"), split(r"[a-e\n ]{1,3}"), byte_level(regex=True))},
    "digits": {"pre_tokenizer": sequence(INDIVIDUAL, byte_level(regex=True))},
    "numbers": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, sequence(split(r"\p{N}"), byte_level()))},
    "spaced": {"pre_tokenizer": byte_level(prefix=True, regex=True)},
    "spaced_pieces": {"pre_tokenizer": sequence(split(r"\p{N}+"), byte_level(prefix=True, regex=True))},
    "added": {"normalizer": {"type": "Sequence", "normalizers": [NFC, NFC]}, "pre_tokenizer": byte_level(regex=True), "added_tokens": TOKENS},
}

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=800, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False,
                              special_tokens=[AddedToken("<|endoftext|>", special=True)], max_token_length=8)
texts = [text[i : i + 60] for text in list(PHRASES.values()) + EXTRA * 5 for i in range(0, len(text), 40)]
tokenizer.train_from_iterator(texts, trainer)
base = json.loads(tokenizer.to_str())
for whole in ("Ġremembered", "hello", "ä¸Ńæĸĩ", "xqz"):  # no merges lead to them
    base["model"]["vocab"][whole] = 1 + max(base["model"]["vocab"].values())
for name, changes in VARIANTS.items():
    made = json.loads(json.dumps(base))
    made["model"].update(changes.get("model", {}))
    made["pre_tokenizer"] = changes["pre_tokenizer"]
    made["normalizer"] = changes.get("normalizer")
    for i, token in enumerate(changes.get("added_tokens", [])):
        made["added_tokens"].append({"id": 1000 + i} | token)
    if name == "gpt2":
        made["model"]["merges"] = [" ".join(pair) for pair in made["model"]["merges"]]
    (FOLDER / f"{name}.json").write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
