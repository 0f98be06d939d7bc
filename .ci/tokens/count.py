"""Records how many tokens PyPI's tokenizers makes of the texts that texts.py wrote:

    python count.py TEXTS COUNTS NAME=TOKENIZER_JSON...
"""

import gzip
import json
import sys

import tokenizers

texts_file, counts_file, *files = sys.argv[1:]
with gzip.open(texts_file, "rt", encoding="utf-8", newline="\n") as f:
    texts = [json.loads(line) for line in f]
counts = {}
for name, path in (f.split("=", 1) for f in files):
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    counts[name] = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
made = json.dumps({"reference": f"tokenizers {tokenizers.__version__} (PyPI)", "counts": counts}, separators=(",", ":"))
with gzip.GzipFile(counts_file, "wb", compresslevel=9, mtime=0) as f:
    f.write(made.encode())
