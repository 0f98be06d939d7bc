package policy

import (
	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/internal/identity"
)

// Claims is what may be asserted for a scope.
type Claims struct {
	authorities, required set
}

// MayAssert reports whether candidates may have the authority. UNSPECIFIED and USER_DEFAULT always may.
func (c Claims) MayAssert(a pb.Authority) bool {
	return a == pb.Authority_AUTHORITY_UNSPECIFIED || a == pb.Authority_AUTHORITY_USER_DEFAULT || c.authorities.has(int32(a))
}

// MayRequire reports whether segments of the kind may be required. UNSPECIFIED is CUSTOM.
func (c Claims) MayRequire(k pb.SegmentKind) bool {
	if k == pb.SegmentKind_SEGMENT_KIND_UNSPECIFIED {
		k = pb.SegmentKind_SEGMENT_KIND_CUSTOM
	}
	return c.required.has(int32(k))
}

// Bounds is what a selection policy, with its defaults filled in, must keep to; nil is no bound.
type Bounds struct {
	// MinScore is the least min_score, 0 to 1.
	MinScore *float64
	// TopK, MaxChars and MaxTokens are the most; unlimited is more than any.
	TopK, MaxChars, MaxTokens *uint32
}

// entry is what the file gives to some identities.
type entry struct {
	name      string
	line      int
	claims    Claims
	bounds    Bounds
	mandatory []pb.SegmentKind
	*scopeRules
	// relays are the scopes for which grants may be carried, by the issuer.
	relays map[string]*scopeRules
	// binds: a scope has a placeholder, so that rights depend on more of a caller than its entry.
	binds bool
}

// Rights is what a caller may do. Nothing of it may be changed; it is safe for concurrent use.
type Rights struct {
	entry   *entry
	matched *matched
	caller  *identity.Caller // nil where nothing depends on it
}

// matched is an identity of the file.
type matched struct {
	text    string // as it is written
	line    int
	pattern pattern
	rights  *Rights // of an entry that does not bind
}

// value returns what a placeholder stands for, or "" if there is nothing.
func (r *Rights) value(p part) string {
	if p.claim != "" {
		return r.caller.Claims[p.claim]
	}
	index := r.matched.pattern.find(p.variable)
	if index < 0 {
		return ""
	}
	return r.matched.pattern.value(r.caller.Name, index)
}

// Rule returns the name of the entry that gives the rights.
func (r *Rights) Rule() string { return r.entry.name }

// Line returns the line at which that entry begins, from 1.
func (r *Rights) Line() int { return r.entry.line }

// For returns what may be asserted for a scope, and false if the caller may not speak for it.
func (r *Rights) For(scope string) (Claims, bool) {
	i := r.entry.rule(scope, r)
	if i < 0 {
		return Claims{}, false
	}
	return r.entry.scopes[i].claims, true
}

// Unscoped returns what may be asserted in a prompt without memory.
func (r *Rights) Unscoped() Claims { return r.entry.claims }

// Bounds returns what a selection policy must keep to. What it points to may not be changed.
func (r *Rights) Bounds() Bounds { return r.entry.bounds }

// Mandatory returns the kinds of which every prompt must hold a required segment that is not blank, in
// the enum's order. It may not be changed.
func (r *Rights) Mandatory() []pb.SegmentKind { return r.entry.mandatory }
