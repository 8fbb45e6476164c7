package signature

import (
	"context"
	"fmt"

	"aead.dev/minisign"

	"github.com/etcdshift/etcdshift/internal/input"
)

// maxFile is the maximum size of a key or signature file, in bytes.
const maxFile = 1 << 16

// KeyID formats a key number as minisign does.
func KeyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// ReadFile reads a signature file.
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

// ReadPublic reads a public key: the 56 characters of a key, or a file name.
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

// ReadSecret reads a secret key file. An encrypted key is decrypted with the passphrase returned by
// ask.
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
