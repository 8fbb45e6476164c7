package crop

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "crop".
var Spec = transform.Spec{
	Name:  "crop",
	Usage: "write a part of a snapshot into a smaller snapshot",
	Examples: `etcdshift crop before.db shop.db -n shop --needed
etcdshift crop before.db some.db deploy/web cm/prices -n shop
etcdshift crop before.db web.db -l app=web -A --needed
etcdshift crop before.db tenant.db --prefix /tenant-a`,
	Text: `Writes the selected objects, as they are stored, and nothing else: no history, no deleted objects, no users and
members of etcd. Keys, values, UIDs, revisions and leases stay. OUT can be restored, and an API server serves it.

-n NS alone selects the Namespace with all its objects. TYPE and TYPE/NAME select objects as in kubectl, -l objects
with labels. --prefix P alone selects everything below a storage prefix, for one etcd with several API servers.

The report lists needed objects that are not selected: the CustomResourceDefinitions, Namespaces, volumes, classes,
roles and others that the selected objects name, and the ClusterRoleBindings of selected ServiceAccounts. --needed
adds them and the owners to OUT. The run is refused if the owner of an object in OUT is not in OUT: a garbage collector
would delete the object.

OUT has the Secrets as they are stored: "etcdshift sanitize" replaces them.`,
	Rest:     "[TYPE[/NAME]...]",
	Builds:   true,
	Codes:    codes(),
	Settles:  map[string]string{codeOwnerOutside.Name: "add the owners with --needed"},
	Sections: []transform.Section{&Needs{}},
	Appendix: &Part{},
	Flags:    flags(),
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		part, err := objects.ChoosePart(a, a.Rest)
		if err != nil {
			return nil, err
		}
		return &Crop{part: part, needed: a.Bool("needed")}, nil
	},
}

func flags() []transform.Flag {
	return append(objects.PartFlags(), transform.Flag{Name: "needed", Default: false,
		Usage: "also add the objects that the selected objects need, and their owners"})
}

func codes() []*finding.Code {
	return append(objects.PartCodes(), codeOwnerOutside, codeOwnersUnread)
}

var (
	codeOwnerOutside = finding.Lookup("owner-outside")
	codeOwnersUnread = finding.Lookup("owners-unread")
)
