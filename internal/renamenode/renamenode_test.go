package renamenode_test

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/renamenode"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

const recorded = "../../testdata/calico/before.db.gz"

// renaming is the transform for pairs OLD=NEW.
func renaming(t *testing.T, pairs ...string) transform.Transform {
	t.Helper()
	to, err := renamenode.Spec.New(t.Context(), &transform.Args{Rest: pairs})
	require.NoError(t, err)
	return to
}

// seeded plans a transform after objects were created, "KEY: OBJECT" in YAML.
type seeded struct {
	objects string
	then    transform.Transform
}

func (s seeded) Plan(ctx context.Context, v *transform.View) error {
	objects := decoded(s.objects)
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		value, err := json.Marshal(objects[key])
		if err != nil {
			return err
		}
		if err := v.Create(ctx, []byte("/registry/"+key), value, 0); err != nil {
			return err
		}
	}
	return s.then.Plan(ctx, v)
}

func decoded(objects string) map[string]any {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(objects), &out); err != nil {
		panic(err)
	}
	return out
}

// run runs a transform and returns the records of its output, without generations.
func run(t *testing.T, in string, to transform.Transform, allow ...string) (*transform.Report, map[string]any, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "after.db")
	report, err := transform.Run(t.Context(), transform.Options{Command: "test", In: in, Out: out, Allow: allow}, to)
	if err != nil {
		require.ErrorIs(t, err, transform.ErrRefused)
		return report, nil, ""
	}
	return report, records(t, out), out
}

func records(t *testing.T, path string) map[string]any {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	all := map[string]any{}
	for rec, err := range s.Live(t.Context(), []byte("/registry/")) {
		require.NoError(t, err)
		content, err := native.Decode(rec.Value)
		if err != nil {
			all[string(rec.Key)] = string(rec.Value)
			continue
		}
		if metadata, is := content["metadata"].(map[string]any); is {
			delete(metadata, "generation")
		}
		all[string(rec.Key)] = content
	}
	return all
}

// problems are those of a report above a warning, and the warnings of old names, as "code key".
func problems(r *transform.Report) (out []string) {
	for _, p := range r.Problems {
		if p.Level == finding.Error || p.Code.Name == "old-node-name" || p.Code.Name == "attachment-name" {
			out = append(out, p.Code.Name+" "+p.Key+": "+p.Reason)
		}
	}
	return out
}

// TestThereAndBack: a rename and its inverse leave every record as it was, and so does a swap that
// is done twice.
func TestThereAndBack(t *testing.T) {
	before := records(t, unpacked(t))
	for _, pairs := range [][2][]string{
		{{"node-a=edge-1", "node-b=edge-2"}, {"edge-2=node-b", "edge-1=node-a"}},
		{{"node-a=node-b", "node-b=node-a"}, {"node-a=node-b", "node-b=node-a"}},
		{{"node-a=node-b", "node-b=node-c"}, {"node-b=node-a", "node-c=node-b"}},
	} {
		there, changed, out := run(t, recorded, renaming(t, pairs[0]...))
		require.Equal(t, transform.Written, there.Outcome, "%v", there.Problems)
		require.NotEqual(t, before, changed)
		back, again, _ := run(t, out, renaming(t, pairs[1]...))
		require.Equal(t, transform.Written, back.Outcome)
		require.Equal(t, before, again)
	}
}

// unpacked is the recorded snapshot as a run that changes nothing writes it.
func unpacked(t *testing.T) string {
	t.Helper()
	_, _, out := run(t, recorded, seeded{then: nothing{}})
	return out
}

type nothing struct{}

func (nothing) Plan(context.Context, *transform.View) error { return nil }

func TestAgain(t *testing.T) {
	_, _, out := run(t, recorded, renaming(t, "node-a=edge-1"))
	report, _, _ := run(t, out, renaming(t, "node-a=edge-1"))
	require.Contains(t, strings.Join(problems(report), "\n"), "no-such-node /registry/minions/node-a")
}

func TestTaken(t *testing.T) {
	report, _, _ := run(t, recorded, renaming(t, "node-a=node-b"))
	require.Equal(t, transform.Refused, report.Outcome)
	require.Contains(t, strings.Join(problems(report), "\n"), "name-taken /registry/minions/node-a")
	require.NotContains(t, strings.Join(problems(report), "\n"), "old-node-name /registry/minions/node-a", "the name itself")
}

func TestUsage(t *testing.T) {
	for _, words := range [][]string{{"a"}, {"a="}, {"=b"}, {"a=a"}, {"a=b", "a=c"}, {"a=c", "b=c"}, {"A=b"}, {"a=b_"}, nil} {
		_, err := renamenode.Spec.New(t.Context(), &transform.Args{Rest: words})
		require.ErrorAs(t, err, new(*transform.UsageError), "%q", words)
	}
}

// TestFields renames a node in one object of each sort; what stays is named.
func TestFields(t *testing.T) {
	var before, after string
	for pair := range strings.SplitSeq(fields, "---\n") {
		was, is, changes := strings.Cut(pair, "# after\n")
		if before += was; !changes {
			is = was
		}
		after += is
	}
	report, all, _ := run(t, recorded, seeded{before, renaming(t, "node-a=edge-1")})
	require.Equal(t, transform.Written, report.Outcome, "%v", report.Problems)
	want := decoded(after)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		text, err := json.Marshal(want[key])
		require.NoError(t, err)
		object, err := native.Decode(text)
		require.NoError(t, err)
		require.Equal(t, object, all["/registry/"+key], key)
	}
	for key := range decoded(before) {
		if want[key] == nil {
			require.NotContains(t, all, "/registry/"+key)
		}
	}
	var named []string
	for _, line := range problems(report) {
		if strings.Contains(line, "/seeded") {
			named = append(named, line)
		}
	}
	require.Equal(t, []string{
		"attachment-name /registry/volumeattachments/seeded: it is not the name of a volume on the node node-a",
		"old-node-name /registry/configmaps/kube-system/seeded: data.nodeName",
		"old-node-name /registry/pods/kube-system/seeded: metadata.annotations.note, spec.containers[0].args[0]",
	}, named)
}
