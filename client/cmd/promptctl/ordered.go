package main

import (
	"context"
	"errors"
	"io"
)

// What inOrder holds at a time at most. A longer line than maxBytesInFlight goes alone.
const (
	maxLinesInFlight = 128
	maxBytesInFlight = 16 << 20
)

// inOrder reads in line by line, gives each line to work, many side by side, and each result to
// take, one by one in the order of the lines. Before it waits for a line or a result it calls idle.
//
// work gets the line, or errTooLong; it owns the line and must end soon once its ctx has. inOrder
// returns nil at the end of the input, else the first error of reading, of take or of idle, or the
// cause of ctx. It may leave a read that blocks behind.
func inOrder[T any](
	ctx context.Context,
	in io.Reader,
	work func(ctx context.Context, line []byte, err error) T,
	take func(T) error,
	idle func() error,
) error {
	type job struct {
		size   int
		result chan T
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Neither is ever full: a line is in flight until the reader has received its size from taken.
	jobs := make(chan job, maxLinesInFlight)
	taken := make(chan int, maxLinesInFlight)

	var readErr error // set before jobs is closed
	go func() {
		defer close(jobs)
		lines := newLineReader(in)
		for inFlight, bytes := 0, 0; ; {
			line, err := lines.next()
			if err != nil && !errors.Is(err, errTooLong) {
				readErr = err
				return
			}
			for inFlight == maxLinesInFlight || inFlight > 0 && bytes+len(line) > maxBytesInFlight {
				select {
				case size := <-taken:
					inFlight--
					bytes -= size
				case <-ctx.Done():
					return
				}
			}
			inFlight++
			bytes += len(line)
			j := job{size: len(line), result: make(chan T, 1)}
			jobs <- j
			go func() { j.result <- work(ctx, line, err) }()
		}
	}()

	for {
		j, more, err := await(ctx, jobs, idle)
		if err != nil {
			return err
		}
		if !more {
			if errors.Is(readErr, io.EOF) {
				return nil
			}
			return readErr
		}
		result, _, err := await(ctx, j.result, idle)
		if err != nil {
			return err
		}
		if err := take(result); err != nil {
			return err
		}
		taken <- j.size
	}
}

// await receives from ch, and calls idle first if that means to wait. It fails with the error of
// idle, or with the cause of ctx as soon as that has ended.
func await[T any](ctx context.Context, ch <-chan T, idle func() error) (value T, ok bool, err error) {
	if ctx.Err() != nil {
		return value, false, context.Cause(ctx)
	}
	select {
	case value, ok = <-ch:
		return value, ok, nil
	default:
	}
	if err := idle(); err != nil {
		return value, false, err
	}
	select {
	case value, ok = <-ch:
		return value, ok, nil
	case <-ctx.Done():
		return value, false, context.Cause(ctx)
	}
}
