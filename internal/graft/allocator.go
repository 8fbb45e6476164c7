package graft

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	netutils "k8s.io/utils/net"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

func parseResource(name string) schema.GroupResource { return schema.ParseGroupResource(name) }

// allocator is a RangeAllocation: a bit for each IP or port of a range. Sources: pkg/registry/core/
// service/allocator, ipallocator and portallocator of Kubernetes.
type allocator struct {
	entry   *transform.Entry
	parsed  encoding.Value
	content map[string]any
	text    string // the range: "10.96.0.0/12", "30000-32767"
	bits    *big.Int
}

func readAllocator(e *transform.Entry) (*allocator, error) {
	if e.Undecryptable != nil {
		return nil, e.Undecryptable
	}
	a := &allocator{entry: e, bits: new(big.Int)}
	var err error
	if a.parsed, err = e.ParseValue(); err != nil {
		return nil, err
	}
	if a.content, err = native.DecodeParsed(a.parsed); err != nil {
		return nil, err
	}
	a.text, _ = a.content["range"].(string)
	data, _ := a.content["data"].(string)
	raw, err := base64.StdEncoding.DecodeString(data)
	a.bits.SetBytes(raw)
	return a, err
}

// set sets the bit of an address in the form of machines.Clash, if the range has it.
func (a *allocator) set(what string, bit uint) {
	if i, is := a.offset(what); is {
		a.bits.SetBit(a.bits, i, bit)
	}
}

// offset returns the bit of an address.
func (a *allocator) offset(what string) (i int, is bool) {
	if text, isPort := strings.CutPrefix(what, nodePort); isPort {
		port, err := strconv.Atoi(text)
		first, last, ok := portRange(a.text)
		return port - first, err == nil && ok && port >= first && port <= last
	}
	_, cidr, err := netutils.ParseCIDRSloppy(a.text)
	ip := netutils.ParseIPSloppy(strings.TrimPrefix(what, clusterIP))
	if err != nil || ip == nil || !cidr.Contains(ip) {
		return 0, false
	}
	offset := new(big.Int).Sub(netutils.BigForIP(ip), netutils.BigForIP(cidr.IP))
	const most = 1 << 20 // IPs of a range of an API server
	return int(offset.Int64()) - 1, offset.IsInt64() && offset.Int64() >= 1 && offset.Int64() <= most
}

// portRange parses a range of ports: "30000-32767".
func portRange(text string) (first, last int, ok bool) {
	from, to, _ := strings.Cut(text, "-")
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	return first, last, err == nil && err2 == nil && first >= 0 && last <= 65535
}

// value returns the stored bytes with the bits.
func (a *allocator) value() ([]byte, error) {
	data, _ := a.content["data"].(string)
	is := base64.StdEncoding.EncodeToString(a.bits.Bytes())
	if is == data {
		return a.entry.Value, nil
	}
	content := runtime.DeepCopyJSON(a.content)
	content["data"] = is
	return encodeLike(a.entry.Value, a.parsed, content)
}

// encodeLike returns content in the format of a stored value.
func encodeLike(value []byte, parsed encoding.Value, content map[string]any) ([]byte, error) {
	if parsed.Format != encoding.FormatProtobuf {
		return encoding.Set(value, content)
	}
	raw, err := native.Encode(parsed, content)
	if err != nil {
		return nil, err
	}
	return encoding.WithMessage(value, raw)
}

// addressLike returns the value of a new IPAddress of a Service, in the form of model.
func addressLike(model *inspect.Object, of keys.Key, ip, uid string, at time.Time) ([]byte, error) {
	parsed, err := model.ParseValue()
	if err != nil {
		return nil, err
	}
	family := "IPv4"
	if netutils.IsIPv6String(ip) {
		family = "IPv6"
	}
	content := runtime.DeepCopyJSON(model.Content)
	ref, _ := reference(content)
	ref["namespace"], ref["name"] = of.Namespace, of.Name
	metadata, is := content["metadata"].(map[string]any)
	labels, labeled := metadata["labels"].(map[string]any)
	if !is || !labeled {
		return nil, fmt.Errorf("%s has no metadata", model.Key)
	}
	const ofFamily = "ipaddress.kubernetes.io/ip-family"
	labels[ofFamily] = family
	metadata["name"], metadata["uid"] = ip, uid
	metadata["creationTimestamp"] = at.UTC().Format(time.RFC3339)
	delete(metadata, "resourceVersion")
	fields, _ := metadata["managedFields"].([]any)
	for _, one := range fields {
		if entry, is := one.(map[string]any); is {
			entry["time"] = metadata["creationTimestamp"]
		}
	}
	return encodeLike(model.Value, parsed, content)
}
