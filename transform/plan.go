package transform

import (
	"fmt"
	"iter"
	"os"
	"slices"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot"
)

// staged is one planned write. Its value lies in the plan.
type staged struct {
	key    string
	delete bool
	prior  int64 // ModRevision of the stored record, 0 for none
	lease  int64
	at     int64 // offset of the value
	size   int
}

// plan keeps staged writes in order. Values beyond memoryLimit bytes lie in a scratch file.
type plan struct {
	byKey map[string]*staged
	order []*staged

	dir     string // of a scratch file
	memory  []byte
	spilled *os.File
	size    int64 // bytes of values
}

// memoryLimit is how many bytes of values a plan keeps in memory.
const memoryLimit = 4 << 20

func newPlan(dir string) *plan {
	return &plan{byKey: map[string]*staged{}, dir: dir}
}

func (p *plan) get(key []byte) *staged { return p.byKey[string(key)] }

// put stages st. A key that is staged again keeps its position.
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

// drop forgets the staged write of key.
func (p *plan) drop(key string) {
	st := p.byKey[key]
	if st == nil {
		return
	}
	delete(p.byKey, key)
	i := slices.Index(p.order, st)
	p.order = slices.Delete(p.order, i, i+1)
}

// spool appends value to the memory, or to the scratch file.
func (p *plan) spool(value []byte) (err error) {
	if p.spilled == nil && len(p.memory)+len(value) <= memoryLimit {
		p.memory = append(p.memory, value...)
		p.size += int64(len(value))
		return nil
	}
	if p.spilled == nil {
		if p.spilled, err = publish.Scratch(p.dir); err == nil {
			_, err = p.spilled.WriteAt(p.memory, 0)
		}
		p.memory = nil
	}
	if err == nil {
		_, err = p.spilled.WriteAt(value, p.size)
	}
	if err != nil {
		return fmt.Errorf("scratch file in %q: %w", p.dir, err)
	}
	p.size += int64(len(value))
	return nil
}

// value returns a copy of the staged value, nil for a deletion.
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

// changes yields the plan for [snapshot.Write], in order, any number of times.
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

// count counts the records by what becomes of them.
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
