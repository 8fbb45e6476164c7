package encoding

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
)

// Format is the encoding of a stored value.
type Format int

// The formats of a value in etcd. FormatUnknown, the zero value, includes values that are not API
// objects (compact_rev_key), and protobuf in base64: an API server reads such protobuf as a last
// resort but has never written any, and an edit could not restore the base64.
const (
	FormatUnknown Format = iota
	FormatJSON
	FormatProtobuf
	FormatCBOR
	FormatEncrypted
)

// String returns the usual name of the format.
func (f Format) String() string {
	names := map[Format]string{FormatJSON: "JSON", FormatProtobuf: "protobuf", FormatCBOR: "CBOR",
		FormatEncrypted: "encrypted"}
	return cmp.Or(names[f], "unknown")
}

// ErrEncrypted is returned for a value encrypted at rest. The error text names the provider and the
// key, never bytes of the value.
var ErrEncrypted = finding.WithLasting(errors.New("value is encrypted"),
	"give the EncryptionConfiguration of the API servers of this cluster, or one that still has its keys")

// ErrKMSv1 accompanies ErrEncrypted in the error for a value of a KMS v1 plugin, and the error for
// an EncryptionConfiguration with such a plugin. KMS v1 is off since Kubernetes 1.29.
var ErrKMSv1 = finding.WithLasting(errors.New("rewrap its values to KMS v2 on a live cluster"),
	`docs/guides/encryption.md has the steps under "KMS v1"; a copy of the file without that provider reads all `+
		`other values`)

// Encrypted returns the error for an encrypted value: ErrEncrypted with provider and key name, and
// ErrKMSv1 for KMS v1.
func Encrypted(data []byte) error {
	name, _ := Encryption(data)
	err := fmt.Errorf("%w by %s", ErrEncrypted, name)
	if strings.HasPrefix(name+":", "kms:v1:") {
		err = fmt.Errorf("%[2]w: KMS v1 is not read: %[1]w", ErrKMSv1, err) // the hint of ErrKMSv1 comes first
	}
	return err
}

// ErrUnknownFormat is returned for a value in a format that the called function does not support.
var ErrUnknownFormat = errors.New("unsupported value format")

// The first bytes of a value, from k8s.io/apimachinery pkg/runtime/serializer/{protobuf,cbor} and
// k8s.io/apiserver pkg/storage/value.
const (
	protobufPrefix  = "k8s\x00"
	cborPrefix      = "\xd9\xd9\xf7"
	encryptedPrefix = "k8s:enc:"
	base64Prefix    = "azhzA" // base64 of protobufPrefix with any next bytes
)

// Detect returns the format of a value from its first bytes, without checking the rest.
func Detect(data []byte) Format {
	switch {
	case hasPrefix(data, protobufPrefix):
		return FormatProtobuf
	case hasPrefix(data, encryptedPrefix):
		return FormatEncrypted
	case hasPrefix(data, cborPrefix):
		return FormatCBOR
	case hasPrefix(trimSpace(data), "{"):
		return FormatJSON
	default:
		return FormatUnknown
	}
}

func hasPrefix(data []byte, prefix string) bool {
	return len(data) >= len(prefix) && string(data[:len(prefix)]) == prefix
}

// trimSpace removes leading JSON white space.
func trimSpace(data []byte) []byte {
	for len(data) > 0 && (data[0] == ' ' || data[0] == '\t' || data[0] == '\r' || data[0] == '\n') {
		data = data[1:]
	}
	return data
}

// byFormat reads a value with the function for its format; a nil function rejects the format.
func byFormat[T any](data []byte, readJSON, readCBOR, readProtobuf func([]byte) (T, error)) (out T, err error) {
	var none T
	f := Detect(data)
	read := [...]func([]byte) (T, error){FormatJSON: readJSON, FormatCBOR: readCBOR, FormatProtobuf: readProtobuf,
		FormatEncrypted: nil}[f]
	if read == nil {
		return none, unsupported(data, f)
	}
	if out, err = read(data); err != nil {
		return none, fmt.Errorf("%s value: %w", f, err)
	}
	return out, nil
}

// unsupported returns the error for a value in an unsupported format.
func unsupported(data []byte, f Format) error {
	switch {
	case f == FormatEncrypted:
		return Encrypted(data)
	case f != FormatUnknown:
		return fmt.Errorf("%w: %s", ErrUnknownFormat, f)
	case len(data) == 0:
		return fmt.Errorf("%w: empty", ErrUnknownFormat)
	case hasPrefix(data, base64Prefix):
		return fmt.Errorf("%w: protobuf wrapped in base64", ErrUnknownFormat)
	default:
		return fmt.Errorf("%w: %d bytes, neither a JSON object nor protobuf, CBOR or encrypted",
			ErrUnknownFormat, len(data))
	}
}

// EncryptionParts returns provider, version and key name from the beginning of an encrypted value:
// three parts, or fewer if the value is damaged or cut off. Bytes that do not look like a name are
// never returned; a name ends at its first colon. encrypted is false for plaintext.
func EncryptionParts(data []byte) (parts []string, encrypted bool) {
	rest, encrypted := bytes.CutPrefix(data, []byte(encryptedPrefix))
	if !encrypted {
		return nil, false
	}
	rest = rest[:min(len(rest), 512)]
	for range 3 {
		part, after, found := bytes.Cut(rest, []byte(":"))
		if !found || !isName(part) {
			break
		}
		parts = append(parts, string(part))
		rest = after
	}
	return parts, true
}

func isName(part []byte) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/"
	return len(part) > 0 && len(bytes.Trim(part, letters)) == 0
}

// Encryption names the provider and key of an encrypted value, such as "aescbc:v1:key1"; for KMS
// the plugin's name is the key name. encrypted is false for plaintext.
func Encryption(data []byte) (name string, encrypted bool) {
	parts, encrypted := EncryptionParts(data)
	if encrypted && len(parts) == 0 {
		return "an unnamed provider", true
	}
	return strings.Join(parts, ":"), encrypted
}
