package renamenode

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// rename is the transform of the command.
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
			View: v, keys: keys.Kubernetes{Prefix: prefix}, names: newNames(r.to), types: types,
			moves: map[string]string{}, stays: map[string]bool{}, attachments: map[string]volume{},
		}
		for _, step := range []func(context.Context) error{s.readNodes, s.survey, s.checkMoves, s.stage} {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// storage holds the renames below one storage prefix.
type storage struct {
	*transform.View
	*names
	keys        keys.Kubernetes
	types       *inspect.Types
	found       []string          // keys of records with an old name
	moves       map[string]string // new names of objects by key
	stays       map[string]bool   // keys of objects whose new name is taken (reported)
	attachments map[string]volume // volumes of VolumeAttachments, by name of the PersistentVolume
}

// object returns the object at a key, or nil.
func (s *storage) object(
	ctx context.Context, gr schema.GroupResource, namespace, name string,
) (*inspect.Object, error) {
	dir := string(s.keys.Dir(gr))
	if namespace != "" {
		dir += namespace + "/"
	}
	e, err := s.Get(ctx, []byte(dir+name))
	if e == nil || err != nil {
		return nil, err
	}
	return s.decode(e), nil
}

// decode returns the object of an entry, or nil if the key belongs to no resource.
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

// readNodes finds the labels that contain node names: the hostname label, and volume topology
// labels with the name of the Node as value.
func (s *storage) readNodes(ctx context.Context) error {
	for _, old := range slices.Sorted(maps.Keys(s.to)) {
		node, err := s.object(ctx, schema.GroupResource{Resource: "nodes"}, "", old)
		if err != nil {
			return err
		}
		if node == nil {
			s.Raise(string(s.keys.Dir(schema.GroupResource{Resource: "nodes"}))+old,
				codeNoNode.Because("nothing is called %s", old))
			s.labels[old][hostnameLabel] = true
			continue
		}
		labels := []string{hostnameLabel}
		csi, err := s.object(ctx, schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}, "", old)
		if err != nil {
			return err
		}
		if csi != nil {
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
				s.Raise(string(node.Key), transform.CodeInvalidObject.Because("%s is too long for the label %s",
					s.to[old], label))
			}
		}
		s.addSteps(node)
	}
	return nil
}

// survey finds records with an old name and objects named after a node.
func (s *storage) survey(ctx context.Context) error {
	return stream.Each(s.Below(ctx, s.keys.Prefix), func(e *transform.Entry) error {
		key, err := e.ParseKey()
		if err == nil && key.Resource.Resource == "events" {
			return nil
		}
		switch {
		case e.Undecryptable != nil:
			s.Raise(string(e.Key), finding.Encrypted.Because("names of nodes in it cannot be seen: %v",
				e.Undecryptable))
		case !s.containsOld(e.Value) && !s.containsOld(e.Key):
		case err != nil:
			s.Raise(string(e.Key), codeMentioned.Because("the key is of no resource"))
		default:
			return s.add(ctx, s.decode(e))
		}
		return nil
	})
}

// add records an object with an old name.
func (s *storage) add(ctx context.Context, o *inspect.Object) error {
	if o == nil {
		return nil
	}
	if o.Err != nil {
		s.Raise(string(o.Key), transform.Unreadable(o.Err))
		return nil
	}
	s.found = append(s.found, string(o.Key))
	if o.Type.Name() == "resourceslices.resource.k8s.io" {
		spec := child(o.Content, "spec")
		node, pool := text(spec, "nodeName"), child(spec, "pool")
		s.pools[text(spec, "driver")+"/"+node] = s.to[node] != "" && text(pool, "name") == node
	}
	name, is := s.newName(o)
	if o.Type.Name() == "volumeattachments.storage.k8s.io" {
		var err error
		if name, err = s.attachmentName(ctx, o); err != nil {
			return err
		}
		is = name != ""
	}
	if is && name != o.Parsed.Name {
		s.moves[string(o.Key)] = name
		s.move(o, name)
	}
	return nil
}

// attachmentName returns the new name of a VolumeAttachment, or "" if the name stays.
func (s *storage) attachmentName(ctx context.Context, o *inspect.Object) (string, error) {
	spec := child(o.Content, "spec")
	node := text(spec, "nodeName")
	if s.to[node] == "" {
		return "", nil
	}
	of := csiVolume(child(spec, "source", "inlineVolumeSpec"))
	if name := text(child(spec, "source"), "persistentVolumeName"); name != "" {
		pv, err := s.object(ctx, schema.GroupResource{Resource: "persistentvolumes"}, "", name)
		if err != nil {
			return "", err
		}
		if pv != nil {
			of = csiVolume(child(pv.Content, "spec"))
		}
	}
	if of.attachmentName(node) != o.Parsed.Name {
		s.Raise(string(o.Key), codeAttachment.Because("it is not the name of a volume on the node %s", node))
		return "", nil
	}
	return of.attachmentName(s.to[node]), nil
}

// target returns the key of an object under another name; the name is the last part of a key.
func target(key, name string) string { return key[:strings.LastIndexByte(key, '/')+1] + name }

// checkMoves reports new names that belong to other objects.
func (s *storage) checkMoves(ctx context.Context) error {
	taken := map[string]string{} // keys by new key
	for _, key := range slices.Sorted(maps.Keys(s.moves)) {
		to := target(key, s.moves[key])
		there, err := s.Get(ctx, []byte(to))
		if err != nil {
			return err
		}
		if s.moves[to] == "" && there != nil {
			s.Raise(key, transform.CodeNameTaken.Because("%s is there already", to))
			s.stays[key] = true
		} else if other := taken[to]; other != "" {
			s.Raise(key, transform.CodeNameTaken.Because("%s would get the same key, %s", other, to))
			s.stays[key] = true
		}
		taken[to] = cmp.Or(taken[to], key)
	}
	maps.DeleteFunc(s.moves, func(key, _ string) bool { return s.stays[key] })
	return nil
}

// stage stages all changes. Records with a new key are first read and staged as deleted; then the
// new keys are written.
func (s *storage) stage(ctx context.Context) (err error) {
	moving := map[string]*transform.Entry{}
	for _, key := range s.found {
		if s.moves[key] == "" {
			continue
		}
		if moving[key], err = s.Get(ctx, []byte(key)); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(moving)) {
		if err := s.Delete(ctx, []byte(key)); err != nil {
			return err
		}
	}
	for _, key := range s.found {
		e := moving[key]
		if e == nil {
			if e, err = s.Get(ctx, []byte(key)); err != nil {
				return err
			}
		}
		if err := s.change(ctx, s.decode(e), s.moves[key]); err != nil {
			return err
		}
	}
	return nil
}

// change stages an object. name is its new name, or "" if the name stays.
func (s *storage) change(ctx context.Context, o *inspect.Object, name string) error {
	content := runtime.DeepCopyJSON(o.Content)
	s.edit(o, content, name)
	var staged bool
	var err error
	if name == "" {
		staged, err = s.PutObject(ctx, o, content)
	} else {
		staged, err = s.CopyObject(ctx, o, []byte(target(string(o.Key), name)), content)
		if err == nil && !staged {
			return s.keep(ctx, o)
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

// keep undoes the staged deletion of an object whose rename failed (reported).
func (s *storage) keep(ctx context.Context, o *inspect.Object) error {
	for key, name := range s.moves {
		if target(key, name) == string(o.Key) {
			return fmt.Errorf("%s cannot be renamed, and %s is to take its name", o.Key, key)
		}
	}
	return s.Put(ctx, o.Key, o.Value)
}

// mentions returns the unchanged fields that contain an old name as a word, except managedFields,
// whose entries are field names.
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

// below returns the path of a field by its name and the path of its object; "" is the root.
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
	r := s.Report()
	objects.CountOf(r, o).Migrated++
	if name != "" {
		r.Renamed = append(r.Renamed, transform.Rename{Kind: o.Type.Kind, Namespace: o.Parsed.Namespace,
			From: o.Parsed.Name, To: name})
	}
}

// addSteps adds the remaining steps on the machine of a Node.
func (s *storage) addSteps(node *inspect.Object) {
	old := node.Parsed.Name
	name := s.to[old]
	labels := child(node.Content, "metadata", "labels")
	step := s.Report().AddStep
	step("On the machine of %s: change the host name to %s, or start kubelet with --hostname-override=%s.",
		old, name, name)
	step("On the machine of %s: give kubelet a client certificate of the user %s%s (/etc/kubernetes/kubelet.conf, "+
		"/var/lib/kubelet/pki), "+
		"as a new machine that joins gets it.", old, userPrefix, name)
	if _, is := labels["node-role.kubernetes.io/control-plane"]; is {
		step("On the machine of %s, of the control plane: make /etc/kubernetes/pki/apiserver.crt and the "+
			"certificates of etcd anew for the name %s "+
			"(kubeadm init phase certs), and change the name in /etc/kubernetes/manifests.", old, name)
		step("An etcd member that is called %s may keep its name: --name and --initial-cluster of the restore and of "+
			"its manifest must agree.", old)
	}
	if s.types.Of(calicoAffinities("crd.projectcalico.org")) != nil ||
		s.types.Of(calicoAffinities("projectcalico.org")) != nil {
		step("On the machine of %s: delete /var/lib/calico/nodename; calico-node writes it anew.", old)
	}
}
