package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"google.golang.org/grpc/status"

	"github.com/promptassembly/promptassembly/client"
)

// answerLine is what became of one line of the input.
type answerLine struct {
	text    []byte // JSON without a newline
	refused bool
	fatal   error // ends the run; text is then empty
}

// runLines answers a request a line with an answer a line, in the same order. What is refused is
// answered too; only a failure of reading, writing or the connection ends the run.
func (c *callCommand) runLines(ctx context.Context, api *client.Client, in io.Reader, stdout, stderr io.Writer) error {
	if err := c.service.reach(ctx, api); err != nil {
		return err
	}
	out := bufio.NewWriterSize(stdout, 64<<10)
	answered, refused := 0, 0
	progress := newProgress(stdout, stderr)

	work := func(ctx context.Context, line []byte, err error) answerLine {
		return c.answer(ctx, api, line, err)
	}
	take := func(a answerLine) error {
		if a.fatal != nil {
			return a.fatal
		}
		answered++
		if a.refused {
			refused++
		}
		progress.update(answered, refused)
		out.Write(a.text) // its error stays with out
		return out.WriteByte('\n')
	}
	err := inOrder(ctx, in, work, take, out.Flush)
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	progress.clear()
	if !errors.Is(err, syscall.EPIPE) {
		fmt.Fprintf(stderr, "%d answered, %d refused\n", answered, refused)
	}
	return err
}

// answer calls the service with one line, or says why it cannot: err, if there is one, is what
// reading the line came to.
func (c *callCommand) answer(ctx context.Context, api *client.Client, line []byte, err error) answerLine {
	if err != nil {
		return refusedLine(unreadable(err, "line"))
	}
	req, err := c.parse(line)
	if err != nil {
		return refusedLine(unreadable(err, "line"))
	}
	answer, err := c.rpc.call(ctx, api, req)
	if err != nil {
		if lost := c.service.lost(err); lost != nil {
			return answerLine{fatal: lost}
		}
		return refusedLine(status.Convert(err))
	}
	text, err := compact(answer)
	return answerLine{text: text, fatal: err}
}

func refusedLine(st *status.Status) answerLine {
	text, err := refusalJSON(st)
	return answerLine{text: text, refused: true, fatal: err}
}
