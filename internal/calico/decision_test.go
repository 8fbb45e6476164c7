package calico

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// TestDecisions: a decision for a single object overrides the choice for all conflicts.
func TestDecisions(t *testing.T) {
	in := newInput(t)
	pool, web := recordsV3+"ippools/lb-pool", recordsV3+"networkpolicies/team-a/legacy-np"
	in.put(secure, there("Tier", "security", "", `{"order":42,"defaultAction":"Deny"}`))
	in.put(pool, there("IPPool", "lb-pool", "", `{"cidr":"10.99.0.0/16"}`))
	in.put(web, there("NetworkPolicy", "legacy-np", `"namespace":"team-a",`, `{"tier":"default","order":7}`))
	path := in.write()

	got := planOn(t, path, New(Options{Decisions: Decisions{"Tier/security": TakeV1, "ippools/lb-pool": KeepV3}}))
	require.ErrorIs(t, got.err, transform.ErrRefused, "one of three is not decided")
	require.True(t, got.has(finding.Error, codeConflict.Name, recordsV1+"networkpolicies/team-a/default.legacy-np"))

	for name, o := range map[string]Options{
		"the rest by --conflicts": {Conflicts: KeepV3, Decisions: Decisions{"tiers/security": TakeV1}},
		"each by its own": {Decisions: Decisions{"Tier/security": TakeV1, "IPPool/lb-pool": KeepV3,
			"networkpolicy/team-a/legacy-np": KeepV3}},
		"by the name of the store": {Decisions: Decisions{"Tier/security": TakeV1, "IPPool/lb-pool": KeepV3,
			"NetworkPolicy/team-a/default.legacy-np": KeepV3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := planOn(t, path, New(o))
			require.EqualValues(t, 200, at(got.written(t, secure), "spec", "order"))
			require.Equal(t, got.in[pool], got.out[pool])
			require.Equal(t, got.in[web], got.out[web])
			decided := map[string]finding.Outcome{}
			for _, p := range got.Problems {
				if p.Code.Name == codeConflict.Name {
					decided[p.Key] = p.Outcome
				}
			}
			require.Len(t, decided, 3)
			require.Regexp(t, `^the v1 record takes its place \(--conflict [Tt]iers?/security=take-v1\)$`,
				decided[recordsV1+"tiers/security"])
		})
	}
}

// TestDecisionsOfNoConflict: a decision about a record without a conflict is a warning; a decision
// about no record is an error.
func TestDecisionsOfNoConflict(t *testing.T) {
	in := newInput(t)
	in.put(secure, there("Tier", "security", "", `{"order":42,"defaultAction":"Deny"}`))
	path := in.write()
	got := planOn(t, path, New(Options{Decisions: Decisions{"Tier/security": TakeV1, "Tier/no-order": TakeV1}}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.reason(t, codeConflict.Name, recordsV1+"tiers/no-order"), "has no effect")

	for word, says := range map[string]string{
		"Tier/securty":             "did you mean Tier/security?",
		"Tier/security.of.another": "conflicts are Tier/security",
		"Tier/team-a/security":     "conflicts are Tier/security",
	} {
		got := planOn(t, path, New(Options{Decisions: Decisions{word: TakeV1}}))
		wrong := (*transform.UsageError)(nil)
		require.ErrorAs(t, got.err, &wrong, word)
		require.ErrorContains(t, got.err, says)
	}
	got = planOn(t, recorded(t, "before.db"), New(Options{Decisions: Decisions{"Tier/x": KeepV3}}))
	require.ErrorContains(t, got.err, "there is no conflict")
}

func TestParseDecisions(t *testing.T) {
	got, err := parseDecisions([]string{"Tier/a=take-v1", "NetworkPolicy/ns/b=keep-v3", "Tier/a=take-v1"})
	require.NoError(t, err)
	require.Equal(t, Decisions{"Tier/a": TakeV1, "NetworkPolicy/ns/b": KeepV3}, got)
	for _, words := range [][]string{{"Tier/a"}, {"Tier=take-v1"}, {"Tier/a=v1"}, {"Tier//a=take-v1"},
		{"Tier/a/b/c=take-v1"}, {"=take-v1"}, {"Tier/a=take-v1", "Tier/a=keep-v3"}} {
		_, err := parseDecisions(words)
		require.Error(t, err, words)
	}
}

// TestDecisionsAreNotEmpty: an object has a kind and a name.
func TestDecisionsAreNotEmpty(t *testing.T) {
	got, err := parseDecisions(nil)
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = parseDecisions([]string{"/security=take-v1"})
	require.ErrorContains(t, err, "it takes KIND[/NAMESPACE]/NAME=take-v1")
}
