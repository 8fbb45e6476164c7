package graft

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestDecisions checks decisions about single objects: each overrides the decision about all, and a
// decision about no object of the archive refuses the run.
func TestDecisions(t *testing.T) {
	mine := func(line string) string { return strings.Replace(line, `\"uid`, `\"generation\":2,\"uid`, 1) }
	all := []string{core("Namespace", "namespaces", "", "a", ""), widgets("v1"),
		core("ConfigMap", "configmaps", "a", "c", ""),
		core("Secret", "secrets", "a", "s", ""), widget("v1")}
	theirs := []string{all[0], all[1]}
	for _, line := range all[2:] {
		theirs = append(theirs, mine(line))
	}
	in, from := build(t, all...), build(t, theirs...)
	const cm, secret, custom = "/registry/configmaps/a/c", "/registry/secrets/a/s", "/registry/example.com/widgets/a/w"
	for flags, taken := range map[string][]string{
		"take keep:cm/a/c":                            {secret, custom},
		"keep take:secret/a/s take:widget/a/w":        {secret, custom},
		"keep take:configmaps/a/c keep:cm/a/c!":       nil,
		"take:secret/a/s take:cm/a/c keep:wdg/a/w!":   nil,
		"take:secret/a/s take:cm/a/c take:widget/a/w": {cm, secret, custom},
		"take:secret/a/s":                             nil,
		"take keep:cm/a/other":                        nil,
	} {
		flags, usage := strings.CutSuffix(flags, "!")
		line := "--on-conflict=" + strings.ReplaceAll(flags, " ", ",")
		r, out, err := importing(t, in, from, line, "not-an-archive")
		if taken == nil {
			require.Error(t, err, flags)
			var mistake *transform.UsageError
			require.Equal(t, usage, errors.As(err, &mistake), "%s: %v", flags, err)
			continue
		}
		require.NoError(t, err, "%s: %v", flags, problems(r))
		require.Len(t, r.Problems, 4, flags)
		before, is := live(t, in), live(t, out)
		for _, key := range []string{cm, secret, custom} {
			require.Equal(t, slices.Contains(taken, key), before[key] != is[key], "%s: %s", flags, key)
		}
	}
	_, err := parseDecisions([]string{"take", "keep"})
	require.ErrorContains(t, err, "is both keep and take")
	for _, flag := range []string{"other", "take:", "take:cm", "keep:cm/", "keep:cm/a/", "keep:cm/a/b/c", "take:/c"} {
		_, err := parseDecisions([]string{flag})
		require.ErrorContains(t, err, "it takes keep, take,", flag)
	}
	for flag, want := range map[string]string{"take:cm/c": "TYPE/NAMESPACE/NAME", "take:ns/a/b": "give TYPE/NAME",
		"take:nosuch/a/b": "nosuch"} {
		_, _, err := importing(t, in, from, "--on-conflict="+flag, "not-an-archive")
		require.ErrorContains(t, err, want)
	}
}

// TestOnConflict checks the two decisions.
func TestOnConflict(t *testing.T) {
	in := build(t, core("Namespace", "namespaces", "", "a", ""), svc("x", "10.0.0.5", 30001),
		address("10.0.0.5", "services", "a", "x"), ranges("servicenodeports", "30000-32767", []byte{2}),
		owned("c", "Service", "x"))
	theirs := strings.ReplaceAll(svc("x", "10.0.0.6", 30003), "u-x", "u-new")
	from := build(t, theirs)
	r, out, err := importing(t, in, from, "--on-conflict=keep", "not-an-archive")
	require.NoError(t, err)
	require.Equal(t, []string{"warning key-exists services/specs/a/x"}, problems(r))
	require.Equal(t, transform.Unchanged, r.Outcome)
	require.Equal(t, live(t, in), live(t, out))

	r, _, err = importing(t, in, from, "--on-conflict=take", "not-an-archive")
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, []string{"error owner-outside configmaps/a/c", "warning key-exists services/specs/a/x"},
		problems(r))
	r, out, err = importing(t, in, from, "--on-conflict=take", "not-an-archive", "owner-outside")
	require.NoError(t, err)
	require.Equal(t, 1, transformtest.Section[Imported](r).Import.Types[0].Replaced)
	got := live(t, out)
	require.Equal(t, live(t, from)["/registry/services/specs/a/x"], got["/registry/services/specs/a/x"])
	require.NotContains(t, got, "/registry/ipaddresses/10.0.0.5")
	require.Contains(t, got["/registry/ipaddresses/10.0.0.6"].Value, `"name":"x"`)
	require.Contains(t, got["/registry/ranges/servicenodeports"].Value, `"data":"CA=="`)

	ctx := context.Background()
	a, err := snapshot.Open(ctx, in, snapshot.Config{})
	require.NoError(t, err)
	defer a.Close()
	b, err := snapshot.Open(ctx, out, snapshot.Config{})
	require.NoError(t, err)
	defer b.Close()
	was, err := a.Get(ctx, []byte("/registry/services/specs/a/x"))
	require.NoError(t, err)
	is, err := b.Get(ctx, []byte("/registry/services/specs/a/x"))
	require.NoError(t, err)
	require.Equal(t, was.CreateRevision, is.CreateRevision, "an update, as on a live server")
	require.Equal(t, was.Version+1, is.Version)
}
