package renamenode

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/transform"
)

// mentions are the fields of before that contain an old name as a word and are the same in after,
// without managedFields, whose names are those of fields.
func (n *names) mentions(before, after map[string]any) (fields []string) {
	var look func(path string, was, is any)
	look = func(path string, was, is any) {
		switch was := was.(type) {
		case string:
			if was == is && n.word.MatchString(was) {
				fields = append(fields, path)
			}
		case []any:
			list, _ := is.([]any)
			for i := range min(len(was), len(list)) {
				look(fmt.Sprintf("%s[%d]", path, i), was[i], list[i])
			}
		case map[string]any:
			object, _ := is.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(was)) {
				below := below(path, name)
				if n.word.MatchString(name) {
					fields = append(fields, below)
				} else if below != "metadata.managedFields" {
					look(below, was[name], object[name])
				}
			}
		}
	}
	look("", before, after)
	return fields
}

// below is the path of a field.
func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// count adds an object to the report.
func (s *storage) count(o *inspect.Object, name string, staged bool) {
	if !staged {
		return
	}
	r := s.View.Report()
	apiVersion := text(o.Content, "apiVersion")
	i := slices.IndexFunc(r.Kinds, func(k transform.KindCount) bool { return k.Kind == o.Type.Kind && k.From == apiVersion })
	if i < 0 {
		i, r.Kinds = len(r.Kinds), append(r.Kinds, transform.KindCount{Kind: o.Type.Kind, From: apiVersion, To: apiVersion})
	}
	r.Kinds[i].Migrated++
	if name != "" {
		r.Renamed = append(r.Renamed, transform.Rename{Kind: o.Type.Kind, Namespace: o.Parsed.Namespace, From: o.Parsed.Name, To: name})
	}
}

// addSteps adds what is left to do on the machine of a Node.
func (s *storage) addSteps(node *inspect.Object) {
	old := node.Parsed.Name
	name := s.to[old]
	labels := child(node.Content, "metadata", "labels")
	s.Step("On the machine of %s: change the host name to %s, or start kubelet with --hostname-override=%s.", old, name, name)
	s.Step("On the machine of %s: give kubelet a client certificate of the user %s%s (/etc/kubernetes/kubelet.conf, /var/lib/kubelet/pki), "+
		"as a new machine that joins gets it.", old, userPrefix, name)
	if _, is := labels["node-role.kubernetes.io/control-plane"]; is {
		s.Step("On the machine of %s, of the control plane: make /etc/kubernetes/pki/apiserver.crt and the certificates of etcd anew for the name %s "+
			"(kubeadm init phase certs), and change the name in /etc/kubernetes/manifests.", old, name)
		s.Step("An etcd member that is called %s may keep its name: --name and --initial-cluster of the restore and of its manifest must agree.", old)
	}
	if s.types.Of(calicoAffinities("crd.projectcalico.org")) != nil || s.types.Of(calicoAffinities("projectcalico.org")) != nil {
		s.Step("On the machine of %s: delete /var/lib/calico/nodename; calico-node writes it anew.", old)
	}
}
