package memory

// What the external tests see of normalisation, of signatures and of the arithmetic of rendering.

type Normalizer = normalizer

func (n *normalizer) Normalize(s string) string { return string(n.append(nil, s)) }

func (n *normalizer) Sign(s string) string { sig := n.sign(s); return string(sig[:]) }

func SignNormalized(s string) string {
	var sig signature
	copyFirst(sig[:len(sig)/2], []byte(s))
	copyLast(sig[len(sig)/2:], []byte(s))
	return string(sig[:])
}

func Line(c *Candidate, rendering Rendering, place int) string {
	line, _ := appendLine(nil, c, rendering, place)
	return string(line)
}

func LineChars(c *Candidate, rendering Rendering) int { return lineChars(c, rendering) }

func Opening(scope string, selected int) string { return string(appendOpening(nil, scope, selected)) }

func OpeningChars(scope string) int { return openingChars(scope) }

func Text(s string) string { return string(appendText(nil, s)) }

func TextChars(s string) int { return textChars(s) }

func Attribute(s string) string { return string(appendAttribute(nil, s)) }

func AttributeChars(s string) int { return attributeChars(s) }

func Score(score float64) string { return string(appendScore(nil, score)) }

func ScoreChars(score float64) int { return scoreChars(score) }

func ExactScore(score float64) string { return string(appendExactScore(nil, score)) }

func (i Instant) Text() string { return string(appendInstant(nil, i)) }

func (i Instant) Chars() int { return instantChars(i) }
