package sanitize

import (
	"context"
	"crypto/rand"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec describes the command "sanitize".
var Spec = transform.Spec{
	Name:  "sanitize",
	Usage: "replace secrets and names, to share the snapshot",
	Examples: `etcdshift sanitize before.db for-support.db
etcdshift sanitize --keep-names before.db for-support.db
etcdshift sanitize --plaintext \
    --encryption-config encryption.yaml before.db for-support.db
etcdshift sanitize --key key.bin before.db again.db`,
	Text: `Replaces the data of Secrets, ServiceAccount tokens, bootstrap tokens, values of Helm releases, and every
credential that "get" would redact: in ConfigMaps, annotations, environment variables, commands and custom resources.
A value keeps its shape and length: base64, JSON, PEM, hexadecimal, digits. Equal secrets become equal values. New
values are derived from a random key that is not kept, so two runs differ; --key gives the same values each time.

Names of namespaces and objects are replaced by names of the same shape and length, in all references, selectors and
texts; --keep-names keeps them. The report lists each word with its replacement: do not share the report.

History, deleted objects, free pages, etcd users and members are omitted. Types, IP addresses and short words in
texts stay: the report and docs/guides/sanitize.md list everything that is not replaced.`,
	Codes: []*finding.Code{codeNotSanitized, transform.CodeWouldBePlaintext},
	Settles: map[string]string{
		codeNotSanitized.Name: "give --encryption-config FILE and --plaintext for encrypted values",
	},
	Sections:      []transform.Section{&Sanitized{}},
	NotForRestore: true,
	Flags: []transform.Flag{
		{Name: "keep-names", Default: false, Usage: "keep the names of namespaces and objects"},
		{Name: "plaintext", Default: false, Usage: "write sanitized values unencrypted, also those that are " +
			"encrypted in IN: the receiver has no key"},
		{Name: "key", Usage: "derive values from `FILE`, 32 bytes or more, instead of a random key; anyone with FILE " +
			"can test guesses"},
	},
	New: newFromArgs,
}

// codeNotSanitized is raised for a record that may still contain secrets.
var codeNotSanitized = finding.Lookup("not-sanitized")

// leastKey is the least length of a key, in bytes.
const leastKey = 32

func newFromArgs(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	switch {
	case a.IsSet("encryption-config") && !a.Bool("plaintext"):
		return nil, transform.Usagef("the receiver of OUT has no key: add --plaintext to write sanitized values " +
			"unencrypted")
	}
	key, err := a.ReadFile(ctx, "key")
	switch {
	case err != nil:
		return nil, err
	case !a.IsSet("key"):
		key = make([]byte, leastKey)
		_, _ = rand.Read(key) // never fails
	case len(key) < leastKey:
		return nil, transform.Usagef("--key names a file of %d bytes; it takes %d or more, such as those of \"head "+
			"-c 32 /dev/urandom\"", len(key), leastKey)
	}
	return &sanitizer{masker: masker{key: key}, plaintext: a.Bool("plaintext"), keepNames: a.Bool("keep-names")}, nil
}
