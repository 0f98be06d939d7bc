// Package grant signs requests and checks such signatures, so that what a harness asserts survives a relay
// that nobody trusts. The message promptassembly.v1.Grant says what is signed and what is checked. The
// package does no I/O and reads no clock.
package grant

import "time"

// Type is the header parameter typ of a grant: no signature that was made for something else counts.
const Type = "promptassembly-grant"

const (
	// MaxLife is the longest time from issue to expiry.
	MaxLife = 5 * time.Minute
	// Leeway is how far the clock of an issuer may be off.
	Leeway = 30 * time.Second
)

// Check is one thing that must hold of a grant.
type Check string

// The checks, in the order in which they are made.
const (
	Form      Check = "form"
	Typ       Check = "type"
	Algorithm Check = "algorithm"
	Key       Check = "key"
	Signature Check = "signature"
	Payload   Check = "payload"
	Audience  Check = "audience"
	Expiry    Check = "expiry"
	Issued    Check = "issued"
	Query     Check = "query"
	Relay     Check = "relay"
)

// InvalidError means that a grant does not hold. It holds nothing of the grant.
type InvalidError struct {
	// Check is the first that failed.
	Check Check
}

// Error implements error.
func (e *InvalidError) Error() string { return "the grant does not hold: " + string(e.Check) }

func invalid(check Check) error { return &InvalidError{check} }
