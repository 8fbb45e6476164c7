package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// calicoCRD defines ClusterInformations of a group of Calico.
func calicoCRD(group, version, extra string) record {
	of := strings.NewReplacer("widgets.example.com", "clusterinformations."+group, "example.com", group, "widgets",
		"clusterinformations", "Widget", "ClusterInformation", `"v1"`, `"`+version+`"`)
	r := crd(extra, noConversion, `["v1"]`)
	return record{of.Replace(r.key), strings.Replace(of.Replace(r.value), `"apiextensions.k8s.io/`+version+`"`,
		`"apiextensions.k8s.io/v1"`, 1)}
}

// TestCalicoMoves: while Calico migrates, findings advise to leave the APIService to the migration.
func TestCalicoMoves(t *testing.T) {
	const hint = "leave the APIService to the migration"
	on := base(t)
	service := apiServiceObject("v3.projectcalico.org",
		`{"group":"projectcalico.org","version":"v3","service":{"namespace":"calico-apiserver","name":"calico-api"}}`,
		`{}`)
	v1, v3 := calicoCRD("crd.projectcalico.org", "v1", ""), calicoCRD("projectcalico.org", "v3", "")
	live := object("migration.projectcalico.org/datastoremigrations/team/v1-to-v3",
		"migration.projectcalico.org/v1beta1", "DatastoreMigration", "")
	complete := object("migration.projectcalico.org/datastoremigrations/team/v1-to-v3",
		"migration.projectcalico.org/v1beta1", "DatastoreMigration", `},"status":{"phase":"Complete"`)
	for name, tc := range map[string]struct {
		with  []record
		moves bool
	}{
		"v1 alone":             {only(service, v1), false},
		"both groups":          {only(service, v1, v3), true},
		"a DatastoreMigration": {only(service, v1, live), true},
		"a complete one":       {only(service, v1, complete), false},
	} {
		t.Run(name, func(t *testing.T) {
			found := examined(t, written(t, on, append(healthy(), tc.with...)...), Options{}).Of(codeAPIServiceGone)
			require.Len(t, found, 1)
			require.Equal(t, tc.moves, strings.Contains(found[0].Reason, hint), found[0].Reason)
		})
	}
	going := calicoCRD("crd.projectcalico.org", "v1",
		`,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x/y"]`)
	found := examined(t, written(t, on, append(healthy(), going, v3)...), Options{}).Of(codeCRDTerminating)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Reason, hint)
}

// TestCalicoEmptied: after an abort of the live migration, API servers serve an empty new group
// while the data is in the old one.
func TestCalicoEmptied(t *testing.T) {
	local := apiServiceObject("v3.projectcalico.org", `{"group":"projectcalico.org","version":"v3"}`, `{}`)
	live := object("migration.projectcalico.org/datastoremigrations/v1-to-v3", "migration.projectcalico.org/v1beta1",
		"DatastoreMigration", "")
	done := object("migration.projectcalico.org/datastoremigrations/v1-to-v3", "migration.projectcalico.org/v1beta1",
		"DatastoreMigration", `},"status":{"phase":"Complete"`)
	v3 := func(resource, kind string) record {
		return object("projectcalico.org/"+resource+"/default", "projectcalico.org/v3", kind, "")
	}
	info, tier, pool := v3("clusterinformations", "ClusterInformation"), v3("tiers", "Tier"), v3("ippools", "IPPool")
	const v1 = " of projectcalico.org, and 63 objects of crd.projectcalico.org"
	for name, tc := range map[string]struct {
		fixture string
		with    []record
		says    string
	}{
		"of Calico's API server":                   {"before", nil, ""},
		"of the API servers":                       {"before", only(local), "0 objects" + v1},
		"of no APIService":                         {"before", only(record{local.key, ""}), "0 objects" + v1},
		"in the middle":                            {"before", only(local, live), ""},
		"with a complete migration":                {"before", only(local, done), "0 objects" + v1},
		"with a tier that is protected":            {"before", only(local, tier), "1 object" + v1},
		"with tiers and ClusterInformation":        {"before", only(local, tier, info), "2 objects" + v1},
		"with an object that could not be deleted": {"before", only(local, tier, pool), "2 objects" + v1},
		"with data":                                {"before", only(local, info, tier, pool), ""},
		"migrated":                                 {"after", nil, ""},
		"without v3 definitions": {"before",
			only(local, record{"apiextensions.k8s.io/customresourcedefinitions/clusterinformations.projectcalico.org",
				""}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := written(t, opened(t, "../../testdata/calico/"+tc.fixture+".db.gz"), tc.with...)
			found := examined(t, s, Options{}).Of(codeCalicoEmpty)
			require.Equal(t, tc.says != "", len(found) == 1)
			if tc.says != "" {
				of := "apiregistration.k8s.io/apiservices/v3.projectcalico.org"
				if name == "of no APIService" {
					of = "apiextensions.k8s.io/customresourcedefinitions/clusterinformations.projectcalico.org"
				}
				require.Equal(t, "/registry/"+of, found[0].Key)
				require.Equal(t, tc.says, found[0].Reason)
			}
		})
	}
}

// TestCalicoHeld: a live migration under way is reported, and so is a lock that no migration
// releases.
func TestCalicoHeld(t *testing.T) {
	migration := func(name, rest string) []record {
		return only(object("migration.projectcalico.org/datastoremigrations/"+name, "migration.projectcalico.org/v1",
			"DatastoreMigration", rest))
	}
	info := func(group, version, ready string) []record {
		return only(object(group+"/clusterinformations/default", group+"/"+version, "ClusterInformation",
			`},"spec":{"datastoreReady":`+ready))
	}
	v1, v3 := info(calicoV1, "v1", "false"), info(calicoV3, "v3", "false")
	const key, lock, at = "migration.projectcalico.org/datastoremigrations/v1-to-v3", "/clusterinformations/default",
		`},"status":{"phase":`
	for name, tc := range map[string]struct {
		with []record
		says map[string]string // by key
	}{
		"none":            {},
		"not begun":       {with: migration("v1-to-v3", at+`"Pending"`)},
		"of another name": {with: migration("v3-to-v1", at+`"Migrating"`)},
		"complete": {with: slices.Concat(migration("v1-to-v3", at+`"Complete"`), v1,
			info(calicoV3, "v3", "true"))},
		"draining": {slices.Concat(migration("v1-to-v3", at+`"Pending","datastoreLockedAt":"2026-01-01T00:00:00Z"`),
			v1), map[string]string{key: `phase "Pending"`}},
		"waiting": {slices.Concat(migration("v1-to-v3",
			at+`"WaitingForConflictResolution","message":"Tier/a: v3 resource exists"`), v1, v3),
			map[string]string{key: `phase "WaitingForConflictResolution": Tier/a: v3 resource exists`}},
		"being aborted": {slices.Concat(migration("v1-to-v3", `,"deletionTimestamp":"2026-01-01T00:00:00Z"`+at+
			`"Migrating"`), v1, v3),
			map[string]string{key: `phase "Migrating", and being aborted`}},
		"v1 locked": {v1, map[string]string{calicoV1 +
			lock: "spec.datastoreReady is false, and no live migration is under way"}},
		"both locked": {slices.Concat(v1, v3), map[string]string{calicoV1 + lock: "is false",
			calicoV3 + lock: "is false"}},
		"v1 kept, v3 ready": {with: slices.Concat(v1, info(calicoV3, "v3", "true"))},
		"v1 ready":          {with: slices.Concat(info(calicoV1, "v1", "true"), v3)},
		"failed, locked": {slices.Concat(migration("v1-to-v3", at+`"Failed"`), v1),
			map[string]string{calicoV1 + lock: "is false"}},
	} {
		t.Run(name, func(t *testing.T) {
			report := examined(t, written(t, base(t), append(healthy(), tc.with...)...), Options{})
			found := append(report.Of(codeCalicoMigrating), report.Of(codeCalicoLocked)...)
			require.Len(t, found, len(tc.says))
			for _, f := range found {
				want := tc.says[strings.TrimPrefix(f.Key, "/registry/")]
				require.NotEmpty(t, want, f.Key)
				require.Contains(t, f.Reason, want)
			}
		})
	}
}
