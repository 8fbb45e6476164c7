package encoding

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrWrongKind is returned by functions that read or edit one kind, for an object of another.
var ErrWrongKind = errors.New("wrong kind")

// Workload is what a DaemonSet, Deployment, StatefulSet or ReplicaSet runs.
type Workload struct {
	Meta           Meta
	ServiceAccount string      // of the pod template; the deprecated field where only that is set
	Containers     []Container // init containers first, each kind in its order; a template has no ephemeral ones
}

// Container is one container of a pod template.
type Container struct {
	Name, Image string
	Init        bool
	Env         map[string]string // literal values only; nil without any
}

// Field numbers of the workloads and of what they contain (k8s.io/api apps/v1, apps/v1beta1, apps/v1beta2,
// extensions/v1beta1 and core/v1 generated.proto; all four groups agree).
const (
	objectSpec protowire.Number = 2

	daemonSetTemplate           protowire.Number = 2
	daemonSetTemplateGeneration protowire.Number = 5 // extensions/v1beta1 only
	otherTemplate               protowire.Number = 3 // Deployment, StatefulSet, ReplicaSet

	templateSpec protowire.Number = 2

	podContainers         protowire.Number = 2
	podServiceAccountName protowire.Number = 8
	podServiceAccount     protowire.Number = 9
	podInitContainers     protowire.Number = 20

	containerName  protowire.Number = 1
	containerImage protowire.Number = 2
	containerEnv   protowire.Number = 7

	envName      protowire.Number = 1
	envValue     protowire.Number = 2
	envValueFrom protowire.Number = 3
)

// templateField is the number of the field of the workload's spec that holds the pod template.
func templateField(m Meta) (protowire.Number, error) {
	gvk := m.GVK()
	if gvk.Group == "apps" || gvk.Group == "extensions" {
		switch gvk.Kind {
		case "DaemonSet":
			return daemonSetTemplate, nil
		case "Deployment", "StatefulSet", "ReplicaSet":
			return otherTemplate, nil
		}
	}
	return 0, fmt.Errorf("%w: %q %q is no DaemonSet, Deployment, StatefulSet or ReplicaSet", ErrWrongKind, m.APIVersion, m.Kind)
}

// ReadWorkload reads the pod template of a DaemonSet, Deployment, StatefulSet or ReplicaSet, in protobuf or JSON. It
// returns ErrWrongKind for any other kind, ErrEncrypted and ErrUnknownFormat.
func ReadWorkload(data []byte) (Workload, error) {
	m, err := ReadMeta(data)
	if err != nil {
		return Workload{}, err
	}
	template, err := templateField(m)
	if err != nil {
		return Workload{}, err
	}
	w := Workload{Meta: m}
	f := Detect(data)
	switch f {
	case FormatProtobuf:
		err = w.readProtobuf(data, template)
	case FormatJSON:
		err = w.readJSON(data)
	default:
		return Workload{}, unsupported(data, f)
	}
	if err != nil {
		return Workload{}, fmt.Errorf("%s value: %w", f, err)
	}
	return w, nil
}

func (w *Workload) readProtobuf(data []byte, template protowire.Number) error {
	e, err := openEnvelope(data)
	if err != nil {
		return err
	}
	msg := e.body.payload
	for _, step := range []struct {
		num  protowire.Number
		path string
	}{
		{objectSpec, "spec"}, {template, "spec.template"}, {templateSpec, "spec.template.spec"},
	} {
		f, _, err := findOne(msg, step.num)
		if err != nil {
			return at(step.path, err)
		}
		msg = f.payload
	}
	return at("spec.template.spec", w.readPodSpec(msg))
}

func (w *Workload) readPodSpec(msg []byte) error {
	var containers []Container
	var deprecated string
	for f, err := range fields(msg) {
		if err != nil {
			return err
		}
		switch f.num {
		case podServiceAccountName:
			if w.ServiceAccount, err = f.text(); err != nil {
				return at("serviceAccountName", err)
			}
		case podServiceAccount:
			if deprecated, err = f.text(); err != nil {
				return at("serviceAccount", err)
			}
		case podInitContainers:
			c, err := readContainer(f)
			if err != nil {
				return at(fmt.Sprintf("initContainers[%d]", len(w.Containers)), err)
			}
			c.Init = true
			w.Containers = append(w.Containers, c)
		case podContainers:
			c, err := readContainer(f)
			if err != nil {
				return at(fmt.Sprintf("containers[%d]", len(containers)), err)
			}
			containers = append(containers, c)
		}
	}
	w.Containers = append(w.Containers, containers...)
	if w.ServiceAccount == "" {
		w.ServiceAccount = deprecated
	}
	return nil
}

func readContainer(field wireField) (c Container, err error) {
	msg, err := field.bytes()
	if err != nil {
		return c, err
	}
	for f, err := range fields(msg) {
		if err != nil {
			return c, err
		}
		switch f.num {
		case containerName:
			c.Name, err = f.text()
			err = at("name", err)
		case containerImage:
			c.Image, err = f.text()
			err = at("image", err)
		case containerEnv:
			var env envVar
			if env, err = readEnv(f); err == nil {
				c.setEnv(env)
			}
			err = at("env", err)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// envVar is one entry of a container's env.
type envVar struct {
	name, value string
	from        bool // the value comes from elsewhere
}

func readEnv(field wireField) (envVar, error) {
	msg, err := field.bytes()
	if err != nil {
		return envVar{}, err
	}
	return envOfWire(msg)
}

func envOfWire(msg []byte) (v envVar, err error) {
	for f, err := range fields(msg) {
		if err != nil {
			return v, err
		}
		switch f.num {
		case envName:
			v.name, err = f.text()
		case envValue:
			v.value, err = f.text()
		case envValueFrom:
			v.from = true
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// setEnv adds a variable; of two with one name the last one wins, as in a running container.
func (c *Container) setEnv(v envVar) {
	delete(c.Env, v.name)
	if v.from {
		return
	}
	if c.Env == nil {
		c.Env = make(map[string]string)
	}
	c.Env[v.name] = v.value
}

func (w *Workload) readJSON(data []byte) error {
	type container struct {
		Name  string `json:"name"`
		Image string `json:"image"`
		Env   []struct {
			Name      string         `json:"name"`
			Value     string         `json:"value"`
			ValueFrom map[string]any `json:"valueFrom"`
		} `json:"env"`
	}
	var obj struct {
		Spec struct {
			Template struct {
				Spec struct {
					ServiceAccountName string      `json:"serviceAccountName"`
					ServiceAccount     string      `json:"serviceAccount"`
					InitContainers     []container `json:"initContainers"`
					Containers         []container `json:"containers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := unmarshal(data, &obj); err != nil {
		return err
	}
	pod := obj.Spec.Template.Spec
	for i, in := range append(pod.InitContainers, pod.Containers...) {
		c := Container{Name: in.Name, Image: in.Image, Init: i < len(pod.InitContainers)}
		for _, env := range in.Env {
			c.setEnv(envVar{name: env.Name, value: env.Value, from: env.ValueFrom != nil})
		}
		w.Containers = append(w.Containers, c)
	}
	if w.ServiceAccount = pod.ServiceAccountName; w.ServiceAccount == "" {
		w.ServiceAccount = pod.ServiceAccount
	}
	return nil
}
