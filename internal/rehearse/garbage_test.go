package rehearse

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func owner(name, uid string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q}`, name, uid)
}

func configMap(name, meta string) string {
	return fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","uid":"u-%s",`+
			`"creationTimestamp":"2026-01-01T00:00:00Z"%s}}`, name, name, meta)
}

// TestCollected checks that exactly the objects that a real collector deletes, marks or changes on
// a real API server are named. The objects of the server itself can be listed, updated and applied
// before.
func TestCollected(t *testing.T) {
	records := map[string]string{}
	for name, meta := range map[string]string{
		"root":   ``,
		"owned":  `,"ownerReferences":[` + owner("root", "u-root") + `]`,
		"orphan": `,"ownerReferences":[` + owner("gone", "u-gone") + `]`,
		"uid":    `,"ownerReferences":[` + owner("root", "u-other") + `]`,
		"chain":  `,"ownerReferences":[` + owner("orphan", "u-orphan") + `]`,
		"held":   `,"finalizers":["example.com/a"],"ownerReferences":[` + owner("gone", "u-gone") + `]`,
		"half":   `,"ownerReferences":[` + owner("root", "u-root") + `,` + owner("gone", "u-gone") + `]`,
	} {
		records["configmaps/default/"+name] = configMap(name, meta)
	}
	o := startServer(t, records)
	o.Calm = 3 * time.Second
	result, err := tryAll(t.Context(), o.Config, tryOptions{Native: true, Names: storedNames(o.Etcd, o.Prefix)})
	require.NoError(t, err)
	for _, f := range result.Failures {
		t.Error(f.Code.Name, f.Reason)
	}
	kinds := map[string]*kind{}
	for _, k := range result.Kinds {
		kinds[k.Resource] = k
		require.Empty(t, k.NotChecked, k.Resource)
		require.Equal(t, k.Objects, k.Tried, k.Resource)
	}
	require.GreaterOrEqual(t, kinds["configmaps"].Tried, 7)
	require.Positive(t, kinds["clusterroles.rbac.authorization.k8s.io"].Tried)
	require.Equal(t, "v2", kinds["horizontalpodautoscalers.autoscaling"].version)
	require.Equal(t, []string{"v1", "v2"}, kinds["horizontalpodautoscalers.autoscaling"].Listed)

	collected, err := collectGarbage(t.Context(), o)
	require.NoError(t, err)
	var got []string
	for _, object := range collected.Objects {
		got = append(got, object.Key+" "+object.Reason)
	}
	const at, gone = "/registry/configmaps/default/", "; its owners are v1 ConfigMap gone (u-gone)"
	require.Equal(t, []string{
		at + "chain deleted; its owners are v1 ConfigMap orphan (u-orphan)",
		at + "half released; its owners are v1 ConfigMap root (u-root), v1 ConfigMap gone (u-gone)",
		at + "held marked for deletion" + gone,
		at + "orphan deleted" + gone,
		at + "uid deleted; its owners are v1 ConfigMap root (u-other)",
	}, got)
	require.Equal(t, 5, collected.Count)
}

// program is a fake kube-controller-manager.
type program struct {
	done chan struct{}
	err  error
}

func (p *program) Done() <-chan struct{} { return p.done }
func (p *program) Err() error            { return p.err }

// TestNoCollector checks that a collector that exits or does nothing is an error, and that native
// objects that cannot be read or written are named.
func TestNoCollector(t *testing.T) {
	const template = `{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"a","namespace":"default","uid":"u"}}`
	o := startServer(t, map[string]string{"podtemplates/default/a": template, "podtemplates/default/b": template[:20]})
	result, err := tryAll(t.Context(), o.Config, tryOptions{Native: true, Names: storedNames(o.Etcd, o.Prefix)})
	require.NoError(t, err)
	var got []string
	for _, f := range result.Failures {
		got = append(got, f.Code.Name+" "+f.Reason)
	}
	require.Equal(t, []string{
		"rehearse-apply podtemplates default/a: apply at v1: template.spec.containers: Required value",
		"rehearse-update podtemplates default/a: update at v1: template.spec.containers: Required value",
		"rehearse-list podtemplates default/b: get at v1: couldn't get version/kind; json parse error: unexpected " +
			"end of JSON input",
	}, got)
	o.Timeout = 3 * time.Second
	idle := &program{done: make(chan struct{})}
	o.Start = func(context.Context) (process, error) { return idle, nil }
	_, err = collectGarbage(t.Context(), o)
	require.EqualError(t, err, "after 3s: the garbage collector does not delete an object whose owner does not exist")
	idle.err = errors.New("panic: so it was")
	close(idle.done)
	_, err = collectGarbage(t.Context(), o)
	require.EqualError(t, err, "kube-controller-manager ended: panic: so it was")
}
