package page

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
)

// content returns all sections that the report has.
func (p Page) content() content {
	c := content{Title: data(filepath.Base(p.Path)), Cards: p.cards()}
	add := func(id, title string, parts ...part) {
		if len(parts) > 0 {
			c.Sections = append(c.Sections, section{id, title, parts})
		}
	}
	add("identity", "The file", p.identity()...)
	add("verify", "Verification", p.verification()...)
	add("doctor", "Diagnosis", p.diagnosis()...)
	if p.Status != nil {
		add("versions", "Stored versions", p.versions()...)
		add("sizes", "Sizes", p.sizes()...)
		add("activity", "Objects over time", p.activity()...)
		add("objects", "Largest and most often written objects", p.objects()...)
		add("history", "History and leases", p.history()...)
	}
	if p.Before != nil {
		add("before", "Differences to the older snapshot", p.before()...)
	}
	if p.Migration != nil {
		add("migration", "Migration", p.migration()...)
	}
	add("sign", "Signatures", p.sign())
	return c
}

// cards are the verdicts at the top.
func (p Page) cards() []card {
	verify := card{"Verification", "sound", "every page and record", good}
	if !p.Verification.Sound {
		verify = card{"Verification", "damaged", render.Plural(len(p.Verification.Findings), "finding"), bad}
	} else if n := len(p.Verification.Warnings); n > 0 {
		verify.More, verify.Level = render.Plural(n, "warning"), odd
	}
	d := p.Diagnosis
	doctor := card{"Diagnosis", "no errors", render.Plural(d.Warnings, "warning") + ", " + render.Plural(d.Infos, "info"), good}
	if d.Warnings > 0 {
		doctor.Level = odd
	}
	if d.Errors > 0 {
		doctor.Value, doctor.Level = render.Plural(d.Errors, "error"), bad
	}
	cards := []card{verify, doctor}
	if st := p.Status; st != nil {
		cards = append(cards, card{"Contents", number(int64(st.Keys)) + " live keys",
			size(int64(st.Pages)*int64(st.PageSize)) + " at revision " + number(st.Revision), plain})
	}
	if b := p.Before; b != nil {
		same := plain
		if b.SameCluster == compare.No {
			same = odd
		}
		cards = append(cards, card{"Differences", render.Plural(b.Total.Found(), "object"),
			fmt.Sprintf("%d added, %d removed", b.Total.Added, b.Total.Removed), same})
	}
	if m := p.Migration; m != nil {
		cards = append(cards, migrationCard(m))
	}
	return cards
}

// identity says which file this is, by its names, digests and numbers.
func (p Page) identity() []part {
	rows := []fact{{"file", []cell{code(p.Path)}}}
	add := func(name string, cells ...cell) { rows = append(rows, fact{name, cells}) }
	st := p.Status
	if st == nil {
		return []part{{Facts: rows}}
	}
	switch {
	case p.Archive != "":
		add("kind", code(p.Archive))
	case st.Raw:
		add("kind", word("database file (member/snap/db)"))
	default:
		add("kind", word("etcdctl snapshot"))
	}
	add("size", word(number(st.Bytes)+" bytes"+compression(st)))
	add("SHA-256", code(st.SHA256))
	add("digest", word(st.Digest))
	add("hash", code(st.Hash), word("as etcdutl snapshot status prints it"))
	add("hashkv", code(st.HashKV), word("as etcdctl endpoint hashkv prints it"))
	add("content", code(st.ContentHash), word("live keys and values alone"))
	if p.Archive == "" {
		add("etcd", code(st.EtcdVersion))
	}
	add("revision", word(report.CurrentRevision(&st.Status)))
	add("compacted", word(report.Compacted(&st.Status)))
	add("keys", count(st.Keys))
	add("records", word(number(int64(st.Records))+", "+render.Plural(st.Tombstones, "tombstone")))
	add("pages", word(fmt.Sprintf("%s of %s bytes, %s free", number(int64(st.Pages)), number(int64(st.PageSize)), number(int64(st.FreePages)))))
	add("leases", word(number(int64(st.Leases))+", held by "+render.Plural(st.LeasedKeys, "key")))
	add("auth", word(report.Auth(&st.Status)))
	return []part{{Facts: append(rows, people(st)...)}}
}

// people are the members, alarms and storage prefixes.
func people(st *report.Status) (rows []fact) {
	if len(st.Alarms) == 0 {
		rows = append(rows, fact{"alarms", []cell{word("none")}})
	}
	for _, a := range first(st.Alarms, mostLines) {
		rows = append(rows, fact{"alarm", []cell{code(string(a.Kind)), word("of member"), code(a.Member)}})
	}
	rows = append(rows, more(len(st.Alarms), "alarms")...)
	for _, m := range first(st.Members, mostLines) {
		cells := []cell{code(m.Name), code(m.ID), code(strings.Join(m.PeerURLs, " "))}
		if m.Learner {
			cells = append(cells, word("a learner"))
		}
		rows = append(rows, fact{"member", cells})
	}
	rows = append(rows, more(len(st.Members), "members")...)
	for _, s := range first(st.Prefixes, mostLines) {
		rows = append(rows, fact{"storage prefix", []cell{code(cmp.Or(s.Prefix, "/")), word(string(s.Flavour))}})
	}
	rows = append(rows, more(len(st.Prefixes), "storage prefixes")...)
	return rows
}

// more is a row for what was left out of all facts of one name.
func more(all int, what string) []fact {
	if text := others(all, mostLines, what); text != "" {
		return []fact{{"", []cell{word(text)}}}
	}
	return nil
}

func compression(st *report.Status) string {
	if st.Compression == "" {
		return ""
	}
	return fmt.Sprintf(", %s of %s bytes", st.Compression, number(st.ExpandedBytes))
}

// verification is the verdict of verify.
func (p Page) verification() (parts []part) {
	v := p.Verification
	if v.Sound {
		parts = append(parts, part{Lead: "Sound: digest, pages, the free list, the order of records and what etcd decodes when it starts were checked."})
	} else {
		parts = append(parts, part{Lead: "Damaged. Nothing else is told of a damaged file: try another copy, or take a new snapshot."})
	}
	if len(p.Skipped) > 0 {
		parts = append(parts, part{Lead: "Skipped, since the file is damaged: " + strings.Join(p.Skipped, ", ") + "."})
	}
	for _, text := range first(v.Findings, mostLines) {
		parts = append(parts, part{Data: data(text)})
	}
	if more := others(len(v.Findings), mostLines, "findings; verify -o json lists them all"); more != "" {
		parts = append(parts, part{Lead: more})
	}
	if len(v.Warnings) > 0 {
		parts = append(parts, part{Lead: "Odd, but etcd accepts it:"})
	}
	for _, text := range v.Warnings { // at most report.MostWarnings
		parts = append(parts, part{Data: data(text)})
	}
	return parts
}

// diagnosis has the findings of doctor by code.
func (p Page) diagnosis() (parts []part) {
	if len(p.Diagnosis.Findings) == 0 {
		return []part{{Lead: "Nothing found."}}
	}
	var last *group
	for _, f := range p.Diagnosis.Findings {
		if last == nil || last.Code != f.Code.Name || last.Level != string(f.Level) {
			last = &group{Level: string(f.Level), Code: f.Code.Name, Title: f.Code.Title, Remedy: f.Remedy, Count: p.Diagnosis.Counts[f.Code]}
			last.Others = others(last.Count, mostLines, "of "+last.Code+"; doctor -o json has them")
			parts = append(parts, part{Finding: last})
		}
		if len(last.Lines) < mostLines {
			key := ""
			if f.Key != "" {
				key = data(f.Key)
			}
			last.Lines = append(last.Lines, line{key, data(f.Message)})
		}
	}
	if text := others(len(parts), mostGroups, "codes; doctor -o json has them"); text != "" {
		parts = append(parts[:mostGroups], part{Lead: text})
	}
	return parts
}

// sign is the place for signatures.
func (p Page) sign() part {
	s := &signature{Rows: make([]int, 4)}
	if p.Status != nil {
		s.Of = p.Status.SHA256
	}
	return part{Sign: s}
}
