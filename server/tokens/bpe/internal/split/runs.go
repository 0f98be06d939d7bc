package split

// numbers cuts out what \p{N}{1,most} matches, and with most 0 what \p{N}+ does.
type numbers struct {
	*classTable
	most int
}

func (numbers) Covers() bool { return false }

func (numbers) Seams() bool { return false }

func (s numbers) Next(text []byte) int {
	c, n := s.at(text)
	switch {
	case c&number == 0:
		return s.runWithout(text, n, number)
	case s.most == 0:
		return s.run(text, n, number)
	default:
		return s.upTo(s.most-1, text, n, number)
	}
}

// digits cuts out the numbers of Unicode 17.0, each by itself or in runs, as the pre-tokeniser of
// this name does.
type digits struct {
	*classTable
	each bool
}

func (digits) Covers() bool { return false }

func (digits) Seams() bool { return false }

func (s digits) Next(text []byte) int {
	is, n := s.is(text)
	if is && s.each {
		return n
	}
	for n < len(text) {
		same, size := s.is(text[n:])
		if same != is {
			break
		}
		n += size
	}
	return n
}

func (s digits) is(text []byte) (is bool, size int) {
	c, size := s.at(text)
	if size < 4 {
		return c&number != 0, size
	}
	r, _ := decode(text)
	return c&number != 0 || 0x11DE0 <= r && r <= 0x11DE9 || 0x16FF4 <= r && r <= 0x16FF6, size
}

// scripts cuts out the runs of Chinese characters and kana that [一-龥぀-ゟ゠-ヿ]+ matches.
type scripts struct{}

func (scripts) Covers() bool { return false }

func (scripts) Seams() bool { return false }

func (scripts) Next(text []byte) int {
	is, n := isScript(text)
	for n < len(text) {
		same, size := isScript(text[n:])
		if same != is {
			break
		}
		n += size
	}
	return n
}

func isScript(text []byte) (is bool, size int) {
	if text[0] < 0x80 {
		return false, 1
	}
	r, size := decode(text)
	return 0x4E00 <= r && r <= 0x9FA5 || 0x3040 <= r && r <= 0x30FF, size
}
