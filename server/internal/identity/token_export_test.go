package identity

import "net/http"

// Fetch makes fetches of keys go through transport; it is called before Configure.
func (t *Tokens) Fetch(transport http.RoundTripper) { t.transport = transport }

// Remembered returns how many tokens are remembered.
func (t *Tokens) Remembered() int { return t.memory.Len() }

// Forget forgets the tokens that are remembered.
func (t *Tokens) Forget() { t.memory.Purge() }
