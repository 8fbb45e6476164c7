package encoding

// metaOfJSON decodes the metadata field only.
func metaOfJSON(data []byte) (Meta, error) {
	obj, err := parseJSONValue(data)
	if err != nil {
		return Meta{}, err
	}
	fields, err := obj.object("metadata")
	if err != nil {
		return Meta{}, err
	}
	var metadata map[string]any
	text := fields.without("managedFields").text() // most of the text, and nothing of it is read
	if err := unmarshal(text, &metadata); err != nil {
		return Meta{}, at("metadata", err)
	}
	m, err := metaOf(metadata)
	if err != nil {
		return Meta{}, err
	}
	m.APIVersion, m.Kind, err = obj.typeMeta()
	return m, err
}

func metaOfCBOR(data []byte) (Meta, error) {
	obj, err := decodeCBOR(data)
	if err != nil {
		return Meta{}, err
	}
	r := reader{obj: obj}
	apiVersion, kind, metadata := r.str("apiVersion"), r.str("kind"), r.object("metadata")
	if r.err != nil {
		return Meta{}, r.err
	}
	m, err := metaOf(metadata)
	m.APIVersion, m.Kind = apiVersion, kind
	return m, err
}

// metaOf reads decoded metadata.
func metaOf(metadata map[string]any) (Meta, error) {
	r := reader{obj: metadata}
	m := Meta{
		Name:              r.str("name"),
		Namespace:         r.str("namespace"),
		UID:               r.str("uid"),
		Generation:        r.integer("generation"),
		CreationTimestamp: r.time("creationTimestamp"),
		DeletionTimestamp: r.time("deletionTimestamp"),
		Labels:            r.stringMap("labels"),
		Annotations:       r.stringMap("annotations"),
		Finalizers:        r.stringList("finalizers"),
	}
	r.objects("ownerReferences", func(o *reader) {
		m.OwnerReferences = append(m.OwnerReferences, o.owner())
	})
	if r.err != nil {
		return Meta{}, at("metadata", r.err)
	}
	return m, nil
}
