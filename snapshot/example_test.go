package snapshot_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"

	"github.com/etcdshift/etcdshift/snapshot"
)

// Change a key of a snapshot, and read the output.
func Example() {
	ctx := context.Background()
	src, err := snapshot.Open(ctx, "../testdata/etcd/etcd-3.7.db", snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	key := []byte("/registry/configmaps/default/updated")
	old, err := src.Get(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "after.db")
	change := snapshot.Change{Key: key, Value: []byte("new"), Prior: old.ModRevision}
	res, err := snapshot.Write(ctx, path, src, only(change), snapshot.WriteConfig{})
	if err != nil {
		log.Fatal(err)
	}
	out, err := snapshot.Open(ctx, path, snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	rec, err := out.Get(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Appended, "record:", string(rec.Value))
	fmt.Println("next version:", rec.Version-old.Version == 1 && rec.ModRevision == res.Revision)
	// Output:
	// 1 record: new
	// next version: true
}

// only yields one change.
func only(c snapshot.Change) iter.Seq2[snapshot.Change, error] {
	return func(yield func(snapshot.Change, error) bool) { yield(c, nil) }
}
