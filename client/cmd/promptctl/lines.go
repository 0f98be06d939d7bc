package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the most bytes of one request in JSON. It is well above what a server takes (16 MiB
// of the binary form), so that the server decides on all that could be its to decide.
const maxLine = 64 << 20

// errTooLong is a line, or an input of one request, of more than maxLine bytes.
var errTooLong = errors.New("longer than 64 MiB")

// lineReader cuts an input into lines, holding no more than one.
type lineReader struct{ in *bufio.Reader }

func newLineReader(in io.Reader) lineReader {
	return lineReader{bufio.NewReaderSize(in, 64<<10)}
}

// next returns the next line without its newline, in memory of its own. At the end of the input it
// fails with io.EOF; what follows the last newline is a line only if it is not empty. A line that
// is too long is read past, not held, and fails with errTooLong: the next one can then be read.
func (r lineReader) next() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		piece, err := r.in.ReadSlice('\n')
		piece = bytes.TrimSuffix(piece, []byte("\n"))
		if tooLong = tooLong || len(line)+len(piece) > maxLine; tooLong {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		rest := tooLong || len(line) > 0
		if err != nil && (!rest || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		if tooLong {
			return nil, errTooLong
		}
		return line, nil
	}
}
