package split

// Seam is a place at which package bpe promises that counts add up.
type Seam uint8

// The seams: after ">\n" where "<" follows, between "\n\n" and "---", and between `"` and ` name="`.
const (
	Lines Seam = iota
	Separator
	Attribute
)

// Seams are all of them.
var Seams = []Seam{Lines, Separator, Attribute}

func (s Seam) left() byte  { return "\n\n\""[s] }
func (s Seam) right() byte { return "<- "[s] }

// Effect is what a splitter does at a seam.
type Effect uint8

// The effects.
const (
	// Cuts says that a piece ends at the seam, and that the pieces on each side are those of that
	// side alone; those before a Separator may be others if nothing follows at all.
	Cuts Effect = iota
	// Passes says that the seam is inside of a piece, in which the character before it and the one
	// after it stand as in the text; what was before that character may be another piece.
	Passes
	// Spoils says that neither is so, or not always.
	Spoils
)
