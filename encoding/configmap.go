package encoding

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// configMapData is the field number of ConfigMap.data (k8s.io/api core/v1 generated.proto).
const configMapData protowire.Number = 2

// ReadConfigMap is the data of a ConfigMap, in protobuf or JSON; binaryData is not part of it. It returns ErrWrongKind,
// ErrEncrypted and ErrUnknownFormat.
func ReadConfigMap(data []byte) (map[string]string, error) {
	v, err := parseConfigMap(data)
	if err != nil {
		return nil, err
	}
	var out map[string]string
	if v.Format == FormatJSON {
		obj, _, err := DecodeObject(data)
		if err != nil {
			return nil, err
		}
		r := reader{obj: obj}
		out, err = r.stringMap("data"), r.err
		if err != nil {
			return nil, fmt.Errorf("%s value: %w", v.Format, err)
		}
		return out, nil
	}
	for f, err := range fields(v.Raw) {
		if err == nil && f.num == configMapData {
			out, err = readMapEntry(out, f)
		}
		if err != nil {
			return nil, fmt.Errorf("%s value: %w", v.Format, at("data", err))
		}
	}
	return out, nil
}

// SetConfigMapData sets one entry of a ConfigMap's data, in place where it is there, and keeps everything else byte for
// byte. A ConfigMap has no generation, so nothing else changes. It returns data itself where the entry has the value
// already, and the errors of ReadConfigMap.
func SetConfigMapData(data []byte, key, value string) ([]byte, error) {
	v, err := parseConfigMap(data)
	if err != nil {
		return nil, err
	}
	var out []byte
	if v.Format == FormatJSON {
		out, err = editJSON(data, func(obj jsonObject) (jsonObject, bool, error) {
			return obj.edit("data", func(text []byte) ([]byte, bool, error) {
				return setJSONEntry(text, key, value)
			})
		})
	} else {
		out, err = editProtobuf(data, func(raw []byte) ([]byte, bool, error) {
			return setMapEntry(raw, configMapData, "data", key, value)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s value: %w", v.Format, err)
	}
	return out, nil
}

func setJSONEntry(text []byte, key, value string) ([]byte, bool, error) {
	entries, err := parseJSONObject(text)
	if err != nil {
		return nil, false, err
	}
	before, err := entries.str(key)
	if err != nil {
		return nil, false, err
	}
	if before == value && entries.last(key) >= 0 {
		return text, false, nil
	}
	return entries.set(key, quote(value)).text(), true, nil
}

func parseConfigMap(data []byte) (Value, error) {
	v, err := Parse(data)
	if err != nil {
		return Value{}, err
	}
	if v.GVK.Group != "" || v.GVK.Kind != "ConfigMap" {
		return Value{}, fmt.Errorf("%w: %q is no ConfigMap", ErrWrongKind, v.GVK)
	}
	if v.Format != FormatJSON && v.Format != FormatProtobuf {
		return Value{}, unsupported(data, v.Format)
	}
	return v, nil
}
