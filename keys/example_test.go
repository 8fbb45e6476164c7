package keys_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/keys"
)

// Find the storage prefixes of a file from its keys, and parse the keys.
func Example() {
	all := []string{
		"/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
		"/registry/minions/node-1", "/registry/example.com/widgets/team-a/w", "compact_rev_key",
	}
	d := keys.NewDetector()
	for _, key := range all {
		d.Add([]byte(key))
	}
	layouts := d.Layouts()
	for _, key := range all[1:] {
		k, _, err := layouts.Parse([]byte(key))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s: %s %q in namespace %q\n", k.Prefix, k.Resource, k.Name, k.Namespace)
	}
	// Output:
	// /registry: nodes "node-1" in namespace ""
	// /registry: widgets.example.com "w" in namespace "team-a"
	// key "compact_rev_key": not a key of this layout: under no storage prefix
}

// Format is the inverse of Parse. A key of another prefix moves to the prefix of the layout.
func ExampleKubernetes_Format() {
	from, to := keys.Kubernetes{Prefix: "/registry"}, keys.Kubernetes{Prefix: "/kubernetes.io"}
	key, err := from.Parse([]byte("/registry/services/specs/default/web"))
	fmt.Println(key.Resource, err)
	fmt.Println(string(to.Format(key)))
	fmt.Println(string(to.Dir(schema.GroupResource{Group: "apps", Resource: "deployments"})))
	// Output:
	// services <nil>
	// /kubernetes.io/services/specs/default/web
	// /kubernetes.io/deployments/
}
