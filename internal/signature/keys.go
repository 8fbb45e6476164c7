package signature

import (
	"context"
	"fmt"

	"aead.dev/minisign"

	"github.com/etcdshift/etcdshift/internal/input"
)

// maxFile is the most bytes that a file with a key or a signature may have.
const maxFile = 1 << 16

// KeyID is how minisign prints the number of a key.
func KeyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// ReadFile reads the file of a signature.
func ReadFile(ctx context.Context, path string) (*Signature, error) {
	text, _, err := input.ReadFile(ctx, path, maxFile)
	if err != nil {
		return nil, err
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ReadPublic reads a public key: the 56 characters of one, or else the file that is named.
func ReadPublic(ctx context.Context, name string) (key minisign.PublicKey, err error) {
	if len(name) == 56 && key.UnmarshalText([]byte(name)) == nil {
		return key, checkKey(key)
	}
	text, _, err := input.ReadFile(ctx, name, maxFile)
	if err != nil {
		return key, err
	}
	if err := key.UnmarshalText(text); err != nil {
		return key, fmt.Errorf("%s: not a public key of minisign", name)
	}
	if err := checkKey(key); err != nil {
		return key, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// ReadSecret reads the file of a secret key. An encrypted one takes the passphrase that ask
// returns.
func ReadSecret(ctx context.Context, path string, ask func() (string, error)) (key minisign.PrivateKey, err error) {
	text, _, err := input.ReadFile(ctx, path, maxFile)
	if err != nil {
		return key, err
	}
	if key.UnmarshalText(text) == nil {
		return key, nil
	}
	if !minisign.IsEncrypted(text) {
		return key, fmt.Errorf("%s: not a secret key of minisign", path)
	}
	passphrase, err := ask()
	if err != nil {
		return key, err
	}
	if key, err = minisign.DecryptKey(passphrase, text); err != nil {
		return key, fmt.Errorf("%s: wrong passphrase, or damaged", path)
	}
	return key, nil
}
