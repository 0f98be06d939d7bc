package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// input is where requests come from: a file, or standard input.
type input struct {
	io.ReadCloser
	name string // for people
}

// openInput opens the file that args name; `-` or nothing is standard input. Nothing beside a
// terminal is wrong usage, as the program would seem to hang.
func openInput(cmd *cobra.Command, args []string) (*input, error) {
	stdin := cmd.InOrStdin()
	switch {
	case len(args) == 0 && isTerminal(stdin):
		return nil, usageError{errors.New("no request: name a FILE, pipe one in, or use - to type it")}
	case len(args) == 0 || args[0] == "-":
		return &input{io.NopCloser(stdin), "standard input"}, nil
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, usageError{err}
	}
	return &input{file, args[0]}, nil
}

// readAll reads the whole input. It fails with errTooLong past maxLine bytes, and with the cause of
// ctx when that ends first; a read that blocks is then left behind.
func (in *input) readAll(ctx context.Context) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, maxLine+1))
		if err == nil && len(data) > maxLine {
			err = errTooLong
		}
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
