package snapshot

import "context"

// Mapped is a file mapped into memory, with content that is not checked: for readers of damaged
// files. Methods never change the file.
type Mapped struct{ input }

// Map maps the file at path, expanded if it is compressed. Errors are those of [Open], except for
// the content.
func Map(ctx context.Context, path string, cfg Config) (*Mapped, error) {
	in, err := inputOf(path, cfg)
	if err != nil {
		return nil, err
	}
	m := &Mapped{in}
	if err := m.load(ctx, cfg); err != nil {
		err = m.wrap(err)
		_ = m.close()
		return nil, err
	}
	return m, nil
}

// Bytes returns the content. The bytes are valid until Close and must not be written to.
func (m *Mapped) Bytes() []byte { return m.data }

// Read is Guard, and adds the path to the error of fn.
func (m *Mapped) Read(fn func() error) error { return m.read(fn) }

// Unchanged returns an error (ErrChanged) if the file differs from the opened file.
func (m *Mapped) Unchanged() error { return m.wrap(m.unchanged()) }

// Close unmaps the file: its bytes become invalid.
func (m *Mapped) Close() error { return m.close() }
