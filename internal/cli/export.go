package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/get"
	"github.com/etcdshift/etcdshift/internal/objects"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "print a namespace or single objects for \"kubectl apply\"",
		ArgsUsage: "SNAPSHOT [TYPE[/NAME]...]",
		Description: `etcdshift export before.db -n shop --show-secrets > shop.yaml
etcdshift export before.db -n shop --crds | kubectl apply -f -
etcdshift export before.db -n shop -l app=web
etcdshift export before.db -n shop cm/prices deploy/web | kubectl apply -f -
etcdshift export before.db -n shop --deleted --free-pages > shop.yaml`,
		UsageText: `Prints YAML for "kubectl apply -f": the Namespace, the CustomResourceDefinitions of its custom
resources, then all its objects, each after its dependencies. Fields filled in by a server are removed. With only
TYPE/NAME, or with -l, it prints only these objects.

Omitted, and counted on stderr, are objects that the cluster creates again (objects with a controller, Endpoints of
Services, kube-root-ca.crt, default RBAC), finished Jobs and Pods, Events, Leases, and tokens of ServiceAccounts;
--all exports them too. Objects with a credential need --show-secrets. StorageClasses, PersistentVolumes,
PriorityClasses, ClusterRoles and other cluster-scoped objects used by the namespace are listed on stderr; --needed
exports them too.

--deleted exports deleted objects in their last state, like "etcdshift get --deleted": a deleted namespace with its
objects, or the deleted objects of an existing namespace. Needed objects that still exist are not exported. With
--free-pages it also searches the free pages of the file for objects deleted before the last compaction: it does not
find all of them, and may find an older state.

kubectl looks up all types before it applies anything: with custom resources, apply the output of --crds first.

Exit status: 0 exported, 1 an object was not found or could not be read, 2 usage, or the snapshot lacks a TYPE, 3 not
exported without --show-secrets, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "export namespace `NS`"},
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "export all namespaces"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"},
				Usage: "export only objects with labels that match `SELECTOR`"},
			&cli.StringFlag{Name: "cluster", Usage: "look in logical cluster `NAME` of kcp"},
			&cli.BoolFlag{Name: "crds", Usage: "export only the CustomResourceDefinitions"},
			&cli.BoolFlag{Name: "needed", Usage: "also export cluster-scoped objects used by the namespace"},
			&cli.BoolFlag{Name: "all", Usage: "omit nothing"},
			&cli.BoolFlag{Name: "deleted", Usage: "export deleted objects in their last state"},
			freePagesFlag("states of deleted objects"),
			atFlag("export"), showSecretsFlag()),
		Action: taking(runExport),
	}
}

func runExport(c *cli.Context, args []string) error {
	named := onlyNames(args[1:])
	if !c.IsSet("namespace") && !c.Bool("all-namespaces") && !named {
		return usagef(commandPath(c), "it takes a namespace with -n, or all with -A")
	}
	o := getOptions(c, cmp.Or(c.String("namespace"), "default"))
	if err := checkDeleted(c); err != nil {
		return err
	}
	selector, err := objects.ParseSelector(c.String("selector"), "")
	if o.Selector = selector; err != nil {
		return usagef(commandPath(c), "%w", err)
	}
	x := get.ExportOptions{Named: named, CRDs: c.Bool("crds"), Needed: c.Bool("needed"), All: c.Bool("all")}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	o.Begin = reading.End
	return snapshotFirst(c, args, readSnapshots(c, args[:1], func(files []*opened) error {
		reading.Of(part(8, 1, files...))
		if err := files[0].readAt(c); err != nil {
			return err
		}
		if o.Deleted {
			if err := sayWindow(c, files[0].Snapshot()); err != nil {
				return err
			}
		}
		asked, err := exported(c, args[1:], files[0].Reader)
		if err != nil {
			return err
		}
		return showError(c, get.Export(c.Context, files[0].Reader, asked, o, x))
	}))
}

// exported returns the types and objects that words name: all deleted ones for no words and
// --deleted.
func exported(c *cli.Context, words []string, r *inspect.Reader) (asked []get.Asked, err error) {
	if c.Bool("deleted") && len(words) == 0 {
		asked, err = askedFor(c, []string{"*"}, r)
		return slices.DeleteFunc(asked, func(a get.Asked) bool { return !a.Type.Namespaced }), err
	}
	types := (*inspect.Reader).Types
	if c.Bool("deleted") {
		types = (*inspect.Reader).TypesEver
	}
	for _, word := range words {
		one, err := readAsked(c, []string{word}, types, r)
		if err != nil {
			return nil, err
		}
		asked = append(asked, one...)
	}
	return asked, nil
}

// onlyNames reports whether all words are single objects, TYPE/NAME.
func onlyNames(words []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(word, "/") })
}
