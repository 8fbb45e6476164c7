package calico

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	aggregated = "/registry/apiregistration.k8s.io/apiservices/v3.projectcalico.org"
	automatic  = "/registry/apiregistration.k8s.io/apiservices/v1.crd.projectcalico.org"
)

func dropAPIService(ctx context.Context, v *transform.View) error {
	return storeOf(ctx, v).removeAggregatedAPIService()
}

// TestAggregatedAPIService: the APIService that sends v3 to Calico's API server is deleted, even
// with the label of kube-apiserver's own. The report keeps it without credentials.
func TestAggregatedAPIService(t *testing.T) {
	recorded := func(name string) string { return contents(t, recorded(t, name))[aggregated] }
	before, own := recorded("before.db"), recorded("after.db")
	require.Contains(t, own, automanagedLabel)
	with := func(path string, value map[string]any) string {
		obj := objectOf(t, before)
		set(obj, path, value)
		out, err := json.Marshal(obj)
		require.NoError(t, err)
		return string(out)
	}
	cbor, err := encoding.EncodeObject(objectOf(t, before), encoding.FormatCBOR)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		value, saved, problem string
		stays                 bool
	}{
		"as recorded": {value: before, saved: `"name":"v3.projectcalico.org"`},
		"labelled": {value: with("metadata.labels", map[string]any{automanagedLabel: "true"}),
			saved: automanagedLabel},
		"CBOR": {value: string(cbor), saved: `"name":"v3.projectcalico.org"`},
		"with a credential": {value: with("metadata.annotations",
			map[string]any{"token": "hunter2-MARK", "note": "kept"}), saved: `"annotations":{"note":"kept"}`},
		"kube-apiserver's own": {value: own, stays: true},
		"none":                 {stays: true},
		"undecodable":          {value: "{", problem: finding.Undecodable.Name},
		"encrypted":            {value: "k8s:enc:secretbox:v1:k:00", problem: finding.Encrypted.Name},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			if in.put(aggregated, []byte(tt.value)); tt.value == "" {
				in = newInput(t)
				in.del(aggregated)
			}
			r := planOn(t, in.write(), planFunc(dropAPIService))
			switch saved := string(r.Saved[aggregated]); {
			case tt.problem != "":
				require.ErrorIs(t, r.err, transform.ErrRefused)
				require.Equal(t, []string{"error " + tt.problem + " " + aggregated}, r.problems())
			case tt.stays:
				require.NoError(t, r.err)
				require.Empty(t, r.changed())
				require.Empty(t, r.Saved)
			default:
				require.NoError(t, r.err)
				require.Equal(t, []string{"-" + aggregated}, r.changed())
				require.Contains(t, saved, tt.saved)
				require.NotContains(t, saved, "MARK")
				require.Equal(t, strings.Contains(tt.value, "MARK"), slices.Contains(r.Steps,
					"the report keeps "+aggregated+" without its credentials, such as the last-applied annotation: "+
						"the input has them"))
				if tt.value == before {
					require.JSONEq(t, before, saved)
				}
			}
		})
	}
}

// TestAPIServiceLeft: without the v1 group, the aggregated APIService stays and is reported with a
// remedy.
func TestAPIServiceLeft(t *testing.T) {
	before := contents(t, recorded(t, "before.db"))
	without := func(in *input) {
		for _, k := range kinds() {
			in.del(crdDir + k.Plural + "." + groupV3)
		}
	}
	for name, tt := range map[string]struct {
		value  string
		change func(in *input)
		reason string
		step   string
	}{
		"before the CRDs": {value: before[aggregated],
			reason: "it sends projectcalico.org/v3 to Service calico-apiserver/calico-api instead of the CRDs " +
				"of that group",
			step: "after the restore, delete APIService v3.projectcalico.org (kubectl delete apiservice " +
				"v3.projectcalico.org): kube-apiserver then serves the CRDs of projectcalico.org"},
		"no CRDs": {value: before[aggregated], change: without,
			reason: "it sends projectcalico.org/v3 to Service calico-apiserver/calico-api, and the snapshot has no " +
				"CRD of that group: Calico keeps its data elsewhere"},
		"encrypted": {value: "k8s:enc:secretbox:v1:k:00", reason: "cannot be read"},
		"automatic": {value: contents(t, recorded(t, "after.db"))[aggregated]},
		"none":      {},
	} {
		t.Run(name, func(t *testing.T) {
			in := &input{t: t, from: recorded(t, "after-cleanup.db")}
			in.del(aggregated)
			if tt.value != "" {
				in.put(aggregated, []byte(tt.value))
			}
			if tt.change != nil {
				tt.change(in)
			}
			r := planOn(t, in.write(), New(Options{SetAPIGroup: true}))
			require.NoError(t, r.err, "%v", r.Problems)
			require.Equal(t, transform.Unchanged, r.Outcome)
			require.True(t, r.has(finding.Warning, codeNothingToMigrate.Name, ""))
			require.Equal(t, tt.reason != "", r.has(finding.Warning, codeAPIServiceLeft.Name, aggregated))
			if tt.reason != "" {
				require.Contains(t, r.reason(t, codeAPIServiceLeft.Name, aggregated), tt.reason)
			}
			if tt.step == "" {
				require.Empty(t, r.byHand())
			} else {
				require.Contains(t, r.byHand(), tt.step)
			}
		})
	}
}

// TestUndecodableBesideNothing: a value no API server can read refuses the run once, even if there
// is nothing to migrate.
func TestUndecodableBesideNothing(t *testing.T) {
	const secret, encrypted = "/registry/secrets/default/cut", "/registry/secrets/default/encrypted"
	in := &input{t: t, from: recorded(t, "after-cleanup.db")}
	in.put(secret, []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"cut"`))
	in.put(encrypted, []byte("k8s:enc:secretbox:v1:k:00"))
	in.put(aggregated, []byte("{"))
	in.put(recordsV3+"tiers/default", []byte("{"))
	r := planOn(t, in.write(), New(Options{SetAPIGroup: true}))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.ElementsMatch(t, []string{
		"error undecodable " + aggregated, "error undecodable " + recordsV3 + "tiers/default",
		"error undecodable " + secret,
		"warning nothing-to-migrate ",
	}, r.problems())
}

func removing(ctx context.Context, v *transform.View) error {
	return withCRDs(ctx, v, (*crdSet).removeV1)
}

func TestRemoveV1(t *testing.T) {
	in := newInput(t)
	crd := contents(t, in.from)[crdDir+"tiers.crd.projectcalico.org"]
	empty := crdDir + "globalalerts.crd.projectcalico.org"
	in.put(empty, []byte(strings.ReplaceAll(crd, "tiers", "globalalerts")))
	in.del(crdDir + "bgpfilters.crd.projectcalico.org") // its records must not stay behind
	r := planOn(t, in.write(), planFunc(removing))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning no-v3-kind " + empty}, r.problems())
	for key := range r.in {
		gone := strings.HasPrefix(key, "/registry/crd.projectcalico.org/") ||
			strings.HasSuffix(key, ".crd.projectcalico.org")
		require.Equal(t, !gone, r.out[key] != "", key)
	}
	require.NotContains(t, r.out, automatic)
	require.Len(t, r.changed(), 63+22+1)
}

// TestRemoveV1Nothing: nothing changes if no v1 group is left.
func TestRemoveV1Nothing(t *testing.T) {
	r := planOn(t, recorded(t, "after-cleanup.db"), planFunc(removing))
	require.NoError(t, r.err)
	require.Equal(t, transform.Unchanged, r.Outcome)
	require.Empty(t, r.Problems)
}
