package cli

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/signature"
	"github.com/etcdshift/etcdshift/snapshot"
)

// signatureFlags returns verify's flags for signatures.
func signatureFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "key", Usage: "check the signature with the public key in `FILE`, or given as " +
			"56 characters"},
		&cli.StringFlag{Name: "signature", Usage: "read the signature from `FILE` (default: SNAPSHOT.minisig)"},
	}
}

// checkedSignature is the result of verify --key.
type checkedSignature struct {
	Path    string `json:"path"`
	KeyID   string `json:"keyID"`             // of the signing key named in the signature, in minisign's form
	Good    bool   `json:"good"`              // whether the key has signed the file
	Comment string `json:"comment,omitempty"` // the trusted comment of a good signature
}

// isReport reports whether a path is a page, a report, a plan or a list of checksums. For these
// files only the signature is checked.
func isReport(path string) bool {
	return slices.Contains([]string{".html", ".md", ".json", ".jsonl", ".sarif", ".xml", ".yaml"},
		filepath.Ext(path)) || filepath.Base(path) == "SHA256SUMS"
}

// checkSignature checks the signature if --key was given. An error means that the check was
// impossible.
func checkSignature(c *cli.Context, v *verification) (wrong error, err error) {
	if c.String("key") == "" {
		if c.IsSet("signature") {
			err = usagef(commandPath(c), "--signature needs --key")
		}
		return nil, err
	}
	if v.Path == "-" {
		return nil, usagef(commandPath(c), "--key takes a file: standard input has no signature file")
	}
	if err := onlyFile(c, "--key", v.Path); err != nil {
		return nil, err
	}
	key, err := signature.ReadPublic(c.Context, c.String("key"))
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	path := cmp.Or(c.String("signature"), v.Path+signatureEnding)
	s, err := signature.ReadFile(c.Context, path)
	if err != nil {
		return nil, signatureError(v.Path, err)
	}
	reading := progress(c).Phase("checking the signature of " + v.Path)
	v.file, err = signature.Read(c.Context, v.Path)
	reading.End()
	if err != nil {
		return nil, err
	}
	v.Signature = &checkedSignature{Path: path, KeyID: s.KeyID}
	if v.Signature.Comment, wrong = v.file.Check(key, s); wrong != nil {
		v.found(snapshot.Warning, fmt.Sprintf("signature %s: %v", path, wrong))
	}
	v.Signature.Good = wrong == nil
	return wrong, nil
}

// signatureError returns the error of an unreadable signature, with a hint.
func signatureError(path string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = `"etcdshift sign" makes a signature; --signature names one elsewhere`
	case errors.Is(err, signature.ErrLegacy):
		hint = `sign the file again, with "etcdshift sign" or a minisign of today`
	}
	return &failure{exitCannotCheck, fmt.Errorf("%s: no signature to check: %w", path, err), hint}
}

// verifyReport fills in v for a file that is not a snapshot.
func verifyReport(v *verification) {
	v.Input.SHA256, v.Input.Bytes, v.Input.Digest = hex.EncodeToString(v.file.SHA256[:]), v.file.Bytes, "none"
}

// sameFile returns an error if the verified bytes are not the bytes with the checked signature.
func sameFile(v *verification) error {
	if v.file == nil || v.Input.SHA256 == "" || v.Input.SHA256 == hex.EncodeToString(v.file.SHA256[:]) {
		return nil
	}
	return fmt.Errorf("%s: %w", v.Path, snapshot.ErrChanged)
}

// signedBy describes the signer of a good signature.
func signedBy(s *checkedSignature) string {
	return fmt.Sprintf("signed with key %s: %s", s.KeyID, strings.ReplaceAll(s.Comment, "\t", ", "))
}
