package encoding

// EditJSON replaces the field at path, names from the top of a stored JSON value, by what edit makes of its text (a
// missing field is null) and keeps the text, order and names of all other fields. Objects missing on the way are made; a
// new field goes last, or to its place where the names around it are sorted. Where edit returns the text it was given,
// the result is data itself.
//
// ErrEncrypted and ErrUnknownFormat are returned for what is not JSON (CBOR among it), syntax errors with their offset,
// and edit's error with the path.
func EditJSON(data []byte, path []string, edit func(text []byte) ([]byte, error)) ([]byte, error) {
	if f := Detect(data); f != FormatJSON {
		return nil, unsupported(data, f)
	}
	return editJSON(data, func(obj jsonObject) (jsonObject, bool, error) { return obj.editAt(path, edit) })
}

func (o jsonObject) editAt(path []string, edit func(text []byte) ([]byte, error)) (jsonObject, bool, error) {
	return o.edit(path[0], func(text []byte) ([]byte, bool, error) {
		if len(path) == 1 {
			out, err := edit(text)
			return out, string(out) != string(text), err
		}
		inner, err := parseJSONObject(text)
		if err != nil {
			return nil, false, err
		}
		inner, changed, err := inner.editAt(path[1:], edit)
		if err != nil || !changed {
			return text, false, err
		}
		return inner.text(), true, nil
	})
}
