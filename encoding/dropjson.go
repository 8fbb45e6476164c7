package encoding

// DropJSON removes the field at path, names from the top of a stored JSON value, and keeps the text, order and names of all other
// fields. Where it is not there the result is data itself. Errors are those of EditJSON.
func DropJSON(data []byte, path []string) ([]byte, error) {
	if f := Detect(data); f != FormatJSON {
		return nil, unsupported(data, f)
	}
	return editJSON(data, func(obj jsonObject) (jsonObject, bool, error) { return obj.dropAt(path) })
}

func (o jsonObject) dropAt(path []string) (jsonObject, bool, error) {
	if o.last(path[0]) < 0 {
		return o, false, nil
	}
	if len(path) == 1 {
		return o.without(path[0]), true, nil
	}
	return o.edit(path[0], func(text []byte) ([]byte, bool, error) {
		inner, err := parseJSONObject(text)
		if err != nil {
			return nil, false, err
		}
		inner, dropped, err := inner.dropAt(path[1:])
		if err != nil || !dropped {
			return text, false, err
		}
		return inner.text(), true, nil
	})
}
