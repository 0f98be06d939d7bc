// Records how many tokens the npm package tiktoken makes of the texts that texts.py wrote:
//
//	node count.mjs TEXTS COUNTS
import { createRequire } from 'node:module'
import { readFileSync, writeFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { Tiktoken } from 'tiktoken'

const require = createRequire(import.meta.url)
const [textsFile, countsFile] = process.argv.slice(2)
const texts = gunzipSync(readFileSync(textsFile)).toString().trimEnd().split('\n').map((line) => JSON.parse(line))
const counts = {}
for (const name of ['cl100k_base', 'o200k_base']) {
  const { bpe_ranks, special_tokens, pat_str } = JSON.parse(readFileSync(require.resolve(`tiktoken/encoders/${name}.json`), 'utf8'))
  const encoding = new Tiktoken(bpe_ranks, special_tokens, pat_str)
  counts[name] = texts.map((text) => encoding.encode_ordinary(text).length)
}
const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', import.meta.url), 'utf8'))
const reference = `tiktoken ${packages['node_modules/tiktoken'].version} (npm)`
const packed = gzipSync(JSON.stringify({ reference, counts }), { level: 9 })
packed[9] = 255
writeFileSync(countsFile, packed)
