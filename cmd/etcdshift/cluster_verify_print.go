package main

import (
	"io"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform/kcp/verify"
)

// moveVerification is the document of cluster verify -o json.
type moveVerification struct {
	answerHead
	Archive        inputInfo       `json:"archive"` // empty but for the path where the file could not be opened; so are the others
	OriginOut      inputInfo       `json:"originOut"`
	DestinationOut inputInfo       `json:"destinationOut"`
	Origin         *inputInfo      `json:"origin,omitempty"`      // the input of extract and purge, where it was given
	Destination    *inputInfo      `json:"destination,omitempty"` // the input of import, where it was given
	Caches         []inputInfo     `json:"caches"`
	CachesBefore   []inputInfo     `json:"cachesBefore,omitempty"` // inputs of the purge of caches, in their order
	Sound          bool            `json:"sound"`                  // everything was checked and nothing found: every answer is "no"
	From           string          `json:"from"`                   // name of the shard; "" where the files do not say
	To             string          `json:"to"`
	Clusters       []verify.Moved  `json:"clusters"`
	Answers        []verify.Answer `json:"answers"`  // one a question
	Findings       []moveFinding   `json:"findings"` // by question, code, file and key
	Unjudged       []moveUnjudged  `json:"unjudged"` // parts that could not be checked
	Notes          []string        `json:"notes"`    // what a person should know that is no finding
}

type moveFinding struct {
	Code     string          `json:"code"` // etcdshift explain CODE
	Question verify.Question `json:"question"`
	File     string          `json:"file"`          // the path of the file
	Key      string          `json:"key,omitempty"` // absent for a finding about a file or a logical cluster as a whole
	Message  string          `json:"message"`
}

type moveUnjudged struct {
	Question verify.Question `json:"question"`
	File     string          `json:"file"`
	Key      string          `json:"key,omitempty"`
	Reason   string          `json:"reason"`
}

func (m *moveCheck) print(v *verify.Verdict) error {
	if !wantsJSON(m.c) {
		return printMoveText(m.c.App.Writer, v)
	}
	doc := &m.doc
	doc.Sound, doc.From, doc.To, doc.Clusters, doc.Answers, doc.Notes = v.Sound(), v.From, v.To, v.Clusters, v.Answers, v.Notes
	doc.Findings = mapped(v.Findings, func(f verify.Finding) moveFinding {
		return moveFinding{f.Code.Name, f.Question, f.File, f.Key, f.Reason}
	})
	doc.Unjudged = mapped(v.Unchecked, func(f verify.Finding) moveUnjudged { return moveUnjudged{f.Question, f.File, f.Key, f.Reason} })
	for _, f := range m.files {
		if f.opened == nil {
			continue
		}
		in, err := f.input(m.c.Context)
		if err != nil && !isDamage(err) {
			return err
		}
		f.tell(in)
	}
	return render.JSON(m.c.App.Writer, m.doc)
}

func printMoveText(w io.Writer, v *verify.Verdict) error {
	p := render.NewPage(w)
	for _, c := range v.Clusters {
		p.Printf("%s %s: %s from %s to %s\n", c.Name, c.Path, render.Plural(c.Keys, "record"), shardCalled(v.From), shardCalled(v.To))
	}
	if len(v.Clusters) > 0 {
		p.Printf("\n")
	}
	p.Table([]any{"QUESTION", "ANSWER", "CHECKED", "FINDINGS"}, mapped(v.Answers, func(a verify.Answer) []any {
		return []any{a.Question, a.Answer, a.Checked, a.Findings}
	})...)
	const more = "; -o json lists them all"
	for findings := range grouped(v.Findings, func(f verify.Finding) *finding.Code { return f.Code }) {
		p.Printf("\n%s: %s\n", findings[0].Question, findings[0].Code.Name)
		p.First("   ", mapped(findings, func(f verify.Finding) string { return about(f.Reason, f.File, f.Key) }), 5, len(findings), more)
	}
	if len(v.Unchecked) > 0 {
		p.Printf("\nnot checked:\n")
	}
	unjudged := mapped(v.Unchecked, func(u verify.Finding) string { return about(u.Reason, u.File, u.Key) })
	p.First("   ", unjudged, mostListed, len(unjudged), more)
	if len(v.Notes) > 0 {
		p.Printf("\n")
	}
	p.Lines("note: ", v.Notes)
	if v.Sound() {
		p.Printf("\nthe move is sound\n   -> with all front-proxies stopped, restore; start the etcds, the cache server and the shards, " +
			"and the front-proxies last\n")
	}
	return p.Flush()
}

func shardCalled(name string) string {
	if name == "" {
		return "a shard that no file names"
	}
	return "shard " + name
}
