package transform_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// begin migration

// Spec is the command "migrate drop-label".
var Spec = transform.Spec{
	Group:    transform.GroupMigrate,
	Name:     "drop-label",
	Usage:    "remove a label from every Pod",
	Examples: "etcdshift migrate drop-label --label team before.db after.db",
	Text:     "Removes the label that --label names from every Pod.",
	Codes: []*finding.Code{codeOwned, finding.Undecodable, finding.Encrypted,
		transform.CodeUnsupportedLayout, transform.CodeWouldBePlaintext},
	Flags: []transform.Flag{{Name: "label", Usage: "remove the label `KEY`"}},
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		if a.String("label") == "" {
			return nil, transform.Usagef("--label takes the key of a label")
		}
		return &dropLabel{label: a.String("label")}, nil
	},
}

// codeOwned is the code for a Pod with an owner, which would set the label again.
var codeOwned = &finding.Code{Name: "label-owned", Level: finding.Error, Title: "a Pod with the label has an owner",
	Meaning: "A controller made the Pod, and would set the label again.",
	Remedy:  "Remove the label where the owner takes it from, then take a new snapshot.",
	Allow:   "The Pod keeps the label.", Allowed: finding.Skipped}

type dropLabel struct{ label string }

// Plan stages the changes. It never writes: transform.Run does, once the whole plan is made.
func (d *dropLabel) Plan(ctx context.Context, v *transform.View) error {
	prefixes, err := v.KubernetesPrefixes(ctx)
	if err != nil {
		return err
	}
	for _, prefix := range prefixes {
		for e, err := range v.Live(ctx, []byte(prefix+"/pods/")) {
			if err != nil {
				return err
			}
			if err := d.change(ctx, v, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// change stages one Pod, or reports why it cannot. A value of any format is edited in place; all
// other bytes stay.
func (d *dropLabel) change(ctx context.Context, v *transform.View, e *transform.Entry) error {
	if e.Undecryptable != nil {
		v.Raise(string(e.Key), transform.Unreadable(e.Undecryptable))
		return nil
	}
	label, err := encoding.Get(e.Value, "metadata", "labels", d.label)
	if err != nil {
		v.Raise(string(e.Key), transform.Unreadable(err))
		return nil
	}
	owners, err := encoding.Get(e.Value, "metadata", "ownerReferences")
	switch {
	case err != nil || label == nil:
		return err
	case owners != nil:
		v.Raise(string(e.Key), codeOwned.Because("the label is %q", label))
		return nil
	}
	value, err := encoding.Set(e.Value, nil, "metadata", "labels", d.label)
	if err != nil {
		return err
	}
	return v.Put(ctx, e.Key, value)
}

// end migration

// begin test

func TestDropLabel(t *testing.T) {
	out := filepath.Join(t.TempDir(), "after.db")
	options := transform.Options{Command: "migrate drop-label", In: "../testdata/kubectl/all.db.gz", Out: out}
	report, err := transform.Run(t.Context(), options, &dropLabel{label: "app"})
	require.NoError(t, err, "%v", report.Problems)
	require.Equal(t, transform.Written, report.Outcome)
	require.Equal(t, transform.Changes{Updated: 1}, report.Changes)
}

// end test

// Run a migration on a recorded snapshot.
func Example() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	report, err := transform.Run(context.Background(), transform.Options{
		Command: "migrate drop-label", In: "../testdata/kubectl/all.db.gz", Out: filepath.Join(folder, "after.db"),
	}, &dropLabel{label: "app"})
	fmt.Println(report.Outcome, report.Changes.Updated, err)
	for _, p := range report.Problems {
		fmt.Println(p.Level, p.Code.Name)
	}
	// Output:
	// written 1 <nil>
	// warning compressed
	// warning raw-file
}

// TestContributing checks that CONTRIBUTING.md shows this migration and its test.
func TestContributing(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "CONTRIBUTING.md"))
	require.NoError(t, err)
	for _, part := range []string{"migration", "test"} {
		_, shown, _ := strings.Cut(string(source), "// begin "+part+"\n\n")
		shown, _, _ = strings.Cut(shown, "\n// end "+part+"\n")
		require.NotEmpty(t, shown)
		require.Contains(t, string(page), shown, "quote what is between the marks %q", part)
	}
	all, err := os.ReadFile(filepath.Join("migrations", "migrations.go"))
	require.NoError(t, err)
	require.Contains(t, string(all), "\t\tstorageversion.Spec,\n", "the line that CONTRIBUTING.md adds a line to")
}
