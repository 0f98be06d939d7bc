package identity

// Remembered returns how many tokens are remembered.
func (t *Tokens) Remembered() int { return t.memory.Len() }

// Forget forgets the tokens that are remembered.
func (t *Tokens) Forget() { t.memory.Purge() }
