package encoding

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// SetPodTemplateEnv sets the environment variable name to a literal value in every container and init container of a
// workload's pod template, in protobuf or JSON, and stores what an API server's update would: metadata.generation rises
// by one, and for a DaemonSet its template generation too, without which a DaemonSet controller takes the old pods for
// new ones and does not roll them (k8s.io/kubernetes pkg/controller/daemon/util, IsPodUpdated).
//
// A variable of that name with another value, or with a valueFrom, is replaced where it stands; one that has the value
// stays; else it is added at the end of env. changed names the containers that were changed, init containers first;
// none means that out is data itself. ErrWrongKind, ErrEncrypted and ErrUnknownFormat are returned.
func SetPodTemplateEnv(data []byte, name, value string) (out []byte, changed []string, err error) {
	m, err := ReadMeta(data)
	if err != nil {
		return nil, nil, err
	}
	template, err := templateField(m)
	if err != nil {
		return nil, nil, err
	}
	e := envEdit{meta: m, template: template, name: name, value: value}
	f := Detect(data)
	switch f {
	case FormatProtobuf:
		out, err = editProtobuf(data, e.object)
	case FormatJSON:
		out, err = editJSON(data, e.jsonValue)
	default:
		return nil, nil, unsupported(data, f)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s value: %w", f, err)
	}
	return out, e.changed, nil
}

// envEdit is one run over one workload.
type envEdit struct {
	meta        Meta
	template    protowire.Number // field of the spec that holds the pod template
	name, value string
	changed     []string // container names
}

var (
	errMissing  = errors.New("missing")
	errNoNumber = errors.New("not a number that can be raised by one")
)

// templateGenerationAnnotation holds a DaemonSet's template generation in all groups but extensions/v1beta1. A server
// always writes it (k8s.io/kubernetes pkg/apis/apps/v1, Convert_apps_DaemonSet_To_v1_DaemonSet).
const templateGenerationAnnotation = "deprecated.daemonset.template.generation"

// raisesAnnotation and raisesField say where the template generation is, if there is one.
func (e *envEdit) raisesAnnotation() bool {
	return e.template == daemonSetTemplate && e.meta.GVK().Group != "extensions"
}

func (e *envEdit) raisesField() bool {
	return e.template == daemonSetTemplate && e.meta.GVK().Group == "extensions"
}

func raise(n int64) (int64, error) {
	if n == math.MaxInt64 {
		return 0, errNoNumber
	}
	return n + 1, nil
}

// generation is metadata.generation after the change.
func (e *envEdit) generation() (int64, error) {
	n, err := raise(e.meta.Generation)
	return n, at("generation", err)
}

// templateGeneration is the annotation's value after the change. A missing one counts as 0, as on a server.
func (e *envEdit) templateGeneration() (string, error) {
	text, found := e.meta.Annotations[templateGenerationAnnotation]
	if !found {
		return "1", nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", at("annotations", errNoNumber)
	}
	n, err = raise(n)
	return strconv.FormatInt(n, 10), at("annotations", err)
}
