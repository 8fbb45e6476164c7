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

The report lists the objects that the selected ones need and that are not selected: CustomResourceDefinitions,
Namespaces, volumes, classes, roles and others that they name, and ClusterRoleBindings of their ServiceAccounts.
--needed takes them too, and owners. An object with an owner outside OUT refuses the run: a garbage collector would
delete it.

Secrets stay as they are stored: "etcdshift sanitize" replaces them.`,
	Rest:     "[TYPE[/NAME]...]",
	Builds:   true,
	Codes:    codes(),
	Settles:  map[string]string{codeOwnerOutside.Name: "take the owners too, with --needed"},
	Sections: []transform.Section{&Needs{}},
	Appendix: &Part{},
	Flags: append(objects.PartFlags(), transform.Flag{Name: "needed", Default: false,
		Usage: "also take the objects that the selected ones need, and their owners"}),
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		part, err := objects.ChoosePart(a, a.Rest)
		if err != nil {
			return nil, err
		}
		return &Crop{part: part, needed: a.Bool("needed")}, nil
	},
}

func codes() []*finding.Code {
	return append(objects.PartCodes(), codeOwnerOutside, codeOwnersUnread)
}

var (
	codeOwnerOutside = finding.Lookup("owner-outside")
	codeOwnersUnread = finding.Lookup("owners-unread")
)
