package main

import (
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/encoding/encryption"
)

// encryptionFlag is on every command that reads values; what it does says what becomes of them.
func encryptionFlag(does string) cli.Flag {
	return &cli.StringFlag{Name: "encryption-config", Usage: does + " the EncryptionConfiguration in `FILE` (not KMS v1)"}
}

// loadEncryption reads the configuration that was named; nil without one.
func loadEncryption(c *cli.Context) (*encryption.Transformers, error) {
	return loadEncryptionOf(c, "encryption-config")
}

// loadEncryptionOf is loadEncryption for the configuration that another flag names.
func loadEncryptionOf(c *cli.Context, flag string) (*encryption.Transformers, error) {
	if !c.IsSet(flag) {
		return nil, nil
	}
	t, err := encryption.Load(c.Context, c.String(flag))
	if err != nil {
		return nil, unusable{err}
	}
	return t, nil
}

// unusable is an encryption configuration that cannot be worked with.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }
