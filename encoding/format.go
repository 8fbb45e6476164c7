package encoding

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Format is how a stored value is written.
type Format int

// The formats a value in etcd can have. FormatUnknown is the zero value. It includes values that are no API objects
// (compact_rev_key), and protobuf wrapped in base64, which an API server still reads as a last resort but has never
// written: an edit could not put back what it found.
const (
	FormatUnknown Format = iota
	FormatJSON
	FormatProtobuf
	FormatCBOR
	FormatEncrypted
)

// String is the name people use for the format.
func (f Format) String() string {
	switch f {
	case FormatJSON:
		return "JSON"
	case FormatProtobuf:
		return "protobuf"
	case FormatCBOR:
		return "CBOR"
	case FormatEncrypted:
		return "encrypted"
	default:
		return "unknown"
	}
}

// ErrEncrypted is returned for a value that an API server encrypted at rest. The text around it names the provider and
// the key, never bytes of the value.
var ErrEncrypted = errors.New("value is encrypted")

// ErrKMSv1 is beside ErrEncrypted in the error of a value that a KMS v1 plugin encrypted, and in that of an
// EncryptionConfiguration that names one: nothing here reads such values. KMS v1 is off by default since Kubernetes 1.29.
var ErrKMSv1 = errors.New("rewrap its values to KMS v2 on a live cluster")

// Encrypted is the error of a value that starts as an API server encrypts values: ErrEncrypted with the provider and the key
// name, and with ErrKMSv1 where that is why no key opens it.
func Encrypted(data []byte) error {
	err := fmt.Errorf("%w by %s", ErrEncrypted, transformerName(data))
	if parts, _ := EncryptionParts(data); len(parts) > 1 && parts[0] == "kms" && parts[1] == "v1" {
		err = fmt.Errorf("%w: KMS v1 is not read: %w", err, ErrKMSv1)
	}
	return err
}

// ErrUnknownFormat is returned for a value that is not an API object in any format the called function takes.
var ErrUnknownFormat = errors.New("unsupported value format")

// First bytes of a value, from k8s.io/apimachinery pkg/runtime/serializer/{protobuf,cbor} and
// k8s.io/apiserver pkg/storage/value.
const (
	protobufPrefix  = "k8s\x00"
	cborPrefix      = "\xd9\xd9\xf7"
	encryptedPrefix = "k8s:enc:"
	base64Prefix    = "azhzA" // base64 of protobufPrefix, whatever follows
)

// Detect tells the format of a value from its first bytes. It never fails and does not say that the value is sound.
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

// trimSpace drops JSON's white space in front.
func trimSpace(data []byte) []byte {
	return bytes.TrimLeft(data, " \t\r\n")
}

// unsupported is the error for a value whose format the caller can't work with.
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
		return fmt.Errorf("%w: %d bytes, neither a JSON object nor protobuf, CBOR or encrypted", ErrUnknownFormat, len(data))
	}
}

// transformerName is the provider, its version and the key name an encrypted value starts with, such as
// "aescbc:v1:key1"; for KMS the plugin's name stands where the key name does. Parts that do not look like names are
// left out, so that bytes of a damaged value never get into an error.
func transformerName(data []byte) string {
	parts, _ := EncryptionParts(data)
	if len(parts) == 0 {
		return "an unnamed provider"
	}
	return strings.Join(parts, ":")
}

// EncryptionParts are the provider, its version and the key name that an encrypted value begins with: three, or fewer where it is
// damaged or cut off. encrypted is false for a value in the clear. A name with a colon in it ends there.
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
	for _, c := range part {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '-' && c != '_' && c != '/' {
			return false
		}
	}
	return len(part) > 0
}

// Encryption names what encrypted a value, such as "aescbc:v1:key1"; for KMS the plugin's name stands where the key name does.
// encrypted is false for a value in the clear.
func Encryption(data []byte) (name string, encrypted bool) {
	if Detect(data) != FormatEncrypted {
		return "", false
	}
	return transformerName(data), true
}
