package encoding_test

import (
	"context"
	"fmt"
	"log"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Read and change a Secret of a snapshot, stored as protobuf, without its Go type.
func Example() {
	ctx := context.Background()
	in, err := snapshot.Open(ctx, "../testdata/kubectl/all.db.gz", snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	rec, err := in.Get(ctx, []byte("/registry/secrets/a/s"))
	if err != nil {
		log.Fatal(err)
	}
	value, err := encoding.Parse(rec.Value)
	fmt.Println(value.Format, value.GVK, err)

	out, err := encoding.Set(rec.Value, "yes", "metadata", "annotations", "example.com/moved")
	if err != nil {
		log.Fatal(err)
	}
	meta, err := encoding.ReadMeta(out)
	fmt.Println(meta.Name, meta.Annotations, len(out)-len(rec.Value), err)
	// Output:
	// protobuf /v1, Kind=Secret <nil>
	// s map[example.com/moved:yes] 26 <nil>
}

// One annotation changes; the order of fields and the text of all other fields stay.
func ExampleSet() {
	stored := []byte(
		`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w","annotations":{"shard":"root",` +
			`"x":"\u0041"}}}`)
	out, err := encoding.Set(stored, "shard-1", "metadata", "annotations", "shard")
	fmt.Println(string(out), err)
	// Output: {"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w","annotations":{"shard":"shard-1","x":"\u0041"}}} <nil>
}

// A path leads through objects by their names, in protobuf and in JSON.
func ExampleGet() {
	stored := []byte("k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0f\x0a\x05\x0a\x03web\x12\x06\x0a\x01k\x12\x01v")
	for _, path := range [][]string{{"metadata", "name"}, {"data", "k"}, {"data"}} {
		value, err := encoding.Get(stored, path...)
		fmt.Println(value, err)
	}
	// Output:
	// web <nil>
	// v <nil>
	// map[k:v] <nil>
}
