package transform

import (
	"fmt"
	"iter"
	"os"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot"
)

// staged is one planned write. Its value lies in the plan's spool.
type staged struct {
	key    string
	delete bool
	why    string
	prior  int64 // ModRevision of the record it was planned against, 0 for none
	lease  int64
	at     int64 // offset in the spool
	size   int
}

// plan keeps staged writes in order. Values are kept in memory up to memoryLimit bytes; beyond, they are appended to a
// scratch file.
type plan struct {
	byKey map[string]*staged
	order []*staged

	dir     string // where a scratch file may lie
	memory  []byte
	spilled *os.File
	size    int64 // bytes spooled
}

// memoryLimit is how many bytes of values a plan keeps before it takes to a file.
const memoryLimit = 4 << 20

func newPlan(dir string) *plan {
	return &plan{byKey: map[string]*staged{}, dir: dir}
}

func (p *plan) get(key []byte) *staged { return p.byKey[string(key)] }

// put stages st. A key staged before keeps its place in the order.
func (p *plan) put(st *staged, value []byte) error {
	st.at, st.size = p.size, len(value)
	if err := p.spool(value); err != nil {
		return err
	}
	if old := p.byKey[st.key]; old != nil {
		*old = *st
		return nil
	}
	p.byKey[st.key] = st
	p.order = append(p.order, st)
	return nil
}

// drop forgets what was staged for key.
func (p *plan) drop(key string) {
	st := p.byKey[key]
	if st == nil {
		return
	}
	delete(p.byKey, key)
	for i := range p.order {
		if p.order[i] == st {
			p.order = append(p.order[:i], p.order[i+1:]...)
			return
		}
	}
}

func (p *plan) spool(value []byte) error {
	if p.spilled == nil && len(p.memory)+len(value) <= memoryLimit {
		p.memory = append(p.memory, value...)
		p.size += int64(len(value))
		return nil
	}
	if p.spilled == nil {
		f, err := publish.Scratch(p.dir)
		if err != nil {
			return fmt.Errorf("scratch file in %q: %w", p.dir, err)
		}
		p.spilled = f
		if _, err := f.WriteAt(p.memory, 0); err != nil {
			return fmt.Errorf("scratch file in %q: %w", p.dir, err)
		}
		p.memory = nil
	}
	if _, err := p.spilled.WriteAt(value, p.size); err != nil {
		return fmt.Errorf("scratch file in %q: %w", p.dir, err)
	}
	p.size += int64(len(value))
	return nil
}

// value returns a copy of the staged value.
func (p *plan) value(st *staged) ([]byte, error) {
	if st.delete {
		return nil, nil
	}
	b := make([]byte, st.size)
	if p.spilled == nil {
		copy(b, p.memory[st.at:])
		return b, nil
	}
	if _, err := p.spilled.ReadAt(b, st.at); err != nil {
		return nil, fmt.Errorf("scratch file in %q: %w", p.dir, err)
	}
	return b, nil
}

// changes yields the plan for snapshot.Write, in order; it can be ranged over more than once.
func (p *plan) changes() iter.Seq2[snapshot.Change, error] {
	return func(yield func(snapshot.Change, error) bool) {
		for _, st := range p.order {
			value, err := p.value(st)
			if !yield(snapshot.Change{Key: []byte(st.key), Value: value, Delete: st.delete, Lease: st.lease, Prior: st.prior}, err) {
				return
			}
		}
	}
}

// count says what becomes of the records.
func (p *plan) count() (c Changes) {
	for _, st := range p.order {
		switch {
		case st.delete:
			c.Deleted++
		case st.prior == 0:
			c.Created++
		default:
			c.Updated++
		}
	}
	return c
}

func (p *plan) close() error {
	if p.spilled == nil {
		return nil
	}
	return p.spilled.Close()
}
