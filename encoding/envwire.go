package encoding

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// object edits the message of a protobuf workload.
func (e *envEdit) object(raw []byte) ([]byte, bool, error) {
	raw, changed, err := editOne(raw, objectSpec, "spec", e.spec)
	if err != nil || !changed {
		return raw, false, err
	}
	raw, found, err := editOne(raw, objectMeta, "metadata", e.objectMeta)
	if err == nil && !found {
		err = at("metadata", errMissing)
	}
	return raw, true, err
}

func (e *envEdit) spec(msg []byte) ([]byte, bool, error) {
	msg, changed, err := editOne(msg, e.template, "template", func(template []byte) ([]byte, bool, error) {
		return editOne(template, templateSpec, "spec", e.podSpec)
	})
	if err != nil || !changed || !e.raisesField() {
		return msg, changed, err
	}
	var generation int64
	for f, err := range fields(msg) {
		if err == nil && f.num == daemonSetTemplateGeneration {
			generation, err = f.integer()
		}
		if err != nil {
			return nil, false, at("templateGeneration", err)
		}
	}
	if generation, err = raise(generation); err != nil {
		return nil, false, at("templateGeneration", err)
	}
	msg, err = setField(msg, daemonSetTemplateGeneration, integerField(daemonSetTemplateGeneration, generation))
	return msg, true, err
}

func (e *envEdit) podSpec(msg []byte) ([]byte, bool, error) {
	msg, initChanged, err := editEach(msg, podInitContainers, "initContainers", e.container)
	if err != nil {
		return nil, false, err
	}
	msg, changed, err := editEach(msg, podContainers, "containers", e.container)
	return msg, initChanged || changed, err
}

func (e *envEdit) container(_ int, msg []byte) ([]byte, bool, error) {
	found := false
	out, changed, err := editEach(msg, containerEnv, "env", func(_ int, env []byte) ([]byte, bool, error) {
		before, err := envOfWire(env)
		if err != nil || before.name != e.name {
			return env, false, err
		}
		found = true
		return e.envVar(env, before)
	})
	if err == nil && !found {
		env := append(bytesField(envName, []byte(e.name)), bytesField(envValue, []byte(e.value))...)
		out, err = appendField(msg, containerEnv, bytesField(containerEnv, env))
		changed = true
	}
	if err != nil || !changed {
		return msg, false, err
	}
	name, err := lastText(msg, containerName)
	e.changed = append(e.changed, name)
	return out, true, at("name", err)
}

func (e *envEdit) envVar(msg []byte, before envVar) ([]byte, bool, error) {
	if before.value == e.value && !before.from {
		return msg, false, nil
	}
	msg, err := setField(msg, envValue, bytesField(envValue, []byte(e.value)))
	if err != nil {
		return nil, false, err
	}
	if before.from {
		msg, err = setField(msg, envValueFrom, nil)
	}
	return msg, true, err
}

func lastText(msg []byte, num protowire.Number) (text string, err error) {
	for f, err := range fields(msg) {
		if err == nil && f.num == num {
			text, err = f.text()
		}
		if err != nil {
			return "", err
		}
	}
	return text, nil
}

func (e *envEdit) objectMeta(msg []byte) ([]byte, bool, error) {
	generation, err := e.generation()
	if err != nil {
		return nil, false, err
	}
	msg, err = setField(msg, metaGeneration, integerField(metaGeneration, generation))
	if err != nil || !e.raisesAnnotation() {
		return msg, true, err
	}
	templateGeneration, err := e.templateGeneration()
	if err != nil {
		return nil, false, err
	}
	msg, _, err = setMapEntry(msg, metaAnnotations, "annotations", templateGenerationAnnotation, templateGeneration)
	return msg, true, err
}

// setMapEntry sets one entry of a map<string, string>: in place where it is there, else before the first greater key, as
// generated code sorts them.
func setMapEntry(msg []byte, num protowire.Number, name, key, value string) ([]byte, bool, error) {
	msg, found, changed, err := replaceMapEntry(msg, num, name, key, value)
	if err != nil || found {
		return msg, changed, err
	}
	entry := append(bytesField(mapKey, []byte(key)), bytesField(mapValue, []byte(value))...)
	field := bytesField(num, entry)
	for f, err := range fields(msg) {
		if err != nil {
			return nil, false, err
		}
		if f.num != num {
			continue
		}
		k, _, err := mapEntry(f.payload)
		if err != nil {
			return nil, false, at(name, err)
		}
		if bytes.Compare(k, []byte(key)) > 0 {
			return insertAt(msg, f.start, field), true, nil
		}
	}
	msg, err = appendField(msg, num, field)
	return msg, true, err
}

// replaceMapEntry gives an entry of a map<string, string> another value, where it is there.
func replaceMapEntry(msg []byte, num protowire.Number, name, key, value string) (out []byte, found, changed bool, err error) {
	out, changed, err = editEach(msg, num, name, func(_ int, entry []byte) ([]byte, bool, error) {
		k, v, err := mapEntry(entry)
		if err != nil || string(k) != key {
			return entry, false, err
		}
		found = true
		if string(v) == value {
			return entry, false, nil
		}
		entry, err = setField(entry, mapValue, bytesField(mapValue, []byte(value)))
		return entry, true, err
	})
	return out, found, changed, err
}
