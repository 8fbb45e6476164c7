package graft

import (
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	addresses = "ipaddresses.networking.k8s.io"
	clusterIP = "cluster IP " // see machines.Clash
	nodePort  = "node port "
)

// service is an imported Service with the addresses that it takes, and those that the replaced
// Service had.
type service struct {
	*item
	takes, frees  []string
	freesIPObject []*inspect.Entry
}

// services are the imported Services of a storage.
type services struct {
	*run
	storage machines.Storage
	found   []*service
}

// checkServices reports cluster IPs and node ports that no API server would give to the Services,
// and allocates the others.
func (r *run) checkServices() error {
	for _, storage := range r.storages("services") {
		s := &services{run: r, storage: storage}
		for _, step := range []func() error{s.find, s.checkTaken, s.allocate, s.reserve} {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// find finds the Services.
func (s *services) find() error {
	content := func(e *transform.Entry) map[string]any {
		content, err := native.Decode(e.Value)
		if err != nil || e.Undecryptable != nil {
			return map[string]any{} // reported as unreadable
		}
		return content
	}
	for _, it := range s.items {
		if it.key.Prefix != s.storage.Prefix || it.key.Resource.String() != "services" {
			continue
		}
		e, err := s.view.Get(s.ctx, it.at)
		if err != nil {
			return err
		}
		one := &service{item: it, takes: machines.Allocated(content(e))}
		if it.replaces != nil {
			before := content(it.replaces)
			one.frees = slices.DeleteFunc(machines.Allocated(before),
				func(what string) bool { return slices.Contains(one.takes, what) })
			if one.freesIPObject, err = s.storage.IPAddresses(s.ctx, it.key, before); err != nil {
				return err
			}
		}
		s.found = append(s.found, one)
	}
	return nil
}

// checkTaken reports addresses of other Services.
func (s *services) checkTaken() error {
	takes := map[string][]string{} // by key
	for _, one := range s.found {
		takes[string(one.at)] = one.takes
	}
	clashes, err := s.storage.Clashes(s.ctx)
	for _, clash := range clashes {
		for _, key := range clash.Keys {
			if slices.Contains(takes[key], clash.What) {
				others := slices.DeleteFunc(slices.Clone(clash.Keys), func(other string) bool { return other == key })
				s.view.Raise(key, transform.CodeAddress.Because("%s is that of %s too", clash.What,
					strings.Join(others, ", ")))
			}
		}
	}
	return err
}

// allocate sets the addresses of the Services in the allocators of the storage, and reports the
// addresses outside of their ranges. API servers with ServiceCIDRs have no allocators of IPs.
func (s *services) allocate() error {
	cidrs, err := s.storage.ServiceCIDRs(s.ctx)
	if err != nil {
		return err
	}
	var ports []string
	for _, name := range []string{"serviceips", "secondaryserviceips", "servicenodeports"} {
		key := s.storage.Key("ranges", "", name)
		e, err := s.view.Get(s.ctx, key)
		if e == nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		a, err := readAllocator(e)
		if err != nil {
			s.view.Raise(string(key), transform.Unreadable(err))
			continue
		}
		if name == "servicenodeports" {
			ports = append(ports, a.text)
		} else if !slices.Contains(cidrs, a.text) {
			cidrs = append(cidrs, a.text)
		}
		for _, one := range s.found {
			for _, what := range one.frees {
				a.set(what, 0)
			}
		}
		for _, one := range s.found {
			for _, what := range one.takes {
				a.set(what, 1)
			}
		}
		value, err := a.value()
		if err != nil {
			s.view.Raise(string(key), transform.Unreadable(err))
			continue
		}
		if err := s.change(key, value, e); err != nil {
			return err
		}
	}
	for _, one := range s.found {
		for _, what := range one.takes {
			if why := outside(what, cidrs, ports); why != "" {
				s.view.Raise(string(one.at), codeAddressOutside.Because("%s %s", what, why))
			}
		}
	}
	return nil
}

// change stages the value of an allocator.
func (s *services) change(key, value []byte, e *transform.Entry) error {
	if string(value) == string(e.Value) {
		return nil
	}
	s.note(key)
	return s.view.Put(s.ctx, key, value)
}

// note records a change of an allocator or an IPAddress.
func (s *services) note(key []byte) {
	s.changed[string(key)] = true
	s.section.Import.Addresses = append(s.section.Import.Addresses, string(key))
}

// outside returns why an address is in no range, "" if it is in one.
func outside(what string, cidrs, ports []string) string {
	text, isPort := strings.CutPrefix(what, nodePort)
	if !isPort {
		return machines.Unallocatable(what, cidrs)
	}
	port, _ := strconv.Atoi(text)
	for _, one := range ports {
		if first, last, ok := portRange(one); ok && port >= first && port <= last {
			return ""
		}
	}
	if len(ports) == 0 {
		return ""
	}
	return "is outside of the range " + strings.Join(ports, ", ")
}

// reserve creates the IPAddresses of the Services, as API servers do, and deletes those of replaced
// Services. An input without IPAddresses is of API servers that have none.
func (s *services) reserve() error {
	model, err := s.modelAddress()
	if model == nil || err != nil {
		return err
	}
	for _, one := range s.found {
		for _, what := range one.takes {
			ip, is := strings.CutPrefix(what, clusterIP)
			if !is {
				continue
			}
			e, err := s.storage.Get(s.ctx, addresses, "", ip)
			if err != nil {
				return err
			}
			if e != nil {
				s.checkAddress(one, ip, e)
				continue
			}
			if err := s.createAddress(model, one.key, ip); err != nil {
				return err
			}
		}
		for _, e := range one.freesIPObject {
			if key, err := e.ParseKey(); err == nil && s.byKey[string(e.Key)] == nil &&
				!slices.Contains(one.takes, clusterIP+key.Name) {
				s.note(e.Key)
				if err := s.view.Delete(s.ctx, e.Key); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// modelAddress returns an IPAddress of a Service; nil for none.
func (s *services) modelAddress() (model *inspect.Object, err error) {
	t := s.types.Of(parseResource(addresses))
	if t == nil {
		return nil, nil
	}
	for e, err := range s.storage.Live(s.ctx, addresses, "") {
		if err != nil {
			return nil, err
		}
		o := inspect.NewObject(t, e)
		if ref, is := reference(o.Content); o.Err == nil && is && ref["resource"] == "services" {
			return o, nil
		}
	}
	return nil, nil
}

func reference(content map[string]any) (ref map[string]any, is bool) {
	spec, _ := content["spec"].(map[string]any)
	ref, is = spec["parentRef"].(map[string]any)
	return ref, is
}

// checkAddress reports an IPAddress that does not belong to the Service.
func (s *services) checkAddress(one *service, ip string, e *transform.Entry) {
	address, err := native.As[networkingv1.IPAddress](e.ParseValue())
	if err != nil || e.Undecryptable != nil {
		s.view.Raise(string(e.Key), transform.Unreadable(err))
		return
	}
	ref := address.Spec.ParentRef
	if ref != nil && ref.Resource == "services" && ref.Namespace == one.key.Namespace && ref.Name == one.key.Name {
		return
	}
	of := "nothing"
	if ref != nil {
		of = strings.Trim(ref.Resource+" "+ref.Namespace+"/"+ref.Name, "/")
	}
	s.view.Raise(string(one.at), transform.CodeAddress.Because("IPAddress %s belongs to %s", ip, of))
}

// createAddress creates the IPAddress of a Service in the form of another one.
func (s *services) createAddress(model *inspect.Object, of keys.Key, ip string) error {
	key := s.storage.Key(addresses, "", ip)
	at, err := s.view.Time(s.ctx)
	if err != nil {
		return err
	}
	digest, err := s.view.InputDigest(s.ctx)
	if err != nil {
		return err
	}
	value, err := addressLike(model, of, ip, objects.MintUID(digest, key), at)
	if err != nil {
		s.view.Raise(string(model.Key), finding.Undecodable.Because("no IPAddress in its form can be made: %v", err))
		return nil
	}
	s.note(key)
	return s.view.Create(s.ctx, key, value, 0)
}
