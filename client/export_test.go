package client

import (
	"context"
	"time"
)

// WithSleep puts a function in the place of the pause between attempts.
func WithSleep(sleep func(context.Context, time.Duration)) Option {
	return func(o *options) { o.sleep = sleep }
}

// WithClock puts a function in the place of the time at which files are read.
func WithClock(now func() time.Time) Option {
	return func(o *options) { o.now = now }
}
