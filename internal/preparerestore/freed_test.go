package preparerestore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	going    = `,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["%"]`
	useClaim = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db","namespace":"shop","uid":"uid-db"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]}}`
)

func goingOf(finalizer string) string { return strings.ReplaceAll(going, "%", finalizer) }

func volume(policy, meta string) record {
	return object("persistentvolumes/pv-data", "v1", "PersistentVolume", `,"uid":"uid-pv"`+meta, `,"spec":{"persistentVolumeReclaimPolicy":"`+policy+
		`","csi":{"driver":"d","volumeHandle":"h"},"claimRef":{"kind":"PersistentVolumeClaim","namespace":"shop","name":"data","uid":"uid-data"}}`)
}

// TestFreed: a run that deletes what holds a deletion refuses where a volume would be destroyed,
// and warns where none would.
func TestFreed(t *testing.T) {
	user := record{"pods/shop/db", useClaim}
	claim := func(meta string) record {
		return object("persistentvolumeclaims/shop/data", "v1", "PersistentVolumeClaim", in+`,"uid":"uid-data"`+meta, `,"spec":{"volumeName":"pv-data"}`)
	}
	dying := claim(goingOf("kubernetes.io/pvc-protection"))
	attached := object("volumeattachments/of-pv1", "storage.k8s.io/v1", "VolumeAttachment", ``, `,"spec":{"attacher":"d","nodeName":"n1","source":{"persistentVolumeName":"pv-data"}}`)
	other := record{"pods/shop/other", strings.NewReplacer(`"db"`, `"other"`, "uid-db", "uid-other", `"n1"`, `"n2"`).Replace(useClaim)}
	ended := record{"pods/shop/db", strings.Replace(useClaim, `"spec"`, `"status":{"phase":"Succeeded"},"spec"`, 1)}
	owned := record{"pods/shop/other", strings.Replace(other.value, `"uid":"uid-other"`, `"uid":"uid-other","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"driver","uid":"uid-driver"}]`, 1)}
	const claimKey, volumeKey = "/registry/persistentvolumeclaims/shop/data", "/registry/persistentvolumes/pv-data"
	for name, tc := range map[string]struct {
		with  []record
		keep  []string
		steps []string
		code  *finding.Code // nil for none
		key   string
	}{
		"the last user":                         {with: []record{user, dying, volume("Delete", "")}, code: objects.CodeVolumeFreed, key: claimKey},
		"the last user, its node comes back":    {with: []record{user, dying, volume("Delete", "")}, keep: []string{"n1"}},
		"another user stays":                    {with: []record{user, other, dying, volume("Delete", "")}, keep: []string{"n2"}},
		"a retained volume":                     {with: []record{user, dying, volume("Retain", "")}, code: objects.CodeFreed, key: claimKey},
		"a recycled volume":                     {with: []record{user, dying, volume("Recycle", "")}, code: objects.CodeVolumeFreed, key: claimKey},
		"a claim that is not being deleted":     {with: []record{user, claim(""), volume("Delete", "")}},
		"nobody used it":                        {with: []record{dying, volume("Delete", "")}},
		"the attachment of an unclaimed volume": {with: []record{attached, volume("Delete", "")}, code: objects.CodeVolumeFreed, key: volumeKey},
		"the same, retained":                    {with: []record{attached, volume("Retain", goingOf("external-attacher/d"))}, code: objects.CodeFreed, key: volumeKey},
		"the attachment of a claimed volume":    {with: []record{attached, claim(""), volume("Delete", "")}},
		"a claim that was made for a Pod":       {with: []record{user, claim(`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"db","uid":"uid-db","controller":true}],"finalizers":["kubernetes.io/pvc-protection"]`), volume("Delete", "")}, code: objects.CodeFreed, key: claimKey},
		"the content of a dying namespace":      {with: []record{object("namespaces/shop", "v1", "Namespace", goingOf("x/y"), ``), pod("held", `,"finalizers":["x/y"]`, "n1")}, code: objects.CodeFreed, key: "/registry/namespaces/shop"},
		"Pods on Nodes that are deleted":        {with: []record{user, dying, volume("Delete", "")}, steps: []string{"nodes"}, code: objects.CodeVolumeFreed, key: claimKey},
		"a Pod that has ended, on such a Node":  {with: []record{ended, dying, volume("Delete", "")}, code: objects.CodeVolumeFreed, key: claimKey},
		"a Pod of a deleted Pod":                {with: []record{owned, dying, pod("driver", ``, "n1"), volume("Delete", "")}, keep: []string{"n2"}, steps: []string{"pods"}, code: objects.CodeVolumeFreed, key: claimKey},
		"a Pod of a Pod that stays":             {with: []record{owned, dying, pod("driver", ``, "n2"), volume("Delete", "")}, keep: []string{"n2"}, steps: []string{"pods"}},
		"a claim of another Pod":                {with: []record{user, claim(`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"other","uid":"uid-other","controller":true}],"finalizers":["kubernetes.io/pvc-protection"]`), other, volume("Delete", "")}, keep: []string{"n2"}},
		"a Pod that never came to a node stays": {with: []record{dying, volume("Delete", ""), {"pods/shop/db", strings.Replace(useClaim, `"nodeName":"n1",`, "", 1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, tc.with...)
			r, err := runOn(t, path, prepared(tc.keep, tc.steps...))
			var keys []string
			for _, problem := range r.Problems {
				if problem.Code == objects.CodeVolumeFreed || problem.Code == objects.CodeFreed {
					require.Equal(t, tc.code, problem.Code, problem.Reason)
					keys = append(keys, problem.Key)
				}
			}
			if tc.code == nil {
				require.Empty(t, keys)
			} else {
				require.Equal(t, []string{tc.key}, keys)
			}
			if tc.code != objects.CodeVolumeFreed {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, transform.ErrRefused)
			_, err = runOn(t, path, prepared(tc.keep, tc.steps...), tc.code.Name)
			require.NoError(t, err)
		})
	}
	t.Run("isolated", func(t *testing.T) {
		p := prepared(nil)
		p.isolated, p.steps = true, append(p.steps, prepared(nil, "volumes").steps...)
		r, err := runOn(t, written(t, user, dying, volume("Delete", "")), p)
		require.NoError(t, err, "%v", r.Problems)
	})
}
