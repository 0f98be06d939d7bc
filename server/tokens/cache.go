package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
	"sync/atomic"
)

// Cache remembers counts from call to call, within a bound. It is safe for concurrent use, and shows
// in nothing but time: a counter says the same with it and without.
//
// A count is found by the SHA-256 of who asks, the counter and the text, behind a random start. So no
// two texts are taken for each other (to keep the texts and compare them would be a little faster,
// but holds ten times the memory, and what memories say beyond the call); nobody's calls are faster
// for what another tenant had counted; and nobody can tell from what is forgotten which texts others
// had counted, as where a count lies cannot be guessed. What shows is how much all of them count, as
// it does in how long the server takes: for that no tenant has a share of its own. One that counts so
// much that others' counts are forgotten costs them the time of counting, as if there were no cache.
type Cache struct {
	start  [sha256.Size]byte
	sets   int // of each shard
	shards [64]shard
	bytes  atomic.Int64
	uses   map[string]*use // by the counter's name
}

// shard is a part of the cache, whose memory is there from its first count on.
type shard struct {
	mu   sync.Mutex
	sets []set
}

// set is where the counts of some keys can be, the last used first. The zero entry is none.
type set [8]entry

type entry struct {
	key   [sha256.Size]byte
	count uint32 // plus 1
}

const (
	entryBytes = sha256.Size + 4
	setBytes   = len(set{}) * entryBytes
)

// use is how often counts of a counter were found, or not.
type use struct{ hits, misses atomic.Uint64 }

// NewCache returns a cache of that many bytes at most for counters of a set. Where that holds nothing
// it returns nil, which remembers nothing.
func NewCache(bytes int64, counters Set) *Cache {
	c := &Cache{uses: make(map[string]*use, len(counters))}
	c.sets = int(bytes / int64(len(c.shards)*setBytes))
	if c.sets <= 0 {
		return nil
	}
	_, _ = rand.Read(c.start[:]) // never fails
	for _, counter := range counters {
		c.uses[counter.Name()] = new(use)
	}
	return c
}

// For returns the counter, of the cache's set, with the memory of a tenant, whom all the given names
// together stand for. Estimate is faster than memory, and comes back as it is.
func (c *Cache) For(counter Counter, tenant ...string) Counter {
	if c == nil || counter.Name() == EstimateName {
		return counter
	}
	whose := c.start[:]
	for _, name := range append(tenant, counter.Name(), counter.Version()) {
		whose = binary.LittleEndian.AppendUint64(whose, uint64(len(name))) // or other names could look the same
		whose = append(whose, name...)
	}
	return &cached{Counter: counter, cache: c, use: c.uses[counter.Name()], start: sha256.Sum256(whose)}
}

// cached is a counter with the memory of a tenant.
type cached struct {
	Counter
	cache *Cache
	use   *use
	start [sha256.Size]byte // stands for the tenant and the counter
}

// shortest is the length of a text, in bytes, from which on its count is remembered. To find that of
// a short one takes about half the time of counting it, and to look for it in vain as much again. The
// part of a rendered memory that is another one in each query is mostly shorter.
const shortest = 128

// Count implements Counter.
func (c *cached) Count(text []byte) int {
	if len(text) < shortest {
		return c.Counter.Count(text)
	}
	h := hashers.Get().(*hasher)
	defer hashers.Put(h)
	h.sha.Reset()
	h.sha.Write(c.start[:])
	h.sha.Write(text)
	h.sha.Sum(h.key[:0])

	if count, ok := c.cache.find(&h.key); ok {
		c.use.hits.Add(1)
		return count
	}
	c.use.misses.Add(1)
	count := c.Counter.Count(text)
	c.cache.keep(&h.key, count)
	return count
}

// hasher is what hashes a text without an allocation.
type hasher struct {
	sha hash.Hash
	key [sha256.Size]byte
}

var hashers = sync.Pool{New: func() any { return &hasher{sha: sha256.New()} }}

// find returns the count with that key, if it is there.
func (c *Cache) find(key *[sha256.Size]byte) (count int, ok bool) {
	s, i := c.place(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets == nil {
		return 0, false
	}
	set := &s.sets[i]
	for i := range set {
		if set[i].key == *key && set[i].count > 0 {
			found := set[i]
			copy(set[1:i+1], set[:i])
			set[0] = found
			return int(found.count - 1), true
		}
	}
	return 0, false
}

// keep puts the count there, in the place of the one that was not used for the longest time.
func (c *Cache) keep(key *[sha256.Size]byte, count int) {
	s, i := c.place(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets == nil {
		s.sets = make([]set, c.sets)
		c.bytes.Add(int64(c.sets * setBytes))
	}
	set := &s.sets[i]
	if set[0].key == *key {
		return // another call was faster
	}
	copy(set[1:], set[:])
	set[0] = entry{*key, uint32(count) + 1}
}

// place returns the shard and the set of a key.
func (c *Cache) place(key *[sha256.Size]byte) (s *shard, set int) {
	random := binary.LittleEndian.Uint64(key[:])
	s = &c.shards[random%uint64(len(c.shards))]
	return s, int(random >> 32 * uint64(c.sets) >> 32)
}

// Use is what came of looking for the counts of a counter.
type Use struct{ Hits, Misses uint64 }

// Use returns what came of looking for the counts of a counter of the cache's set, texts aside that
// are too short to be remembered.
func (c *Cache) Use(name string) Use {
	if c == nil || c.uses[name] == nil {
		return Use{}
	}
	return Use{c.uses[name].hits.Load(), c.uses[name].misses.Load()}
}

// Bytes returns the memory that the cache takes.
func (c *Cache) Bytes() int64 {
	if c == nil {
		return 0
	}
	return c.bytes.Load()
}
