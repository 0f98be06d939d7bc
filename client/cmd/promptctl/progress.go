package main

import (
	"fmt"
	"io"
	"time"
)

// A run shows its progress once it has lasted for progressAfter, and then every progressEvery.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// progress is a line on the terminal that is written over and over.
type progress struct {
	out   io.Writer // nil: nobody looks on
	due   time.Time
	shown bool
}

// newProgress shows progress on stderr if that is a terminal and the answers go elsewhere.
func newProgress(stdout, stderr io.Writer) *progress {
	p := &progress{due: time.Now().Add(progressAfter)}
	if isTerminal(stderr) && !isTerminal(stdout) {
		p.out = stderr
	}
	return p
}

func (p *progress) update(answered, refused int) {
	if p.out == nil || time.Now().Before(p.due) {
		return
	}
	p.due = time.Now().Add(progressEvery)
	p.shown = true
	fmt.Fprintf(p.out, "\r%d answered, %d refused", answered, refused)
}

// clear removes the line, so that the next one starts clean.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
