package calico

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "migrate calico-v3".
var Spec = transform.Spec{
	Group:   transform.GroupMigrate,
	Name:    "calico-v3",
	Usage:   "convert crd.projectcalico.org/v1 to projectcalico.org/v3",
	Creates: true,
	Examples: `etcdshift migrate calico-v3 --dry-run before.db after.db
etcdshift migrate calico-v3 --report report.json before.db after.db
etcdshift migrate calico-v3 --abort halfway.db back.db`,
	Text: `Rewrites every Calico record of the v1 group as the v3 custom resource that Calico 3.32 reads without its
API server, with the UIDs, times and owners seen by clients.

--abort undoes Calico's own live migration, in a snapshot taken before its clean-up: it unlocks the v1 datastore,
removes the v3 objects of the migration and its DatastoreMigration, and restores APIService v3.projectcalico.org.`,
	Codes: codes(),
	Settles: map[string]string{
		codeConflict.Name: "choose with --conflicts keep-v3 or take-v1, or by object with " +
			"--conflict KIND[/NS]/NAME=take-v1",
		codeCRDMissing.Name:    "add them with --v3-crds FILE",
		finding.Encrypted.Name: "decrypt them with --encryption-config FILE",
		transform.CodeWouldBePlaintext.Name: "name a provider that encrypts first for that resource in the " +
			"--encryption-config",
	},
	Flags: []transform.Flag{
		{Name: "uids", Default: "keep", Choices: []string{"keep", "new"},
			Usage: "`keep|new`: give v3 objects the UIDs that clients saw, or new ones"},
		{Name: "conflicts", Choices: []string{string(KeepV3), string(TakeV1)},
			Usage: "`keep-v3|take-v1`: keep this record if a v1 and a v3 record differ (default: refuse)"},
		{Name: "conflict", Default: []string{}, Usage: "`KIND[/NS]/NAME=take-v1|keep-v3`: decide one conflict; " +
			"overrides --conflicts; may be repeated"},
		{Name: "keep-v1", Default: false, Usage: "keep the v1 records, locked, like the live migration before " +
			"its cleanup"},
		{Name: "set-api-group", Default: true, Usage: "set CALICO_API_GROUP on Calico's components; =false makes it " +
			"a manual step"},
		{Name: "abort", Default: false, Usage: "undo Calico's own live migration instead: unlock v1, remove the v3 " +
			"objects"},
		{Name: "v3-crds", Usage: "add the v3 CRDs of the release manifest `FILE`"},
	},
	New: func(ctx context.Context, a *transform.Args) (transform.Transform, error) {
		if a.Bool("abort") {
			for _, other := range []string{"uids", "conflicts", "conflict", "keep-v1", "v3-crds"} {
				if a.IsSet(other) {
					return nil, transform.Usagef("--abort does not take --%s", other)
				}
			}
		}
		crds, err := a.ReadFile(ctx, "v3-crds")
		if err != nil {
			return nil, err
		}
		decisions, err := parseDecisions(a.StringSlice("conflict"))
		if err != nil {
			return nil, err
		}
		return New(Options{
			KeepV1: a.Bool("keep-v1"), Conflicts: Conflicts(a.String("conflicts")), NewUIDs: a.String("uids") == "new",
			V3CRDs: crds, V3CRDsPath: a.String("v3-crds"), SetAPIGroup: a.Bool("set-api-group"),
			Abort: a.Bool("abort"), Decisions: decisions,
		}), nil
	},
}

// codes returns the codes of the migration's problems.
func codes() []*finding.Code {
	return []*finding.Code{
		codeCalicoTooOld, codeVersionUnknown, codeTierDrift, codeAdmissionMissing, codeRBACMissing, codeRBACUnknown,
		codeHalfDoneMigration, codeMigrationLeft, codeAbortImpossible, codeAbortLoses, codeNothingToMigrate,
		codeAPIServiceLeft, codeDatastoreLocked,
		codeCRDMissing, codeCRDUnfit, codeConflict, codeNameCollision, codeInvalid, finding.UnknownKey, codeBadUID,
		codeBadMetadata,
		codeDanglingOwner, codePrunedField, codeUnknownKind, codeGenericKind, codeTerminating, codeMetadataDiffers,
		codeTierMissing,
		codeHandleName, codeBlockName, codeIPAMHandleMissing, codeIPAMHandleCount, codeIPAMBlockMissing,
		codeIPAMBlockBad,
		codeIPAMNodeMissing, codeIPAMAffinity, codeIPAMUnchecked, codeIPAMAffinityUnlabelled,
		finding.Encrypted, finding.Undecodable, transform.CodeWouldBePlaintext, transform.CodeUnsupportedLayout,
	}
}

// Obstacles to the whole migration.
var (
	codeCalicoTooOld      = finding.Lookup("calico-too-old")
	codeVersionUnknown    = finding.Lookup("calico-version")
	codeTierDrift         = finding.Lookup("tier-drift")
	codeAdmissionMissing  = finding.Lookup("admission-missing")
	codeRBACMissing       = finding.Lookup("rbac-missing")
	codeRBACUnknown       = finding.Lookup("rbac-unknown")
	codeHalfDoneMigration = finding.Lookup("half-done-migration")
	codeAbortImpossible   = finding.Lookup("abort-impossible")
	codeAbortLoses        = finding.Lookup("abort-loses")
	codeMigrationLeft     = finding.Lookup("migration-left")
	codeNothingToMigrate  = finding.Lookup("nothing-to-migrate")
	codeAPIServiceLeft    = finding.Lookup("apiservice-left")
	codeDatastoreLocked   = finding.Lookup("datastore-locked")
	codeCRDMissing        = finding.Lookup("crd-missing")
	codeCRDUnfit          = finding.Lookup("crd-unfit")
)

// Problems of v1 records and their v3 records.
var (
	codeConflict        = finding.Lookup("conflict")
	codeNameCollision   = finding.Lookup("name-collision")
	codeInvalid         = finding.Lookup("invalid")
	codeBadUID          = finding.Lookup("bad-uid")
	codeBadMetadata     = finding.Lookup("bad-metadata")
	codeDanglingOwner   = finding.Lookup("dangling-owner")
	codePrunedField     = finding.Lookup("unknown-field")
	codeUnknownKind     = finding.Lookup("no-v3-kind")
	codeGenericKind     = finding.Lookup("generic-kind")
	codeTerminating     = finding.Lookup("record-terminating")
	codeMetadataDiffers = finding.Lookup("metadata-differs")
	codeTierMissing     = finding.Lookup("tier-missing")
	codeHandleName      = finding.Lookup("handle-name")
	codeBlockName       = finding.Lookup("block-name")
)

// Warnings of the IPAM cross-check, one per object. The migration copies these records unchanged.
var (
	codeIPAMHandleMissing      = finding.Lookup("ipam-handle-missing")
	codeIPAMHandleCount        = finding.Lookup("ipam-handle-count")
	codeIPAMBlockMissing       = finding.Lookup("ipam-block-missing")
	codeIPAMBlockBad           = finding.Lookup("ipam-block-bad")
	codeIPAMNodeMissing        = finding.Lookup("ipam-node-missing")
	codeIPAMUnchecked          = finding.Lookup("ipam-unchecked")
	codeIPAMAffinity           = finding.Lookup("ipam-affinity-mismatch")
	codeIPAMAffinityUnlabelled = finding.Lookup("ipam-affinity-unlabelled")
)
