package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// apiVersion is the version of all JSON documents.
const apiVersion = transform.APIVersion

// documentHead begins the JSON answers of reading commands; embed it first.
type documentHead struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Input      inputInfo      `json:"input"`
	Tool       transform.Tool `json:"tool"`
}

// answerHead begins the other JSON answers; embed it first.
type answerHead struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Tool       transform.Tool `json:"tool"`
}

func answerTo(kind string) answerHead { return answerHead{apiVersion, kind, tool()} }

// inputInfo identifies the file of an answer.
type inputInfo struct {
	Path     string `json:"path"`     // as given
	SHA256   string `json:"sha256"`   // of the whole file, as printed by sha256sum
	Bytes    int64  `json:"bytes"`    // of the file as given
	Revision int64  `json:"revision"` // the current revision, with which a server would start
	Digest   string `json:"digest"`   // "ok", "none" (a raw database file carries none) or "wrong"
}

func document(kind string, in inputInfo) documentHead {
	return documentHead{APIVersion: apiVersion, Kind: kind, Input: in, Tool: tool()}
}

func tool() transform.Tool { return transform.Tool{Name: "etcdshift", Version: version()} }

// opened is a snapshot open for reading.
type opened struct {
	*inspect.Reader
	transformers *encryption.Transformers
	at           *stateAt // of --at, if given
}

// openFile opens a file. The flag config, or else --encryption-config, names the encryption
// configuration.
func openFile(c *cli.Context, path, config string) (*opened, error) {
	transformers, err := loadEncryption(c, config)
	if err != nil {
		return nil, err
	}
	cfg := snapshotConfig(c)
	if cfg.File, err = scratchOf(c, path, cfg.MaxExpand); err != nil {
		transformers.Close()
		return nil, err
	}
	cfg.Peers = peersOf(c, path)
	s, err := snapshot.Open(c.Context, path, cfg)
	for peer := (*snapshot.PeerError)(nil); errors.As(err, &peer); {
		if !peer.OtherCluster {
			warn(c, fmt.Sprintf("%s: %v", path, peer))
		}
		cfg.Peers = slices.DeleteFunc(cfg.Peers, func(other string) bool { return other == peer.Path })
		s, err = snapshot.Open(c.Context, path, cfg)
	}
	if err != nil {
		transformers.Close()
		return nil, err
	}
	o := &opened{transformers: transformers}
	o.Reader = inspect.NewReader(s, o.decrypter(), readPrefixes(c)...)
	return o, nil
}

// peersOf returns the other data directories of "status A B C".
func peersOf(c *cli.Context, path string) (peers []string) {
	if c.Command.Name != "status" || !snapshot.IsFolder(path) {
		return nil
	}
	for _, other := range c.Args().Slice() {
		if other != path && snapshot.IsFolder(other) {
			peers = append(peers, other)
		}
	}
	return peers
}

// openWhole is openFile for commands that check the whole file. It prints warnings.
func openWhole(c *cli.Context, path, config string) (*opened, error) {
	o, err := openFile(c, path, config)
	if err == nil {
		warn(c, o.Snapshot().Warnings()...)
	}
	return o, err
}

// openSnapshot is openWhole for commands that read below --prefix.
func openSnapshot(c *cli.Context, path, config string) (*opened, error) {
	o, err := openWhole(c, path, config)
	if err == nil {
		o.Reader = o.Below(readPrefixes(c)...)
	}
	return o, err
}

// decrypter returns the decrypter of the file's values; nil without a configuration.
func (o *opened) decrypter() inspect.Decrypter {
	if o.transformers == nil { // a nil pointer in an interface is not nil
		return nil
	}
	return o.transformers
}

// loadEncryption reads the configuration of a flag, or else of --encryption-config; nil without
// one.
func loadEncryption(c *cli.Context, flag string) (*encryption.Transformers, error) {
	if c.String(flag) == "" {
		flag = encryptionConfig
	}
	path := c.String(flag)
	if path == "" {
		return nil, nil
	}
	if err := onlyFile(c, "--"+flag, path); err != nil {
		return nil, err
	}
	t, err := encryption.Load(c.Context, path)
	if err != nil {
		return nil, unusable{err}
	}
	return t, nil
}

// unusable is the error of an unusable encryption configuration.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// Hint returns the hint of the wrapped error, or by default the advice to use the API servers'
// encryption configuration.
func (u unusable) Hint() string {
	return cmp.Or(hintFor(u.error), "give the file of the API servers' --encryption-provider-config; its KMS plugins "+
		"must run on this machine")
}

// Close ends reading and invalidates all values.
func (o *opened) Close() error {
	o.transformers.Close()
	return o.Snapshot().Close()
}

// readSnapshots opens files, runs fn, which prints, and waits for their digests: a wrong digest is
// an error after the output, added to any error of fn except a usage error. Faults of a mapped file
// become errors.
func readSnapshots(c *cli.Context, paths []string, fn func(files []*opened) error) error {
	var files []*opened
	config := encryptionConfig
	for _, path := range paths {
		o, err := openSnapshot(c, path, config)
		if err != nil {
			return err
		}
		defer o.Close()
		files = append(files, o)
		config = "encryption-config-new" // diff has a configuration for NEW
	}
	read := func() error { return checkPrefixes(c, fn(files), files...) }
	for _, o := range slices.Backward(files) {
		inner := read
		read = func() error {
			err := o.Snapshot().Guard(inner)
			if statusOf(err) == exitUsage || errors.Is(err, context.Canceled) || !o.Snapshot().HasDigest() {
				return err
			}
			if _, wrong := o.Snapshot().Digest(c.Context); err == nil || errors.Is(wrong, snapshot.ErrDigest) {
				err = errors.Join(err, wrong) // a wrong digest explains other errors
			}
			return err
		}
	}
	return read()
}

// namesSnapshot reports whether a word is the path of a file or object, and not a TYPE.
func namesSnapshot(word string) bool {
	return s3.Is(word) || (isRegular(word) || snapshot.IsFolder(word)) && !namesType(word)
}

// namesType reports whether a word names a built-in type.
func namesType(word string) bool {
	types, _ := inspect.BuiltinTypes("pods")
	_, err := types.Resolve(word)
	return err == nil
}

// sayType warns that an ambiguous word was read as a TYPE, and shows how to name the file.
func sayType(c *cli.Context, word string) {
	if isRegular(word) {
		warn(c, word+" is read as a TYPE, not as the file of that name; ./"+word+" names the file")
	}
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// snapshotFirst adds a hint about the argument order if the first argument is not a file, but a
// later one is.
func snapshotFirst(c *cli.Context, args []string, err error) error {
	at := slices.IndexFunc(args, namesSnapshot)
	switch {
	case !errors.Is(err, fs.ErrNotExist) || at == 0:
		return err
	case at < 0:
		return missingSnapshot(c, strings.Fields(c.Command.ArgsUsage), args, err)
	}
	words := slices.Concat(args[at:at+1], args[:at], args[at+1:])
	return &failure{exitUsage, err, fmt.Sprintf("the snapshot stands first: etcdshift %s %s", commandPath(c),
		render.Printable(strings.Join(words, " ")))}
}

// input waits for the file's digest. A wrong digest is not an error, but a field of inputInfo.
func (o *opened) input(ctx context.Context) (inputInfo, error) {
	s := o.Snapshot()
	in := inputInfo{Path: s.Path(), Bytes: s.Size(), Digest: "none"}
	var err error
	if in.Revision, err = s.Revision(ctx); err != nil {
		return in, err
	}
	sum, err := s.Digest(ctx)
	switch {
	case errors.Is(err, snapshot.ErrDigest):
		in.Digest = "wrong"
	case err != nil:
		return in, err
	case sum.Present:
		in.Digest = "ok"
	}
	in.SHA256 = hex.EncodeToString(sum.File[:])
	return in, nil
}

func (o *opened) document(ctx context.Context, kind string) (documentHead, error) {
	in, err := o.input(ctx)
	return document(kind, in), err
}

// checkPrefixes adds file names to err. A --prefix without keys in any file is likely misspelt: it
// is an error too, and replaces errors about a missing type or storage.
func checkPrefixes(c *cli.Context, err error, files ...*opened) error {
	var paths, vacant, others []string
	for i, o := range files {
		found, err := inspect.Vacant(c.Context, o.Reader)
		if err != nil {
			return err
		}
		if i == 0 {
			vacant = found
		}
		vacant = slices.DeleteFunc(vacant, func(prefix string) bool { return !slices.Contains(found, prefix) })
		paths = append(paths, o.Snapshot().Path())
		if len(found) == 0 {
			continue // no need to read its keys again
		}
		layouts, err := o.Layouts(c.Context)
		if err != nil {
			return err
		}
		others = append(others, layouts.LeftOut()...)
	}
	err = inFiles(err, paths...)
	missing := slices.ContainsFunc([]error{inspect.ErrUnknownType, kcp.ErrNoShard, kcp.ErrNoCache},
		func(is error) bool { return errors.Is(err, is) })
	if len(vacant) > 0 && (missing || statusOf(err) == exitUsage) {
		err = nil
	}
	for _, prefix := range vacant {
		longer := slices.DeleteFunc(sorted(others),
			func(other string) bool { return !strings.HasPrefix(other, prefix+"/") })
		err = errors.Join(err, &fileError{paths, fmt.Errorf("%w %q%s", transform.ErrEmptyPrefix, cmp.Or(prefix, "/"),
			either(" that is not below ", longer))})
	}
	return err
}

// fileError is an error about a file of paths. With several paths the exact file is unknown.
type fileError struct {
	paths []string
	err   error
}

func (e *fileError) Error() string { return strings.Join(e.paths, ", ") + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// inFiles adds file names to errors without one, except usage errors and interruptions.
func inFiles(err error, paths ...string) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return errors.Join(stream.Mapped(several.Unwrap(), func(one error) error { return inFiles(one, paths...) })...)
	}
	var of *snapshot.FileError
	var at *fs.PathError // of stdout, for example
	var is *fileError
	if err == nil || errors.As(err, &of) || errors.As(err, &at) || errors.As(err, &is) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	if f, ok := err.(*failure); ok {
		if f.status == exitUsage {
			return err
		}
		return &failure{f.status, &fileError{paths, f.err}, f.hint}
	}
	return &fileError{paths, err}
}

// either returns quoted names after a text; "" without names.
func either(before string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return before + strings.Join(stream.Mapped(names, strconv.Quote), " or ")
}
