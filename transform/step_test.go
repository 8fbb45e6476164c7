package transform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// stepsOf plans transforms as steps.
type stepsOf struct {
	steps   []Transform
	reports []*Report
}

func (s *stepsOf) Plan(ctx context.Context, v *View) error {
	s.reports = nil
	for i, t := range s.steps {
		r, err := v.Step(ctx, fmt.Sprint("step ", i), nil, t)
		if err != nil {
			return err
		}
		s.reports = append(s.reports, r)
	}
	return nil
}

// randomStep puts, creates and deletes some keys, each at most once, and compares the view with the
// content after the steps before.
func randomStep(t *testing.T, random *rand.Rand, content map[string]string) planFunc {
	type op struct{ key, value string }
	before := maps.Clone(content)
	var ops []op
	for n := range 10 {
		if key := fmt.Sprintf("/registry/configmaps/ns/%d", n); random.IntN(2) == 0 {
			ops = append(ops, op{key, []string{"", "one", "two"}[random.IntN(3)]})
		}
	}
	for _, o := range ops {
		if content[o.key] = o.value; o.value == "" {
			delete(content, o.key)
		}
	}
	return func(ctx context.Context, v *View) error {
		seen, picked := map[string]string{}, map[string]string{}
		for e, err := range v.Live(ctx, nil) {
			require.NoError(t, err)
			seen[string(e.Key)] = string(e.Value)
		}
		require.Equal(t, before, seen)
		for e, err := range v.Pick(ctx, "/registry", func(*Entry) bool { return true }) {
			require.NoError(t, err)
			picked[string(e.Key)] = string(e.Value)
		}
		require.Equal(t, before, picked)
		for _, o := range ops {
			var err error
			switch key := []byte(o.key); {
			case o.value == "":
				err = v.Delete(ctx, key)
			case before[o.key] == "":
				err = v.Create(ctx, key, []byte(o.value), 0)
			default:
				require.ErrorIs(t, v.Create(ctx, key, []byte(o.value), 0), ErrExists)
				err = v.Put(ctx, key, []byte(o.value))
			}
			require.NoError(t, err)
		}
		return nil
	}
}

// TestSteps checks that the steps of one run leave the same content as separate runs in the same
// order, and each step reports the same changes.
func TestSteps(t *testing.T) {
	folder, random := t.TempDir(), rand.New(rand.NewPCG(15, 1))
	in := etcdtest.Build(t, "put /registry/namespaces/ns x\nput /registry/configmaps/ns/0 one\nput "+
		"/registry/configmaps/ns/1 two\nput /registry/configmaps/ns/2 one\n"+
		"put /registry/configmaps/ns/9 one\ndel /registry/configmaps/ns/9")
	for i := range 60 {
		content, one := live(t, in), &stepsOf{}
		for range 2 + random.IntN(3) {
			one.steps = append(one.steps, randomStep(t, random, content))
		}
		from := in
		var changes, own []Changes
		for n, step := range one.steps {
			out := filepath.Join(folder, fmt.Sprint(i, "-", n))
			r, err := Run(t.Context(), Options{In: from, Out: out}, step)
			require.NoError(t, err)
			from, changes = out, append(changes, r.Changes)
		}
		require.Equal(t, content, live(t, from))
		out := filepath.Join(folder, fmt.Sprint(i))
		r, err := Run(t.Context(), Options{In: in, Out: out}, one)
		require.NoError(t, err)
		require.Equal(t, content, live(t, out))
		for _, r := range one.reports {
			own = append(own, r.Changes)
		}
		require.Equal(t, changes, own)
		again, err := Run(t.Context(), Options{In: in, Out: out + "again"}, one)
		require.NoError(t, err)
		require.Equal(t, r.Output.SHA256, again.Output.SHA256)
	}
}

// TestStepCountsOnce checks that a key that a step first puts unchanged and then changes counts
// once.
func TestStepCountsOnce(t *testing.T) {
	key := "/registry/configmaps/ns/0"
	in := etcdtest.Build(t, "put /registry/namespaces/ns x\nput "+key+" one")
	puts := func(values ...string) planFunc {
		return func(ctx context.Context, v *View) error {
			for _, value := range values {
				require.NoError(t, v.Put(ctx, []byte(key), []byte(value)))
			}
			return nil
		}
	}
	for _, steps := range [][]Transform{
		{puts("two"), puts("one", "three")}, {puts("two", "one", "three"), puts("four")},
		{puts("two"), puts("one"), puts("four")},
		{puts("two", "one", "two", "one", "three"), puts("one", "two")},
	} {
		of := &stepsOf{steps: steps}
		r, err := Run(t.Context(), Options{In: in, Out: filepath.Join(t.TempDir(), "out")}, of)
		require.NoError(t, err)
		require.Equal(t, Changes{Updated: 1}, r.Changes)
		for _, own := range of.reports {
			require.Equal(t, Changes{Updated: 1}, own.Changes)
		}
	}
}

// TestStepReports checks that the report of a run includes the reports of all its steps, steps
// before the restore first; the first saved form of an object stays; codes may be allowed for one
// step only.
func TestStepReports(t *testing.T) {
	f := input(t)
	reporting := func(before, after string, raise *finding.Code) planFunc {
		return func(_ context.Context, v *View) error {
			r := v.Report()
			r.AddStep("%s", before)
			r.BeforeRestore = len(r.Steps)
			r.AddStep("%s", after)
			r.AddStep("both")
			r.Kinds = append(r.Kinds, KindCount{Kind: before})
			r.Saved["/x"] = []byte(`"` + before + `"`)
			v.Raise("/x", raise.Because("%s", before))
			return nil
		}
	}
	r := f.run(t, Options{DryRun: true, Allow: []string{"general"}}, func(ctx context.Context, v *View) {
		one, err := v.Step(ctx, "one", []string{"invalid"}, reporting("a", "b", invalid))
		require.NoError(t, err)
		require.Equal(t, finding.Skipped, one.Problems[0].Outcome)
		two, err := v.Step(ctx, "two", nil, reporting("c", "d", general))
		require.NoError(t, err)
		require.Equal(t, "two", two.Command)
	})
	require.Equal(t, []string{"a", "c", "b", "both", "d"}, r.Steps)
	require.Equal(t, 2, r.BeforeRestore)
	require.Len(t, r.Kinds, 2)
	require.Len(t, r.Problems, 2)
	require.JSONEq(t, `"a"`, string(r.Saved["/x"]))
}

// TestStepChecks checks that the checks of all steps read the output, and keys scrubbed by any step
// are gone.
func TestStepChecks(t *testing.T) {
	f := input(t)
	var checked []string
	step := func(key string, wrong error) planFunc {
		return func(ctx context.Context, v *View) error {
			v.Make(Output{Scrub: func(k []byte) bool { return string(k) == key },
				Check: func(ctx context.Context, out *inspect.Reader) error {
					e, err := out.Get(ctx, []byte(key))
					require.NoError(t, err)
					require.Nil(t, e)
					checked = append(checked, key)
					return wrong
				}})
			return v.Delete(ctx, []byte(key))
		}
	}
	_, err := Run(t.Context(), Options{In: f.in, Out: f.out},
		&stepsOf{steps: []Transform{step("/a", nil), step("/b", nil), planFunc(
			func(context.Context, *View) error { return nil })}})
	require.NoError(t, err)
	require.Equal(t, []string{"/a", "/b"}, checked)
	text := fileText(t, f.out)
	require.NotContains(t, text, "/a")
	require.NotContains(t, text, "/b")
	wrong := errors.New("wrong")
	_, err = Run(t.Context(), Options{In: f.in, Out: f.out + "2"},
		&stepsOf{steps: []Transform{step("/a", wrong), step("/b", nil)}})
	require.ErrorIs(t, err, wrong)
	require.NoFileExists(t, f.out+"2")
}

// TestStepsKeepEncryption checks that a value moved by one step is not moved by a later step to a
// key with plaintext.
func TestStepsKeepEncryption(t *testing.T) {
	by := encrypter(t, "secretbox=a")
	f := secretsOf(t, nil)
	move := func(from, to string) planFunc {
		return func(ctx context.Context, v *View) error {
			e, err := v.Get(ctx, []byte(from))
			require.NoError(t, err)
			_, err = v.Derive(ctx, []byte(from), []byte(to), e.Value)
			return err
		}
	}
	r, err := Run(t.Context(), Options{In: f.in, Out: f.out, Encryption: by}, &stepsOf{steps: []Transform{
		move(secretsDir+"plain", secretsDir+"moved"), move(secretsDir+"moved", "/registry/configmaps/ns/clear"),
	}})
	require.ErrorIs(t, err, ErrRefused)
	require.Equal(t, CodeWouldBePlaintext.Name, r.Problems[0].Code.Name)
}
