package renamenode

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// rename is the transform.
type rename struct{ to map[string]string } // new names by old ones

// Plan stages the renames below each storage prefix.
func (r *rename) Plan(ctx context.Context, v *transform.View) error {
	prefixes, err := v.KubernetesPrefixes(ctx)
	if err != nil {
		return err
	}
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	for _, prefix := range prefixes {
		s := &storage{
			Store: transform.Store{Ctx: ctx, View: v, Keys: keys.Kubernetes{Prefix: prefix}},
			names: newNames(r.to), types: types, moves: map[string]string{}, stays: map[string]bool{}, attachments: map[string]volume{},
		}
		s.readNodes()
		s.survey()
		s.checkMoves()
		s.stage()
		if s.Err != nil {
			return s.Err
		}
	}
	return nil
}

// storage is the work below one storage prefix.
type storage struct {
	transform.Store
	*names
	types       *inspect.Types
	found       []string          // keys of records that contain an old name
	moves       map[string]string // new names of objects by key
	stays       map[string]bool   // keys of objects whose new name is taken, which is reported
	attachments map[string]volume // by name of the PersistentVolume, those of VolumeAttachments
}

// object returns the object at a key, nil for none.
func (s *storage) object(gr schema.GroupResource, namespace, name string) *inspect.Object {
	dir := string(s.Keys.Dir(gr))
	if namespace != "" {
		dir += namespace + "/"
	}
	if e := s.Get([]byte(dir + name)); e != nil {
		return s.decode(e)
	}
	return nil
}

// decode returns the object of an entry, nil where its key is of no resource.
func (s *storage) decode(e *transform.Entry) *inspect.Object {
	key, err := e.ParseKey()
	if err != nil {
		return nil
	}
	t := s.types.Of(key.Resource)
	if t == nil {
		return nil
	}
	return inspect.NewObject(t, e)
}

// readNodes finds the labels that name the nodes: that of the hostname, and those of the topology
// of volumes, where they have the name of the Node as their value.
func (s *storage) readNodes() {
	for _, old := range slices.Sorted(maps.Keys(s.to)) {
		node := s.object(schema.GroupResource{Resource: "nodes"}, "", old)
		if node == nil {
			s.Raise(string(s.Keys.Dir(schema.GroupResource{Resource: "nodes"}))+old, codeNoNode.Because("nothing is called %s", old))
			s.labels[old][hostnameLabel] = true
			continue
		}
		labels := []string{hostnameLabel}
		if csi := s.object(schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}, "", old); csi != nil {
			for _, driver := range children(child(csi.Content, "spec"), "drivers") {
				topology, _ := driver["topologyKeys"].([]any)
				for _, key := range topology {
					label, _ := key.(string)
					labels = append(labels, label)
				}
			}
		}
		for _, label := range labels {
			is := text(child(node.Content, "metadata", "labels"), label) == old
			if s.labels[old][label] = is; is && len(s.to[old]) > validation.LabelValueMaxLength {
				s.Raise(string(node.Key), transform.CodeInvalidObject.Because("%s is too long for the label %s", s.to[old], label))
			}
		}
		s.addSteps(node)
	}
}

// survey finds the records that contain an old name, and the objects that are named after a node.
func (s *storage) survey() {
	for e := range s.Live([]byte(s.Keys.Prefix + "/")) {
		if e.Layout() != keys.Layout(s.Keys) { // another API server's, below a longer prefix
			continue
		}
		key, err := e.ParseKey()
		if err == nil && key.Resource.Resource == "events" {
			continue
		}
		switch {
		case e.Undecryptable != nil:
			s.Raise(string(e.Key), finding.Encrypted.Because("names of nodes in it cannot be seen: %v", e.Undecryptable))
		case !s.in(e.Value) && !s.in(e.Key):
		case err != nil:
			s.Raise(string(e.Key), codeMentioned.Because("the key is of no resource"))
		default:
			s.add(s.decode(e))
		}
	}
}

// add notes an object that contains an old name.
func (s *storage) add(o *inspect.Object) {
	if o == nil || s.Err != nil {
		return
	}
	if o.Err != nil {
		s.Raise(string(o.Key), transform.Unreadable(o.Err))
		return
	}
	s.found = append(s.found, string(o.Key))
	if o.Type.Name() == "resourceslices.resource.k8s.io" {
		spec := child(o.Content, "spec")
		node, pool := text(spec, "nodeName"), child(spec, "pool")
		s.pools[text(spec, "driver")+"/"+node] = s.to[node] != "" && text(pool, "name") == node
	}
	name, is := s.newName(o)
	if o.Type.Name() == "volumeattachments.storage.k8s.io" {
		name, is = s.attachmentName(o)
	}
	if is && name != o.Parsed.Name {
		s.moves[string(o.Key)] = name
		s.move(o, name)
	}
}

// attachmentName returns the new name of a VolumeAttachment.
func (s *storage) attachmentName(o *inspect.Object) (string, bool) {
	spec := child(o.Content, "spec")
	node := text(spec, "nodeName")
	if s.to[node] == "" {
		return "", false
	}
	of := csiVolume(child(spec, "source", "inlineVolumeSpec"))
	if name := text(child(spec, "source"), "persistentVolumeName"); name != "" {
		if pv := s.object(schema.GroupResource{Resource: "persistentvolumes"}, "", name); pv != nil {
			of = csiVolume(child(pv.Content, "spec"))
		}
	}
	if of.attachmentName(node) != o.Parsed.Name {
		s.Raise(string(o.Key), codeAttachment.Because("it is not the name of a volume on the node %s", node))
		return "", false
	}
	return of.attachmentName(s.to[node]), true
}

// target is the key of an object under another name.
func (s *storage) target(key, name string) string {
	parsed, err := s.Keys.Parse([]byte(key))
	s.Failed(err)
	return key[:len(key)-len(parsed.Name)] + name
}

// checkMoves reports new names that other objects have.
func (s *storage) checkMoves() {
	taken := map[string]string{} // keys by new key
	for _, key := range slices.Sorted(maps.Keys(s.moves)) {
		to := s.target(key, s.moves[key])
		if s.moves[to] == "" && s.Get([]byte(to)) != nil {
			s.Raise(key, transform.CodeNameTaken.Because("%s is there already", to))
			s.stays[key] = true
		} else if other := taken[to]; other != "" {
			s.Raise(key, transform.CodeNameTaken.Because("%s would get the same key, %s", other, to))
			s.stays[key] = true
		}
		taken[to] = cmp.Or(taken[to], key)
	}
	maps.DeleteFunc(s.moves, func(key, _ string) bool { return s.stays[key] })
}

// stage stages all changes. Records that move are read, and their deletion staged, before another
// one takes the key.
func (s *storage) stage() {
	moving := map[string]*transform.Entry{}
	for _, key := range s.found {
		if s.moves[key] != "" {
			moving[key] = s.Get([]byte(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(moving)) {
		s.Delete([]byte(key))
	}
	for _, key := range s.found {
		e := moving[key]
		if e == nil {
			e = s.Get([]byte(key))
		}
		if s.Err != nil {
			return
		}
		s.Failed(s.change(s.decode(e), s.moves[key]))
	}
}

// change stages an object. name is its new name, "" where it stays.
func (s *storage) change(o *inspect.Object, name string) error {
	content := runtime.DeepCopyJSON(o.Content)
	s.edit(o, content, name)
	var staged bool
	var err error
	if name == "" {
		staged, err = s.View.PutObject(s.Ctx, o, content)
	} else {
		staged, err = s.View.CopyObject(s.Ctx, o, []byte(s.target(string(o.Key), name)), content)
		if err == nil && !staged {
			return s.keep(o)
		}
	}
	if err != nil {
		return err
	}
	s.count(o, name, staged)
	if fields := s.mentions(o.Content, content); len(fields) > 0 && !s.stays[string(o.Key)] {
		s.Raise(string(o.Key), codeMentioned.Because("%s", finding.List(fields)))
	}
	return nil
}

// keep takes the deletion of an object back that cannot be renamed, which was reported.
func (s *storage) keep(o *inspect.Object) error {
	for key, name := range s.moves {
		if s.target(key, name) == string(o.Key) {
			return fmt.Errorf("%s cannot be renamed, and %s is to take its name", o.Key, key)
		}
	}
	return s.View.Put(s.Ctx, o.Key, o.Value)
}

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
	objects.CountOf(r, o).Migrated++
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
