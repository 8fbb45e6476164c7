package finding_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// object parses a value; a finding is an error with a code.
func object(value []byte) (encoding.Value, error) {
	v, err := encoding.Parse(value)
	switch {
	case errors.Is(err, encoding.ErrEncrypted):
		return v, finding.Encrypted.Because("%v", err)
	case err != nil:
		return v, finding.Undecodable.Because("%v", err)
	}
	return v, nil
}

// Report each value in a snapshot that is not a Kubernetes object.
func Example() {
	ctx := context.Background()
	in, err := snapshot.Open(ctx, "../testdata/etcd/etcd-3.7.db", snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	for rec, err := range in.Live(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		_, err := object(rec.Value)
		if f := finding.Of(err); f != nil {
			fmt.Printf("%s %s: %s: %s\n", f.Level, f.Code.Name, rec.Key, f.Reason)
		}
	}
	// Output: error undecodable: compact_rev_key: unsupported value format: 2 bytes, neither a JSON object nor protobuf, CBOR or encrypted
}
