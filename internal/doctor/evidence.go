package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
)

// release is a minor release of Kubernetes; the zero value is unknown.
type release struct {
	minor    int
	atLeast  bool   // the release may be a newer one
	evidence string // what shows that it is the release of the cluster; "" for another release
}

// String formats the release for people.
func (r release) String() string {
	text := fmt.Sprintf("Kubernetes 1.%d", r.minor)
	if r.atLeast {
		text += " or newer"
	}
	if r.evidence != "" {
		text += " of this cluster (" + r.evidence + ")"
	}
	return text
}

// raise sets r to the release in a version such as "v1.36.3", if it is a newer one that this build
// knows.
func (r *release) raise(version, evidence string) {
	var major, minor int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); n == 2 && major == 1 &&
		r.minor < minor && minor <= native.LinkedRelease {
		*r = release{minor: minor, evidence: evidence}
	}
}

// clusterRelease returns the release of the API servers of the cluster, by the first of these in
// the file: their static Pods; servers of k3s; the settings of kubeadm; the leaders and kubelets,
// which are never newer than the API servers; the served versions. Leases of API servers do not
// have it.
func clusterRelease(d *doctor) (newest release, err error) {
	for _, from := range []struct {
		look    func(*doctor, machines.Storage, *release) error
		atLeast bool
	}{
		{inStaticPods, false}, {inServersOfK3s, false}, {inKubeadm, false}, {inCandidates, true}, {inNodes, true},
		{inServedVersions, true},
	} {
		for _, s := range d.layouts.Storages() {
			if err := from.look(d, d.storage(s.Prefix), &newest); err != nil {
				return release{}, err
			}
		}
		if newest.minor > 0 {
			newest.atLeast = from.atLeast
			break
		}
	}
	return newest, nil
}

// inStaticPods reads the images of static Pods. The file has mirror Pods of them.
func inStaticPods(d *doctor, s machines.Storage, newest *release) error {
	return machines.Each(d.ctx, s, "pods", metav1.NamespaceSystem, func(_ *inspect.Entry, pod *corev1.Pod) error {
		for _, c := range pod.Spec.Containers {
			if c.Name == "kube-apiserver" && pod.Annotations[corev1.MirrorPodAnnotationKey] != "" {
				image, _, _ := strings.Cut(c.Image, "@")
				newest.raise(image[strings.LastIndexByte(image, ':')+1:], "static Pod "+pod.Name)
			}
		}
		return nil
	})
}

// inKubeadm reads the ClusterConfiguration of kubeadm.
func inKubeadm(d *doctor, s machines.Storage, newest *release) error {
	const name = "kubeadm-config"
	e, err := s.Get(d.ctx, "configmaps", metav1.NamespaceSystem, name)
	if e == nil || err != nil {
		return err
	}
	settings, _ := decodeAs[corev1.ConfigMap](e) // empty for an error, which is reported as undecodable
	for line := range strings.Lines(settings.Data["ClusterConfiguration"]) {
		if version, is := strings.CutPrefix(line, "kubernetesVersion: "); is {
			newest.raise(version, "ConfigMap "+name)
		}
	}
	return nil
}

// inCandidates reads the versions of controller managers and schedulers.
func inCandidates(d *doctor, s machines.Storage, newest *release) error {
	type candidate struct { // of any version
		Spec struct {
			BinaryVersion string `json:"binaryVersion"`
		} `json:"spec"`
	}
	return machines.Each(d.ctx, s, "leasecandidates.coordination.k8s.io", metav1.NamespaceSystem,
		func(e *inspect.Entry, c *candidate) error {
			key, err := e.ParseKey()
			newest.raise(c.Spec.BinaryVersion, "LeaseCandidate "+key.Name)
			return err
		})
}

// inServersOfK3s reads the versions of k3s servers. Their kubelet is part of the API server's
// program.
func inServersOfK3s(d *doctor, s machines.Storage, newest *release) error {
	return machines.Each(d.ctx, s, "nodes", "", func(_ *inspect.Entry, node *corev1.Node) error {
		version := node.Status.NodeInfo.KubeletVersion
		if node.Labels["node-role.kubernetes.io/control-plane"] != "" && strings.Contains(version, "+k3s") {
			newest.raise(version, "Node "+node.Name)
		}
		return nil
	})
}

// inNodes reads the versions of kubelets.
func inNodes(d *doctor, s machines.Storage, newest *release) error {
	return machines.Each(d.ctx, s, "nodes", "", func(_ *inspect.Entry, node *corev1.Node) error {
		newest.raise(node.Status.NodeInfo.KubeletVersion, "Node "+node.Name)
		return nil
	})
}

// inServedVersions returns the oldest release that serves all versions with an APIService of the
// API server, unless every release does.
func inServedVersions(d *doctor, _ machines.Storage, newest *release) error {
	kinds := map[string][]string{}
	for _, t := range d.types.All() {
		if t.Builtin {
			kinds[t.Resource.Group] = append(kinds[t.Resource.Group], t.Kind)
		}
	}
	serves := func(gv gvr.GroupVersion, minor int) bool {
		return kinds[gv.Group] == nil || slices.ContainsFunc(kinds[gv.Group], func(kind string) bool {
			return native.ServedBy(gv.WithKind(kind), minor)
		})
	}
	var all []int
	for minor := native.OldestRelease; minor <= native.LinkedRelease; minor++ {
		lacks := false
		for gv := range d.local {
			lacks = lacks || !serves(gv, minor)
		}
		if !lacks {
			all = append(all, minor)
		}
	}
	if n := len(all); n > 0 && n <= native.LinkedRelease-native.OldestRelease {
		newest.raise(fmt.Sprintf("1.%d", all[0]), "its APIServices")
	}
	return nil
}
