package main

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// documentHead is what every JSON answer of a reading command begins with; embed it first.
type documentHead struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Input      inputInfo `json:"input"`
	Tool       toolInfo  `json:"tool"`
}

// inputInfo says which file an answer is about.
type inputInfo struct {
	Path     string `json:"path"`
	SHA256   string `json:"sha256"` // of the whole file, as sha256sum prints it
	Bytes    int64  `json:"bytes"`
	Revision int64  `json:"revision"` // the current one, as a server would start with
	Digest   string `json:"digest"`   // "ok", "none" (a raw database file carries none) or "wrong"
}

// toolInfo says which program answered.
type toolInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func document(kind string, in inputInfo) documentHead {
	return documentHead{APIVersion: apiVersion, Kind: kind, Input: in, Tool: tool()}
}

func tool() toolInfo { return toolInfo{Name: "etcdshift", Version: version()} }

// opened is a snapshot that a command reads.
type opened struct {
	*inspect.Reader
	snapshot     *snapshot.Snapshot
	transformers *encryption.Transformers
}

// openSnapshot opens the file at path for reading as --encryption-config and --prefix say, and prints what a person should
// know about it on stderr.
func openSnapshot(c *cli.Context, path string) (*opened, error) {
	return openEncrypted(c, path, "encryption-config")
}

// openEncrypted is openSnapshot for a file whose encryption configuration another flag names.
func openEncrypted(c *cli.Context, path, flag string) (*opened, error) {
	transformers, err := loadEncryptionOf(c, flag)
	if err != nil {
		return nil, err
	}
	s, err := snapshot.Open(c.Context, path, snapshotConfig(c))
	if err != nil {
		transformers.Close()
		return nil, err
	}
	warn(c, s.Warnings())
	var opener inspect.Opener
	if transformers != nil { // a nil one in an interface would not be nil
		opener = transformers
	}
	return &opened{inspect.NewReader(s, opener, readPrefixes(c)...), s, transformers}, nil
}

// Close ends reading; what was read becomes invalid.
func (o *opened) Close() error {
	o.transformers.Close()
	return o.snapshot.Close()
}

// input waits for the file's digest. A wrong one is an error that wraps snapshot.ErrDigest beside an inputInfo that is whole;
// with any other error it is not.
func (o *opened) input(ctx context.Context) (inputInfo, error) {
	in := inputInfo{Path: o.snapshot.Path(), Bytes: o.snapshot.Size(), Digest: "none"}
	var err error
	if in.Revision, err = o.snapshot.Revision(ctx); err != nil {
		return in, err
	}
	sum, err := o.snapshot.Digest(ctx)
	switch {
	case errors.Is(err, snapshot.ErrDigest):
		in.Digest = "wrong"
	case err != nil:
		return in, err
	case sum.Present:
		in.Digest = "ok"
	}
	in.SHA256 = hex.EncodeToString(sum.File[:])
	return in, err
}

// read runs fn, which reads o and prints what it found, and then waits for the digest: who reads a file whose digest is wrong
// gets what is left of it, but not exit status 0. Faults of the mapped file become errors. A command that prints JSON gets the
// head's input from o.input before, and goes on where its error wraps snapshot.ErrDigest.
func (o *opened) read(ctx context.Context, fn func() error) error {
	if err := o.snapshot.Guard(fn); err != nil {
		return err
	}
	_, err := o.snapshot.Digest(ctx)
	return err
}
