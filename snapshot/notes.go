package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

const (
	noteBucket = "etcdshift"
	// A note is read into memory as a whole, so that a hostile file must not have a longer one. In bytes.
	maxNoteName = 1 << 10
	maxNote     = 64 << 20
)

// notes returns the entries of the notes' bucket.
func (c Content) notes() (notes []element, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.Notes)) {
		note := c.Notes[name]
		switch {
		case len(name) == 0 || len(name) > maxNoteName:
			err = fmt.Errorf("note %q: a name has 1 to %d bytes", clip([]byte(name)), maxNoteName)
		case len(note) > maxNote:
			err = fmt.Errorf("note %q: it has %d bytes, a note has at most %d", clip([]byte(name)), len(note), maxNote)
		}
		if err != nil {
			return nil, err
		}
		notes = append(notes, element{key: []byte(name), value: note})
	}
	return notes, nil
}

// Note returns the note of that name, nil when the file has none. Only files made by Build have notes, and what was restored from one
// or written on top of one.
func (s *Snapshot) Note(ctx context.Context, name string) (note []byte, err error) {
	err = s.guardedEntries(ctx, noteBucket, func(k, v []byte) error {
		if string(k) != name {
			return nil
		}
		if len(v) > maxNote {
			return fmt.Errorf("%w: note %q has %d bytes", ErrDamaged, name, len(v))
		}
		note = append([]byte{}, v...)
		return nil
	})
	return note, err
}
