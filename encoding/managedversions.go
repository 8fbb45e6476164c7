package encoding

import "slices"

// ManagedVersions lists the apiVersions that the entries of metadata.managedFields of a custom resource name, each once; JSON and
// CBOR only.
func ManagedVersions(data []byte) (versions []string, err error) {
	switch Detect(data) {
	case FormatJSON:
		versions, err = managedOfJSON(data)
	case FormatCBOR:
		versions, err = managedOfCBOR(data)
	}
	slices.Sort(versions)
	return slices.Compact(versions), err
}

func managedOfJSON(data []byte) (versions []string, err error) {
	obj, err := parseJSONValue(data)
	if err != nil {
		return nil, err
	}
	meta, err := obj.object("metadata")
	if err != nil {
		return nil, err
	}
	list, err := parseJSONList(meta.get("managedFields"))
	if err != nil {
		return nil, at("metadata.managedFields", err)
	}
	for _, element := range list {
		entry, err := parseJSONObject(element)
		if err != nil {
			return nil, at("metadata.managedFields", err)
		}
		version, err := entry.str("apiVersion")
		if err != nil {
			return nil, at("metadata.managedFields", err)
		}
		versions = append(versions, version)
	}
	return versions, nil
}

func managedOfCBOR(data []byte) (versions []string, err error) {
	obj, err := decodeCBOR(data)
	if err != nil {
		return nil, err
	}
	meta := reader{obj: obj}
	inner := reader{obj: meta.object("metadata")}
	inner.objects("managedFields", func(entry *reader) { versions = append(versions, entry.str("apiVersion")) })
	if meta.err == nil {
		meta.err = inner.err
	}
	return versions, meta.err
}
