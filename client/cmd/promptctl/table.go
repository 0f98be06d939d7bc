package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// lineCells is the width of a table at most, in terminal cells.
const lineCells = 80

// noteIndent stands before each line of a row's note.
const noteIndent = "    "

// cells measures text in terminal cells. Characters whose width is ambiguous count one in every
// locale, so that a table is the same bytes everywhere.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// table is laid out on lines of at most lineCells. What it holds is made printable.
type table struct {
	columns []column
	rows    []row
}

// column is one column of a table.
type column struct {
	title string
	right bool
	// least is the width to which the column may be cut, in cells, if a line would be too wide;
	// columns are cut from left to right. 0 is never.
	least int
}

// row is one line of a table and, wrapped below it, a sentence on it.
type row struct {
	cells  []string
	colour colour
	note   string
}

// write prints t, its headings first.
func (t table) write(w io.Writer, p painter) {
	widths := t.widths()
	headings := make([]string, len(t.columns))
	for i, column := range t.columns {
		headings[i] = column.title
	}
	fmt.Fprintln(w, p.paint(dim, t.line(headings, widths)))
	for _, row := range t.rows {
		fmt.Fprintln(w, p.paint(row.colour, t.line(row.cells, widths)))
		for _, line := range wrap(printable(row.note), lineCells-len(noteIndent)) {
			fmt.Fprintln(w, noteIndent+line)
		}
	}
}

// widths gives each column what its widest cell takes, and cuts columns while that is too wide.
func (t table) widths() []int {
	widths := make([]int, len(t.columns))
	total := len(t.columns) - 1
	for i, column := range t.columns {
		widths[i] = cells.StringWidth(column.title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], cells.StringWidth(printable(row.cells[i])))
		}
		total += widths[i]
	}
	for i, column := range t.columns {
		if column.least > 0 && total > lineCells {
			cut := min(total-lineCells, max(widths[i]-column.least, 0))
			widths[i] -= cut
			total -= cut
		}
	}
	return widths
}

func (t table) line(texts []string, widths []int) string {
	var line strings.Builder
	for i, text := range texts {
		if i > 0 {
			line.WriteByte(' ')
		}
		text = cells.Truncate(printable(text), widths[i], "…")
		space := strings.Repeat(" ", widths[i]-cells.StringWidth(text))
		if t.columns[i].right {
			line.WriteString(space + text)
		} else {
			line.WriteString(text + space)
		}
	}
	return cells.Truncate(strings.TrimRight(line.String(), " "), lineCells, "…")
}

// wrap breaks text into lines of at most width cells, at spaces where it can.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" {
			if joined := line + " " + word; cells.StringWidth(joined) <= width {
				line = joined
				continue
			}
			lines = append(lines, line)
		}
		pieces := strings.Split(cells.Wrap(word, width), "\n")
		lines = append(lines, pieces[:len(pieces)-1]...)
		line = pieces[len(pieces)-1]
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
