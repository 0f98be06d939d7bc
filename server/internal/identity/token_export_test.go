package identity

import "context"

// Remembered returns how many tokens are remembered.
func (t *Tokens) Remembered() int { return t.memory.Len() }

// Forget forgets the tokens that are remembered.
func (t *Tokens) Forget() { t.memory.Purge() }

// Configure puts issuers into force.
func (t *Tokens) Configure(ctx context.Context, issuers []Issuer) error {
	change, err := t.Prepare(ctx, issuers)
	if err == nil {
		change.Commit()
	}
	return err
}
