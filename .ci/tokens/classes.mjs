// Checks that the npm package tiktoken knows the classes of code points that tables.py found:
//
//	node classes.mjs CLASSES
import { readFileSync } from 'node:fs'
import { Tiktoken } from 'tiktoken'

// As in tables.py.
const patterns = ['[\\p{Lu}\\p{Lt}]', '\\p{Ll}', '[\\p{Lm}\\p{Lo}]', '\\p{M}', '\\p{N}', '\\s', '\\p{P}', '\\p{S}']

// A vocabulary of the bytes alone; what a pattern does not match gives no token.
const bytes = Array.from({ length: 256 }, (_, byte) => Buffer.from([byte]).toString('base64'))
const encodings = patterns.map((pattern) => new Tiktoken(`! 0 ${bytes.join(' ')}`, {}, pattern))

const runs = readFileSync(process.argv[2])
let at = 0
let wrong = 0
for (let codePoint = 0; codePoint < 0x110000;) {
  const flags = runs[at++]
  let length = 0
  for (let shift = 0; ; shift += 7) {
    const byte = runs[at++]
    length += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) break
  }
  for (const end = codePoint + length; codePoint < end; codePoint++) {
    if (codePoint >= 0xd800 && codePoint < 0xe000) continue
    const character = String.fromCodePoint(codePoint)
    const size = Buffer.byteLength(character)
    encodings.forEach((encoding, bit) => {
      const matches = encoding.encode_ordinary(character).length === size
      if (matches !== Boolean(flags & (1 << bit))) {
        wrong++
        console.error(`U+${codePoint.toString(16)}: ${patterns[bit]} is ${matches}`)
      }
    })
  }
}
process.exit(wrong ? 1 : 0)
