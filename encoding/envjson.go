package encoding

import "strconv"

// jsonValue edits a JSON workload.
func (e *envEdit) jsonValue(obj jsonObject) (jsonObject, bool, error) {
	obj, changed, err := obj.edit("spec", e.jsonSpec)
	if err != nil || !changed {
		return obj, false, err
	}
	return obj.edit("metadata", e.jsonMeta)
}

func (e *envEdit) jsonSpec(text []byte) ([]byte, bool, error) {
	spec, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	spec, changed, err := spec.edit("template", func(text []byte) ([]byte, bool, error) {
		template, err := parseJSONObject(text)
		if err != nil {
			return nil, false, err
		}
		template, changed, err := template.edit("spec", e.jsonPodSpec)
		return template.text(), changed, err
	})
	if err != nil || !changed || !e.raisesField() {
		return spec.text(), changed, err
	}
	generation, err := spec.integer("templateGeneration")
	if err != nil {
		return nil, false, err
	}
	if generation, err = raise(generation); err != nil {
		return nil, false, at("templateGeneration", err)
	}
	return spec.set("templateGeneration", strconv.AppendInt(nil, generation, 10)).text(), true, nil
}

func (e *envEdit) jsonPodSpec(text []byte) ([]byte, bool, error) {
	pod, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	pod, initChanged, err := pod.edit("initContainers", e.jsonContainers)
	if err != nil {
		return nil, false, err
	}
	pod, changed, err := pod.edit("containers", e.jsonContainers)
	return pod.text(), initChanged || changed, err
}

func (e *envEdit) jsonContainers(text []byte) ([]byte, bool, error) {
	return editList(text, e.jsonContainer)
}

func (e *envEdit) jsonContainer(_ int, text []byte) ([]byte, bool, error) {
	container, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	name, err := container.str("name")
	if err != nil {
		return nil, false, err
	}
	container, changed, err := container.edit("env", e.jsonEnv)
	if err != nil || !changed {
		return text, false, err
	}
	e.changed = append(e.changed, name)
	return container.text(), true, nil
}

func (e *envEdit) jsonEnv(text []byte) ([]byte, bool, error) {
	found := false
	text, changed, err := editList(text, func(_ int, text []byte) ([]byte, bool, error) {
		env, err := parseJSONObject(text)
		if err != nil {
			return nil, false, err
		}
		name, err := env.str("name")
		if err != nil || name != e.name {
			return text, false, err
		}
		found = true
		value, err := env.str("value")
		from := string(env.get("valueFrom")) != "null"
		if err != nil || value == e.value && !from {
			return text, false, err
		}
		return env.without("valueFrom").set("value", quote(e.value)).text(), true, nil
	})
	if err != nil || found {
		return text, changed, err
	}
	list, err := parseJSONList(text)
	if err != nil {
		return nil, false, err
	}
	env := jsonObject{}.set("name", quote(e.name)).set("value", quote(e.value))
	return listText(append(list, env.text())), true, nil
}

func (e *envEdit) jsonMeta(text []byte) ([]byte, bool, error) {
	metadata, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	generation, err := e.generation()
	if err != nil {
		return nil, false, err
	}
	metadata = metadata.set("generation", strconv.AppendInt(nil, generation, 10))
	if !e.raisesAnnotation() {
		return metadata.text(), true, nil
	}
	templateGeneration, err := e.templateGeneration()
	if err != nil {
		return nil, false, err
	}
	metadata, _, err = metadata.edit("annotations", func(text []byte) ([]byte, bool, error) {
		annotations, err := parseJSONObject(text)
		if err != nil {
			return nil, false, err
		}
		return annotations.set(templateGenerationAnnotation, quote(templateGeneration)).text(), true, nil
	})
	return metadata.text(), true, err
}
