package graft

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "import".
var Spec = transform.Spec{
	Name:  "import",
	Usage: "write a snapshot with the objects of an archive added",
	Examples: `etcdshift import before.db shop.archive after.db
etcdshift import before.db shop.archive after.db \
    --on-conflict keep --on-conflict take:deploy/shop/web
etcdshift import joined.db tenant.archive after.db \
    --prefix /tenant-a --to-prefix /tenants/a`,
	Text: `Adds the records of an archive to the snapshot B: each at a new revision, with the same value, UID and status,
and with leases of the same TTL. Values are decrypted, and encrypted again as the API servers of B encrypt them. The IP
addresses and node ports of Services are allocated in B.

The run checks first, and names every conflict: keys and UIDs of B, missing definitions, classes, volumes, nodes and
owners, volumes of another claim, addresses in use, namespaces that are being deleted, quotas. Admission webhooks and
policies do not see the objects: those that select them are listed.

A record that B has with the same value is not changed. If B has another value, the run is refused; --on-conflict keeps
B's record, or takes the archive's record. A decision about one object overrides the decision about all.

--prefix P --to-prefix Q moves the records below the storage prefix P of the archive to the storage prefix Q.`,
	ArgsText:   "B ARCHIVE OUT",
	Arguments:  func(*transform.Args) []string { return []string{"B", "ARCHIVE", "OUT"} },
	InputFirst: true,
	Alone:      true,
	Creates:    true,
	Codes:      codes(),
	Settles: map[string]string{
		codeEncrypted.Name: "decrypt it with --archive-encryption-config FILE, the configuration of the origin",
		codeExposed.Name: "give --encryption-config FILE, the configuration of the API servers of B, " +
			"if they have one",
		codeKeyExists.Name: "decide with --on-conflict keep or take, or by object with --on-conflict " +
			"take:TYPE/[NAMESPACE/]NAME",
		codeOwnerOutside.Name:     "extract the owners too, with --needed, if the origin has them",
		codeNamespaceMissing.Name: "extract the Namespace too, with --needed",
		codeNoDefinition.Name:     "extract the definition too, with --needed",
		codeNeedMissing.Name:      "extract it too, with --needed",
	},
	Sections: []transform.Section{&Imported{}},
	Flags: []transform.Flag{
		{Name: "on-conflict", Default: []string{}, Usage: "`keep|take[:TYPE/[NAMESPACE/]NAME]`: if B has the key " +
			"with another value, keep B's record, or take the archive's record; of all objects, or of " +
			"one; may be repeated"},
		{Name: "to-prefix", Usage: "put the records below the storage prefix `Q`; requires --prefix, their prefix in " +
			"the archive"},
		{Name: "archive-encryption-config", Usage: "decrypt values of the archive with the EncryptionConfiguration " +
			"in `FILE` (default: --encryption-config)"},
	},
	New: newGraft,
}

func newGraft(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	decided, err := parseDecisions(a.StringSlice("on-conflict"))
	if err != nil {
		return nil, err
	}
	g := &Graft{OnConflict: decided}
	if a.IsSet("to-prefix") {
		if len(a.Prefixes) != 1 {
			return nil, transform.Usagef("--to-prefix requires one --prefix, the storage prefix in the archive")
		}
		if strings.Trim(a.String("to-prefix"), "/ ") == "" {
			return nil, transform.Usagef("--to-prefix is empty")
		}
		g.FromPrefix, g.ToPrefix = a.Prefixes[0], strings.TrimRight(path.Join("/", a.String("to-prefix")), "/")
	}
	if g.Archive, err = a.Open(ctx, a.Arguments[0], "archive-encryption-config"); err != nil {
		return nil, err
	}
	if err = g.Archive.Read(ctx, func() error { return g.open(ctx) }); err != nil {
		return nil, err
	}
	a.Prefixes = []string{g.ToPrefix}
	if g.ToPrefix == "" {
		a.Prefixes = g.prefixes
	}
	return g, nil
}

// open checks the archive. A snapshot without a manifest is checked as far as possible: see
// codeNotArchive.
func (g *Graft) open(ctx context.Context) error {
	s := g.Archive.Snapshot()
	m, err := archive.OpenPart(ctx, s)
	switch {
	case errors.Is(err, archive.ErrNotArchive):
		if err := s.Sound(ctx); err != nil {
			return err
		}
		layouts, err := g.Archive.Layouts(ctx)
		for _, storage := range layouts.Storages() {
			g.prefixes = append(g.prefixes, storage.Prefix)
		}
		return err
	case errors.Is(err, archive.ErrKind):
		return finding.WithHint(err, "\"etcdshift kcp import\" takes archives of logical clusters")
	case err != nil:
		return err
	}
	g.proven, g.prefixes = true, m.Origin.Prefixes
	if g.FromPrefix == "" || !slices.Contains(g.prefixes, g.FromPrefix) {
		g.Archive.Reader = inspect.NewReader(s, g.Archive.Decrypter, g.prefixes...)
	}
	return nil
}

// Codes of an import: codes of other commands, some with another level.
var (
	codeKeyExists        = finding.Lookup("key-exists")
	codeDuplicateUID     = finding.Lookup("duplicate-uid")
	codeNoDefinition     = finding.Lookup("missing-definition")
	codeUnlistedVersion  = finding.Lookup("unlisted-version").As(finding.Error, finding.WentOn)
	codeNamespaceMissing = finding.Lookup("namespace-missing")
	codeTerminating      = finding.Lookup("namespace-terminating")
	codeCRDTerminating   = finding.Lookup("crd-terminating")
	codeOwnerOutside     = finding.Lookup("owner-outside")
	codeOwnersUnread     = finding.Lookup("owners-unread")
	codeUndecodable      = finding.Undecodable.As(finding.Error, finding.WentOn)
	codeEncrypted        = finding.Lookup("encrypted")
	codeExposed          = finding.Lookup("would-be-plaintext").As(finding.Error, finding.WentOn)
	codeLayout           = finding.Lookup("unsupported-layout").As(finding.Error, "")
)

// The codes that only an import reports.
var (
	codeNotArchive     = finding.Lookup("not-an-archive")
	codeNeedMissing    = finding.Lookup("need-missing")
	codeNodeMissing    = finding.Lookup("node-missing")
	codeVolumeHeld     = finding.Lookup("volume-held")
	codeVolumeTwice    = finding.Lookup("volume-twice")
	codeAddressOutside = finding.Lookup("address-outside")
	codePrefixNew      = finding.Lookup("prefix-new")
	codeUnadmitted     = finding.Lookup("unadmitted")
	codeQuotaExceeded  = finding.Lookup("quota-exceeded")
	codeDenied         = policy.CodeDenied.As(finding.Error, finding.WentOn)
	codeNotEvaluated   = policy.CodeNotEvaluated.As(finding.Warning, "")
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeNotArchive, codePrefixNew, codeKeyExists, codeDuplicateUID, codeNoDefinition, codeUnlistedVersion,
		codeNamespaceMissing, codeTerminating, codeCRDTerminating, codeOwnerOutside, codeOwnersUnread,
		codeNeedMissing, codeNodeMissing,
		codeVolumeHeld, codeVolumeTwice,
		objects.CodeVolumeFreed, transform.CodeAddress, codeAddressOutside, codeUnadmitted, codeDenied,
		codeNotEvaluated, codeQuotaExceeded,
		codeEncrypted, codeExposed, codeUndecodable, finding.UnknownKey, codeLayout, codeNotFound,
	}
}
