package policy

import (
	"fmt"
	"strconv"

	pb "github.com/promptassembly/promptassembly/gen/go/promptassembly/v1"
	"github.com/promptassembly/promptassembly/server/budget"
	"github.com/promptassembly/promptassembly/server/memory"
)

// Asserted is what a request claims. It is filled in one walk over a request that is well formed, which
// allocates nothing, and Judge reads it; the zero value claims nothing.
//
// Whether an authority, or a kind of required segments, is permitted is the same wherever in the
// request it stands. So the first place of each is all that has to be kept, and the first of those
// places that are not permitted is the first place in the request that is not.
type Asserted struct {
	// Prompt: a prompt is planned, so the mandatory kinds are demanded.
	Prompt bool
	// Memory: memories are selected, so Scope and Policy count. A request has a prompt, or memory, or
	// both: the memory is then in its field memory.
	Memory bool
	// Scope is the scope that the request asks for.
	Scope string
	// Policy is the selection policy, with the defaults filled in.
	Policy memory.Policy

	authorities [4]assertedAuthority // the first place of each; [0] is for numbers outside the enum
	required    [12]assertedKind     // likewise
	present     set                  // kinds of required segments that are not blank
}

// assertedAuthority is the place of an authority: a key of authority_by_memory_id, or else a candidate.
type assertedAuthority struct {
	asserted  bool
	annotated bool
	key       string
	index     int
	authority pb.Authority
}

// before reports whether a stands before b in the request: fields by number, the keys of a map in byte
// order, lists in order.
func (a *assertedAuthority) before(b *assertedAuthority) bool {
	switch {
	case a.annotated != b.annotated:
		return a.annotated
	case a.annotated:
		return a.key < b.key
	default:
		return a.index < b.index
	}
}

func (a *assertedAuthority) path() string {
	if a.annotated {
		return `authority_by_memory_id["` + escapeKey(a.key) + `"]`
	}
	return "candidates[" + strconv.Itoa(a.index) + "].authority"
}

func escapeKey(key string) string {
	var b []byte
	for i := range len(key) {
		if key[i] == '\\' || key[i] == '"' {
			b = append(b, '\\')
		}
		b = append(b, key[i])
	}
	return string(b)
}

type assertedKind struct {
	asserted bool
	index    int
	name     string
	kind     pb.SegmentKind
}

// Annotate adds an entry of authority_by_memory_id. Entries may come in any order.
func (a *Asserted) Annotate(memoryID string, authority pb.Authority) {
	if authority > pb.Authority_AUTHORITY_USER_DEFAULT || authority < 0 {
		a.assert(assertedAuthority{asserted: true, annotated: true, key: memoryID, authority: authority})
	}
}

// Candidate adds the authority of the candidate with the index.
func (a *Asserted) Candidate(index int, authority pb.Authority) {
	if authority > pb.Authority_AUTHORITY_USER_DEFAULT || authority < 0 {
		a.assert(assertedAuthority{asserted: true, index: index, authority: authority})
	}
}

func (a *Asserted) assert(claim assertedAuthority) {
	slot := &a.authorities[0]
	if claim.authority > 0 && int(claim.authority) < len(a.authorities) {
		slot = &a.authorities[claim.authority]
	}
	if !slot.asserted || claim.before(slot) {
		*slot = claim
	}
}

// Require adds a segment that resolves to required, with its name and kind, defaults filled in. Blank
// ones claim to be required, but do not count as there. Segments come in order.
func (a *Asserted) Require(index int, name string, kind pb.SegmentKind, blank bool) {
	if kind == pb.SegmentKind_SEGMENT_KIND_UNSPECIFIED {
		kind = pb.SegmentKind_SEGMENT_KIND_CUSTOM
	}
	slot := &a.required[0]
	if kind > 0 && int(kind) < len(a.required) {
		slot = &a.required[kind]
	}
	if !slot.asserted {
		*slot = assertedKind{true, index, name, kind}
	}
	if !blank {
		a.present.add(int32(kind))
	}
}

// Denial is why a request is refused: the reason, and what applies of the rest.
type Denial struct {
	Reason pb.ErrorReason
	// Path is a path of the request, from its root.
	Path string
	// Scope is set where the request asks for one.
	Scope     string
	Authority pb.Authority
	// Segment is the name of a segment.
	Segment string
	Kind    pb.SegmentKind
	// Field is min_score, top_k, max_chars or max_tokens, and Bound what it must keep to, in decimal.
	Field, Bound string
}

// String says what is refused, by its reason and for people, or ok if it is nil.
func (d *Denial) String() string {
	if d == nil {
		return reasonName(pb.ErrorReason_ERROR_REASON_UNSPECIFIED)
	}
	what := ""
	switch d.Reason {
	case pb.ErrorReason_ERROR_REASON_GRANT_INVALID:
		what = "who carries it may not"
	case pb.ErrorReason_ERROR_REASON_SCOPE_NOT_PERMITTED:
		if what = "any request"; d.Path != "" {
			what = fmt.Sprintf("scope %q", d.Scope)
		}
	case pb.ErrorReason_ERROR_REASON_AUTHORITY_NOT_PERMITTED:
		what = AuthorityName(d.Authority)
	case pb.ErrorReason_ERROR_REASON_POLICY_NOT_PERMITTED:
		what = d.Field + ", whose bound is " + d.Bound
	default:
		what = KindName(d.Kind)
	}
	return reasonName(d.Reason) + ": " + what
}

// Judge returns why a request that claims all this is refused, or nil if it is permitted. The scope is
// looked at first, then authorities, required segments, the selection policy, and the mandatory kinds.
// The rights may be nil: those of a caller that the file does not name.
func (r *Rights) Judge(a *Asserted) *Denial {
	at := ""
	if a.Prompt {
		at = "memory."
	}
	if r == nil {
		d := &Denial{Reason: pb.ErrorReason_ERROR_REASON_SCOPE_NOT_PERMITTED}
		if a.Memory {
			d.Path, d.Scope = at+"user_scope", a.Scope
		}
		return d
	}
	claims := r.Unscoped()
	if a.Memory {
		var ok bool
		if claims, ok = r.For(a.Scope); !ok {
			return &Denial{Reason: pb.ErrorReason_ERROR_REASON_SCOPE_NOT_PERMITTED, Path: at + "user_scope", Scope: a.Scope}
		}
	}
	d := a.refusedAuthority(claims, at)
	if d == nil {
		d = a.refusedKind(claims)
	}
	if d == nil && a.Memory {
		d = r.entry.bounds.refused(&a.Policy, at)
	}
	if d != nil {
		d.Scope = a.Scope
		return d
	}
	if a.Prompt {
		for _, kind := range r.entry.mandatory {
			if !a.present.has(int32(kind)) {
				return &Denial{Reason: pb.ErrorReason_ERROR_REASON_MANDATORY_SEGMENT_MISSING, Path: "segments", Scope: a.Scope, Kind: kind}
			}
		}
	}
	return nil
}

func (a *Asserted) refusedAuthority(claims Claims, at string) *Denial {
	var first *assertedAuthority
	for i := range a.authorities {
		claim := &a.authorities[i]
		if claim.asserted && !claims.MayAssert(claim.authority) && (first == nil || claim.before(first)) {
			first = claim
		}
	}
	if first == nil {
		return nil
	}
	return &Denial{Reason: pb.ErrorReason_ERROR_REASON_AUTHORITY_NOT_PERMITTED, Path: at + first.path(), Authority: first.authority}
}

func (a *Asserted) refusedKind(claims Claims) *Denial {
	var first *assertedKind
	for i := range a.required {
		claim := &a.required[i]
		if claim.asserted && !claims.MayRequire(claim.kind) && (first == nil || claim.index < first.index) {
			first = claim
		}
	}
	if first == nil {
		return nil
	}
	return &Denial{
		Reason: pb.ErrorReason_ERROR_REASON_REQUIRED_NOT_PERMITTED, Path: "segments[" + strconv.Itoa(first.index) + "]",
		Segment: first.name, Kind: first.kind,
	}
}

// refused returns the first field of a selection policy that is out of bounds.
func (b *Bounds) refused(p *memory.Policy, at string) *Denial {
	over := func(most *uint32, n budget.Budget) bool {
		return most != nil && (n.Unlimited || n.Limit > *most)
	}
	var field, bound string
	switch {
	case b.MinScore != nil && !(p.MinScore >= *b.MinScore):
		field, bound = "min_score", fraction(*b.MinScore)
	case b.TopK != nil && p.TopK > *b.TopK:
		field, bound = "top_k", decimal(*b.TopK)
	case over(b.MaxChars, p.MaxChars):
		field, bound = "max_chars", decimal(*b.MaxChars)
	case over(b.MaxTokens, p.MaxTokens):
		field, bound = "max_tokens", decimal(*b.MaxTokens)
	default:
		return nil
	}
	return &Denial{Reason: pb.ErrorReason_ERROR_REASON_POLICY_NOT_PERMITTED, Path: at + "policy." + field, Field: field, Bound: bound}
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func fraction(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
