package native_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestRecordedAreValid checks that objects written by servers can be updated.
func TestRecordedAreValid(t *testing.T) {
	files, err := filepath.Glob("../../testdata/*/*.db.gz")
	require.NoError(t, err)
	checked := 0
	for _, file := range files {
		if dir := filepath.Base(filepath.Dir(file)); dir == "hostile" || dir == "reports" {
			continue // not written by a server
		}
		s, err := snapshot.Open(t.Context(), file, snapshot.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for e, err := range inspect.NewReader(s, nil).Live(t.Context(), nil) {
			require.NoError(t, err)
			key, err := e.ParseKey()
			if err != nil || key.Identity != "" || key.Custom {
				continue // of kcp, by schemas of its own
			}
			content, err := native.Decode(e.Value)
			if metadata, _ := content["metadata"].(map[string]any); err != nil || metadata["name"] != key.Name {
				continue // Leases and Endpoints that API servers write
			}
			reasons, err := native.RefusedAgain(content)
			if err == nil {
				checked++
			}
			require.Empty(t, reasons, "%s %s", file, e.Key)
		}
	}
	require.Greater(t, checked, 300)
}

const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"},
 "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
  "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}}`

const aPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "a"},
 "spec": {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]}, "status": {"podIP": "10.0.0.1",
  "podIPs": [{"ip": "10.0.0.1"}]}}`

const aSecret = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a"},
 "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}}`

const aVolume = `{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {
 "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/d"}, "nodeAffinity": {"required":
 {"nodeSelectorTerms": [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["n1"]}]}]}}}}`

// TestRefused changes valid objects.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		object, change string // a merge patch
		want           []string
	}{
		"nothing": {deployment, `{}`, nil},
		"a label": {deployment, `{"metadata": {"labels": {"a": "b"}}}`, nil},
		"an immutable one": {deployment, `{"spec": {"selector": {"matchLabels": {"app": "w"}},
			"template": {"metadata": {"labels": {"app": "w"}}}}}`, nil},
		"labels that the selector lacks": {deployment, `{"spec": {"selector": {"matchLabels": {"app": "w"}}}}`,
			[]string{"spec.template.metadata.labels (`selector` does not match template `labels`)"}},
		"a number out of range": {deployment, `{"spec": {"replicas": -1}}`,
			[]string{"spec.replicas (must be greater than or equal to 0)"}},
		"a Pod on another node": {aPod, `{"spec": {"nodeName": "n2"}}`, nil},
		"a Pod with a bad name of a node": {aPod, `{"spec": {"nodeName": "N 2"}}`,
			[]string{"spec.nodeName"}},
		"a bad address of a Pod": {aPod, `{"status": {"podIP": "10.0.0.300", "podIPs": [{"ip": "10.0.0.300"}]}}`,
			[]string{"status.podIPs[0]"}},
		"a Secret that quotes": {aSecret, `{"data": {".dockerconfigjson": "aHVudGVyMg=="}}`,
			[]string{"data[.dockerconfigjson]"}},
		"another type of Secret": {aSecret, `{"type": "Opaque"}`, nil},
		"a volume of another node": {aVolume,
			`{"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
			 [{"key": "host", "operator": "In", "values": ["n2"]}]}]}}}}`, nil},
		"a volume with a bad operator": {aVolume,
			`{"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
			 [{"key": "host", "operator": "Is", "values": ["n2"]}]}]}}}}`,
			[]string{"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := content(t, test.object), content(t, test.object)
			merge(after, content(t, test.change))
			reasons, err := native.Refused(before, after)
			require.NoError(t, err)
			require.Len(t, reasons, len(test.want), "%q", reasons)
			for i, want := range test.want {
				require.Contains(t, reasons[i], want)
				require.NotContains(t, reasons[i], "hunter2")
			}
		})
	}
}

func content(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	return out
}

func merge(into, change map[string]any) {
	for name, value := range change {
		below, is := value.(map[string]any)
		if was, both := into[name].(map[string]any); is && both {
			merge(was, below)
		} else {
			into[name] = value
		}
	}
}
