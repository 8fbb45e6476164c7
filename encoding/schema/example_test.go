package schema_test

import (
	"context"
	"fmt"
	"log"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Convert an object to the storage version of its CRD, like a server's next write.
func Example() {
	ctx := context.Background()
	in, err := snapshot.Open(ctx, "../../testdata/storage/flipped.db.gz", snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	definition, err := in.Get(ctx,
		[]byte("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.demo.example.com"))
	if err != nil {
		log.Fatal(err)
	}
	crd, err := schema.ParseCRD(definition.Value)
	if err != nil {
		log.Fatal(err)
	}
	stored, err := in.Get(ctx, []byte("/registry/demo.example.com/widgets/default/put-alpha"))
	if err != nil {
		log.Fatal(err)
	}
	widget, _, err := encoding.DecodeObject(stored.Value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(crd.StoredVersions(), crd.StorageVersion(), crd.Webhook())
	fmt.Println(widget["apiVersion"])

	dropped, err := crd.Rewrite(widget)
	fmt.Println(widget["apiVersion"], dropped, err)
	// Output:
	// [v1alpha1 v1beta1] v1beta1 false
	// demo.example.com/v1alpha1
	// demo.example.com/v1beta1 [spec.oldOnly] <nil>
}
