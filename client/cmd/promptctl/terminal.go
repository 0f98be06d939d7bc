package main

import (
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// printable makes s safe for a terminal: what is no printable character or plain space becomes
// U+FFFD, so no escape sequence gets through.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// isTerminal reports whether stream, one of the process's own or any other, is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colour is the escape sequence that starts a colour; empty is none.
type colour string

const (
	plain  colour = ""
	bold   colour = "\x1b[1m"
	dim    colour = "\x1b[2m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
)

// painter colours text, or leaves it plain.
type painter struct{ on bool }

func (p painter) paint(c colour, text string) string {
	if !p.on || c == plain {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// painterFor decides for an output: --color always and never are obeyed; auto means colour on a
// terminal, unless NO_COLOR is set (https://no-color.org) or the terminal is a dumb one.
func painterFor(when string, output any) painter {
	switch when {
	case "always":
		return painter{on: true}
	case "never":
		return painter{on: false}
	default:
		return painter{on: isTerminal(output) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	}
}
