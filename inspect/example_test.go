package inspect_test

import (
	"context"
	"fmt"
	"log"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// List the objects of a type, and the stored versions of a snapshot.
func Example() {
	ctx := context.Background()
	s, err := snapshot.Open(ctx, "../testdata/calico/before.db.gz", snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	r := inspect.NewReader(s, nil) // no EncryptionConfiguration: Secrets may be undecryptable
	types, err := r.Types(ctx)
	if err != nil {
		log.Fatal(err)
	}
	found, err := types.Resolve("ns")
	if err != nil {
		log.Fatal(err)
	}
	for o, err := range r.Objects(ctx, found[0], inspect.Selection{Names: []string{"default", "kube-system"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(found[0].Kind, o.Parsed.Name, o.Err)
	}
	// Output:
	// Namespace default <nil>
	// Namespace kube-system <nil>
}

// An Entry parses its key and its value once.
func ExampleReader_Live() {
	ctx := context.Background()
	s, err := snapshot.Open(ctx, "../testdata/calico/before.db.gz", snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for e, err := range inspect.NewReader(s, nil).Live(ctx, []byte("/registry/namespaces/default")) {
		if err != nil {
			log.Fatal(err)
		}
		key, err := e.ParseKey()
		if err != nil {
			log.Fatal(err)
		}
		value, err := e.ParseValue()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key.Resource, key.Name, value.Format, value.GVK.Version, value.GVK.Kind)
	}
	// Output: namespaces default protobuf v1 Namespace
}
