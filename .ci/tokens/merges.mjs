// Writes the merges of the embedded encodings, made from the ranks in the npm package tiktoken:
//
//	node merges.mjs FOLDER
//
// FOLDER gets NAME.merges.gz for each. Merge k, counted from 0 in the order of the ranks, joins two
// tokens into token 256 + k; a token below 256 is that byte. The file is six blocks of one byte a
// merge: the low, middle and high bytes of all left tokens, then those of all right ones.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

// The SHA-256 of the .tiktoken files, as PyPI's tiktoken 0.14.0 expects them of the publisher.
const published = {
  cl100k_base: '223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7',
  o200k_base: '446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d',
}

const require = createRequire(import.meta.url)
const folder = process.argv[2]

for (const [name, sha256] of Object.entries(published)) {
  const tokens = ranked(name)
  const lines = tokens.map((token, rank) => `${Buffer.from(token, 'latin1').toString('base64')} ${rank}\n`)
  const got = createHash('sha256').update(lines.join('')).digest('hex')
  if (got !== sha256) throw new Error(`${name}: the ranks have the sha256 ${got}, published is ${sha256}`)
  const packed = gzipSync(blocks(merges(tokens)), { level: 9 })
  packed[9] = 255 // the system it was written on: unknown, so that the file is the same everywhere
  writeFileSync(join(folder, `${name}.merges.gz`), packed)
  console.log(`${name}: ${tokens.length} tokens, ${packed.length} bytes`)
}

// ranked returns the tokens of an encoding, one character a byte, in the order of their ranks.
function ranked(name) {
  const { bpe_ranks } = JSON.parse(readFileSync(require.resolve(`tiktoken/encoders/${name}.json`), 'utf8'))
  const tokens = []
  for (const line of bpe_ranks.split('\n').filter(Boolean)) {
    const [, offset, ...encoded] = line.split(' ')
    encoded.forEach((token, i) => { tokens[Number(offset) + i] = Buffer.from(token, 'base64').toString('latin1') })
  }
  return tokens
}

// merges returns the two ids that make each token of several bytes. Which two they are follows from
// merging the token's own bytes: inside a longer text the steps that lead to it are the same ones.
function merges(tokens) {
  const ranks = new Map(tokens.map((token, rank) => [token, rank]))
  const ids = new Map()
  for (let byte = 0; byte < 256; byte++) ids.set(String.fromCharCode(byte), byte)
  const pairs = []
  for (const token of tokens) {
    if (token.length === 1) continue
    let parts = [...token]
    while (parts.length > 2) {
      let at = -1
      let lowest = Infinity
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = ranks.get(parts[i] + parts[i + 1])
        if (rank < lowest) [at, lowest] = [i, rank]
      }
      if (at < 0) throw new Error(`no merges lead to the token of rank ${ranks.get(token)}`)
      parts.splice(at, 2, parts[at] + parts[at + 1])
    }
    pairs.push([ids.get(parts[0]), ids.get(parts[1])])
    ids.set(token, 255 + pairs.length)
  }
  return pairs
}

function blocks(pairs) {
  const bytes = Buffer.alloc(6 * pairs.length)
  let at = 0
  for (const side of [0, 1]) {
    for (const shift of [0, 8, 16]) {
      for (const pair of pairs) bytes[at++] = pair[side] >> shift
    }
  }
  return bytes
}
