package rpc

import (
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// faults gathers the violations of a request, depth first.
type faults struct {
	count  int
	listed []*errdetails.BadRequest_FieldViolation
}

// maxListed is more violations than fit into a status of maxStatusBytes: none takes 16 bytes or less.
const maxListed = maxStatusBytes / 16

func (f *faults) add(path, rule string) {
	f.count++
	if len(f.listed) < maxListed {
		f.listed = append(f.listed, &errdetails.BadRequest_FieldViolation{Field: path, Description: rule})
	}
}

// check adds the violation of a rule, unless the rule is empty.
func (f *faults) check(at *path, rule string) {
	if rule != "" {
		f.add(at.String(), rule)
	}
}

// path is the way from the request's root to a field; nil is the root. It becomes a string only
// where there is a fault.
type path struct {
	parent *path
	name   string
	suffix suffix
	index  int
	key    string
}

type suffix uint8

const (
	noSuffix suffix = iota
	indexSuffix
	keySuffix
)

// field returns the path of a field of the message at p.
func (p *path) field(name string) *path { return &path{parent: p, name: name} }

// at returns the path of an element of the list at p.
func (p *path) at(i int) *path {
	return &path{parent: p.parent, name: p.name, suffix: indexSuffix, index: i}
}

// keyed returns the path of an entry of the map at p.
func (p *path) keyed(key string) *path {
	return &path{parent: p.parent, name: p.name, suffix: keySuffix, key: key}
}

// String returns the path as a violation names it, such as `candidates[3].score`.
func (p *path) String() string { return string(p.append(nil)) }

// append copies all it reads: were a part of p itself returned, every path would be on the heap.
func (p *path) append(dst []byte) []byte {
	if p.parent != nil {
		dst = append(p.parent.append(dst), '.')
	}
	dst = append(dst, p.name...)
	switch p.suffix {
	case indexSuffix:
		dst = append(dst, '[')
		dst = strconv.AppendInt(dst, int64(p.index), 10)
		dst = append(dst, ']')
	case keySuffix:
		dst = append(dst, `["`...)
		for i := range len(p.key) {
			if p.key[i] == '"' || p.key[i] == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, p.key[i])
		}
		dst = append(dst, `"]`...)
	}
	return dst
}
