package split

// Splitter cuts a text into pieces. It is safe for concurrent use.
type Splitter interface {
	// Next returns the length, in bytes, of the first piece of text, which is not empty.
	Next(text []byte) int
	// Covers reports whether every piece is a match of the expression, and none what lies between
	// two matches.
	Covers() bool
	// Seam says what the splitter does at a seam.
	Seam(seam Seam) Effect
}

const (
	anyCase    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	upperFirst = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	upperOnly  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	spaces     = `\s*[\r\n]+|\s+(?!\S)|\s+`
	others     = ` ?[^\s\p{L}\p{N}]+[\r\n]*|` + spaces
	othersPath = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|` + spaces
)

// The expressions of the embedded encodings.
const (
	CL100K = anyCase + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + others
	O200K  = upperFirst + anyCase + `?|` + upperOnly + anyCase + `?|\p{N}{1,3}|` + othersPath
)

// GPT2 is the expression of GPT-2, which the pre-tokeniser ByteLevel brings along.
const GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// Known returns the splitter that cuts as the expression does, or false. It knows some expressions
// letter by letter, and those of runs of one set.
func Known(expression string) (Splitter, bool) {
	t := classes()
	switch expression {
	case GPT2:
		return gpt2{t}, true
	case CL100K:
		return words{t, 3, letter}, true
	case anyCase + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + others: // Qwen 2 and 3
		return words{t, 1, letter}, true
	case anyCase + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` + spaces: // Qwen 3.5
		return words{t, 1, letter | mark}, true
	case O200K:
		return cases{t, 3, true}, true
	case upperFirst + `|` + upperOnly + `|\p{N}|` + othersPath: // Mistral Nemo
		return cases{t, 1, false}, true
	case "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" +
		" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+":
		return deepSeek{t}, true
	case `\s+$`: // DeepSeek V2
		return trailing{t}, true
	}
	return parseRuns(t, expression)
}

// Digits returns the splitter of the pre-tokeniser of this name.
func Digits(individual bool) Splitter { return digits{classes(), individual} }
