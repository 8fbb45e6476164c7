package native_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
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
			reasons, ofStatus, err := native.RefusedAgain(content)
			if err == nil {
				checked++
			}
			require.Empty(t, append(reasons, ofStatus...), "%s %s", file, e.Key)
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
			[]string{"status.podIPs[0] (must be a valid IP address)"}},
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

const anEviction = `{"apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "Eviction", "metadata": {"name": "web",
 "namespace": "a", "uid": "u"}, "spec": {"target": {"pod": {"name": "web",
  "uid": "3d7fdff1-3fe5-48b9-b106-1ee24b0277f6"}}}, "status": {
  "targetResponders": [{"name": "a.example.com/b", "priority": 2000, "state": "Interrupted"}],
  "responders": [{"name": "a.example.com/b", "startTime": "2999-01-01T00:00:00Z",
   "heartbeatTime": "2999-01-01T00:00:00Z"}]}}`

// TestClock checks that no result depends on the present time: the heartbeat of a responder is
// recent for every test, and a new start time is not the present one.
func TestClock(t *testing.T) {
	eviction := content(t, anEviction)
	reasons, ofStatus, err := native.RefusedAgain(eviction)
	require.NoError(t, err)
	require.Empty(t, append(reasons, ofStatus...))

	active := content(t, strings.Replace(anEviction, "Interrupted", "Active", 1))
	changed := content(t, strings.NewReplacer("Interrupted", "Active", "2999-01-01", "1999-01-01").Replace(anEviction))
	reasons, err = native.Refused(active, changed)
	require.NoError(t, err)
	require.Empty(t, reasons)
}

// TestRefusedStatus checks that an error of the status alone is named as such.
func TestRefusedStatus(t *testing.T) {
	pod := content(t, aPod)
	merge(pod, content(t, `{"status": {"hostIPs": [{"ip": "10.0.0.300"}]}}`))
	reasons, ofStatus, err := native.RefusedAgain(pod)
	require.NoError(t, err)
	require.Empty(t, reasons)
	require.Equal(t, []string{"status.hostIPs[0].ip (must be equal to `hostIP`)"}, ofStatus)
}

// TestRefusedUnfit checks the update of an object that did not fit its kind.
func TestRefusedUnfit(t *testing.T) {
	before, after := content(t, deployment), content(t, deployment)
	merge(before, content(t, `{"spec": {"replicas": "many"}}`))
	_, _, err := native.RefusedAgain(before)
	require.ErrorContains(t, err, "it is no object of the kind")
	merge(after, content(t, `{"spec": {"replicas": -1}}`))
	reasons, err := native.Refused(before, after)
	require.NoError(t, err)
	require.Equal(t, []string{"spec.replicas (must be greater than or equal to 0)"}, reasons)
}
