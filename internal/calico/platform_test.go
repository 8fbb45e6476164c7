package calico

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// registry is the layout of the recorded snapshots.
var registry = keys.Kubernetes{Prefix: "/registry"}

func storeOf(ctx context.Context, v *transform.View) *store { return &store{v, ctx, registry} }

// planFunc is a function used as a transform.
type planFunc func(ctx context.Context, v *transform.View) error

func (f planFunc) Plan(ctx context.Context, v *transform.View) error { return f(ctx, v) }

// recorded unpacks a snapshot of testdata/calico: before.db, after.db or after-cleanup.db.
func recorded(t testing.TB, name string) string {
	t.Helper()
	packed, err := os.Open(filepath.Join("..", "..", "testdata", "calico", name+".gz"))
	require.NoError(t, err)
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = io.Copy(out, plain)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	return path
}

// input is a recorded snapshot with changes by a test.
type input struct {
	t     testing.TB
	from  string
	edits []func(ctx context.Context, v *transform.View) error
}

// newInput starts with before.db.
func newInput(t testing.TB) *input { return &input{t: t, from: recorded(t, "before.db")} }

func (in *input) put(key string, value []byte) {
	in.edits = append(in.edits, func(ctx context.Context,
		v *transform.View) error {
		return v.Put(ctx, []byte(key), value)
	})
}

func (in *input) del(key string) {
	in.edits = append(in.edits, func(ctx context.Context,
		v *transform.View) error {
		return v.Delete(ctx, []byte(key))
	})
}

// delPrefix deletes all keys with the given prefix.
func (in *input) delPrefix(prefix string) {
	in.edits = append(in.edits, func(ctx context.Context, v *transform.View) error {
		for e, err := range v.Live(ctx, []byte(prefix)) {
			if err != nil {
				return err
			}
			if err := v.Delete(ctx, e.Key); err != nil {
				return err
			}
		}
		return nil
	})
}

// edit changes a stored JSON object.
func (in *input) edit(key string, change func(obj map[string]any)) {
	in.edits = append(in.edits, func(ctx context.Context, v *transform.View) error {
		e, err := v.Get(ctx, []byte(key))
		require.NoError(in.t, err)
		require.NotNil(in.t, e, "no %s in the snapshot", key)
		var obj map[string]any
		require.NoError(in.t, json.Unmarshal(e.Value, &obj))
		change(obj)
		value, err := json.Marshal(obj)
		require.NoError(in.t, err)
		return v.Put(ctx, []byte(key), append(value, '\n'))
	})
}

// native stores a built-in object like kube-apiserver: in protobuf.
func (in *input) native(key, apiVersion, kind string, obj runtime.ProtobufMarshaller) {
	in.put(key, envelope(in.t, apiVersion, kind, obj))
}

// envelope encodes an object of k8s.io/api like kube-apiserver.
func envelope(t testing.TB, apiVersion, kind string, obj runtime.ProtobufMarshaller) []byte {
	t.Helper()
	raw := make([]byte, obj.Size())
	n, err := obj.MarshalTo(raw)
	require.NoError(t, err)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw[:n]}
	body, err := unknown.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), body...)
}

// write writes the changed snapshot and returns its path.
func (in *input) write() string {
	in.t.Helper()
	out := filepath.Join(in.t.TempDir(), "input.db")
	_, err := transform.Run(context.Background(), transform.Options{Command: "test", In: in.from, Out: out},
		planFunc(func(ctx context.Context, v *transform.View) error {
			for _, edit := range in.edits {
				if err := edit(ctx, v); err != nil {
					return err
				}
			}
			return nil
		}))
	require.NoError(in.t, err)
	return out
}

// result is the result of a run.
type result struct {
	*transform.Report
	err error
	in  map[string]string
	out map[string]string // nil if nothing was written
}

// planOn runs a plan on the snapshot at path, without --dry-run.
func planOn(t testing.TB, path string, plan transform.Transform, allow ...string) result {
	t.Helper()
	return planWith(t, transform.Options{In: path, Allow: allow}, plan)
}

func planWith(t testing.TB, o transform.Options, plan transform.Transform) result {
	t.Helper()
	path, out := o.In, filepath.Join(t.TempDir(), "output.db")
	o.Command, o.Out = "test", out
	report, err := transform.Run(context.Background(), o, plan)
	r := result{Report: report, err: err, in: contents(t, path)}
	if err == nil {
		r.out = contents(t, out)
	}
	return r
}

// contents returns the live records of a snapshot.
func contents(t testing.TB, path string) map[string]string {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	got := map[string]string{}
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		got[string(rec.Key)] = string(rec.Value)
	}
	return got
}

// problems returns the report's problems as "level code key", in order.
func (r result) problems() []string {
	out := []string{}
	for _, p := range r.Problems {
		out = append(out, string(p.Level)+" "+p.Code.Name+" "+p.Key)
	}
	return out
}

// byHand returns the steps of the plan, without the steps of every restore.
func (r result) byHand() []string {
	var out []string
	for _, step := range r.Steps {
		if !strings.HasPrefix(step, "restore ") {
			out = append(out, step)
		}
	}
	return out
}

// reason returns the reason of the only problem with that code and key.
func (r result) reason(t testing.TB, code, key string) string {
	t.Helper()
	reasons := []string{}
	for _, p := range r.Problems {
		if p.Code.Name == code && p.Key == key {
			reasons = append(reasons, p.Reason)
		}
	}
	require.Len(t, reasons, 1, "problems %s of %s in %v", code, key, r.Problems)
	return reasons[0]
}

// changed returns the keys that differ between input and output, as "+key", "-key" or "~key".
func (r result) changed() []string {
	out := []string{}
	for key, value := range r.out {
		if before, there := r.in[key]; !there {
			out = append(out, "+"+key)
		} else if before != value {
			out = append(out, "~"+key)
		}
	}
	for key := range r.in {
		if _, there := r.out[key]; !there {
			out = append(out, "-"+key)
		}
	}
	return out
}
