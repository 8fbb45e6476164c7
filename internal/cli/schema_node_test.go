package cli

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/render"
)

// node is the part of JSON Schema (2020-12) needed for documents of Go structs.
type node struct {
	Schema      string     `json:"$schema,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
	Type        any        `json:"type,omitempty"` // a name; nil for any value
	Null        bool       `json:"-"`              // null is allowed too
	Enum        []string   `json:"enum,omitempty"`
	Properties  []property `json:"-"` // in the order of the document
	Required    []string   `json:"required,omitempty"`
	Items       *node      `json:"-"`
	Values      *node      `json:"additionalProperties,omitempty"`
}

type property struct {
	name string
	node *node
}

// text returns the schema with one field per line.
func (n *node) text(indent string) string {
	var out strings.Builder
	short := *n
	if n.Null {
		short.Type = []any{n.Type, "null"}
	}
	var head bytes.Buffer
	list := render.NewList(&head, "jsonl")
	if err := errors.Join(list.Add(short), list.Flush()); err != nil {
		panic(err)
	}
	out.Write(bytes.TrimSuffix(head.Bytes(), []byte("}\n")))
	if n.Items != nil {
		out.WriteString(`,"items":` + n.Items.text(indent))
	}
	for i, p := range n.Properties {
		lead := ","
		if i == 0 {
			lead = `,"properties":{`
		}
		fmt.Fprintf(&out, "%s\n%s  %q: %s", lead, indent, p.name, p.node.text(indent+"  "))
	}
	if n.Properties != nil {
		out.WriteString("}")
	}
	return out.String() + "}"
}

func (n *node) property(name string) *node {
	for _, p := range n.Properties {
		if p.name == name {
			return p.node
		}
	}
	return nil
}

func (n *node) add(name string, of *node, required bool) {
	if n.property(name) != nil {
		panic("two fields " + name)
	}
	n.Properties = append(n.Properties, property{name, of})
	if required {
		n.Required = append(n.Required, name)
	}
}

// schemaOf describes the JSON of a type. Descriptions are the comments of its fields.
func schemaOf(is reflect.Type, sources *sources) *node {
	switch {
	case is == reflect.TypeFor[json.RawMessage]():
		return &node{}
	case is.Implements(reflect.TypeFor[json.Marshaler]()), is.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &node{Type: "string"}
	}
	switch is.Kind() {
	case reflect.Pointer:
		return schemaOf(is.Elem(), sources)
	case reflect.Bool:
		return &node{Type: "boolean"}
	case reflect.String:
		if is == reflect.TypeFor[finding.Outcome]() { // or the text of an option
			return &node{Type: "string"}
		}
		return &node{Type: "string", Enum: sources.constants(is)}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return &node{Type: "integer"}
	case reflect.Float64:
		return &node{Type: "number"}
	case reflect.Map:
		return &node{Type: "object", Values: schemaOf(is.Elem(), sources)}
	case reflect.Slice:
		if is.Elem().Kind() == reflect.Uint8 {
			return &node{Type: "string"}
		}
		return &node{Type: "array", Items: schemaOf(is.Elem(), sources)}
	case reflect.Struct:
		n := &node{Type: "object"}
		n.addFields(is, sources, true)
		return n
	case reflect.Interface:
		return &node{}
	}
	panic("no schema for " + is.String())
}

func (n *node) addFields(is reflect.Type, sources *sources, required bool) {
	if is.Kind() == reflect.Pointer {
		is, required = is.Elem(), false
	}
	for i := range is.NumField() {
		f := is.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous:
			n.addFields(f.Type, sources, required)
		case name == "":
			panic(is.String() + "." + f.Name + " has no name in JSON")
		default:
			of := schemaOf(f.Type, sources)
			of.Description = strings.Trim(sources.comment(is, f)+"; "+sources.values(f.Type), "; ")
			optional := options == "omitempty" || options == "omitzero"
			if nullable := f.Type.Kind() == reflect.Pointer && !optional; nullable ||
				strings.Contains(of.Description, "null if") {
				of.Null = true
			}
			n.add(name, of, required && !optional)
		}
	}
}

// sources reads the comments and constants of packages of this module.
type sources struct {
	parsed map[string][]*ast.File
}

func (s *sources) files(pkg string) []*ast.File {
	const module = "github.com/etcdshift/etcdshift/"
	folder, ours := strings.CutPrefix(pkg, module)
	if files, done := s.parsed[pkg]; done || !ours {
		return files
	}
	paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
	if err != nil || len(paths) == 0 {
		panic("no sources of " + pkg)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		s.parsed[pkg] = append(s.parsed[pkg], file)
	}
	return s.parsed[pkg]
}

// comment returns the comment above and behind a field, or else above the type of its values.
func (s *sources) comment(of reflect.Type, field reflect.StructField) (text string) {
	s.declared(of, func(_ *ast.CommentGroup, spec *ast.TypeSpec) {
		is, _ := spec.Type.(*ast.StructType)
		for _, f := range is.Fields.List {
			if slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == field.Name }) {
				text = strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
			}
		}
	})
	elem := field.Type
	for elem.Kind() == reflect.Pointer || elem.Kind() == reflect.Slice {
		elem = elem.Elem()
	}
	if text != "" || elem.Kind() != reflect.Struct {
		return text
	}
	s.declared(elem, func(doc *ast.CommentGroup, spec *ast.TypeSpec) {
		text = strings.TrimPrefix(strings.Join(strings.Fields(doc.Text()), " "), spec.Name.Name+" ")
		text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	})
	return text
}

// declared calls fn with the declaration of a type of this module.
func (s *sources) declared(of reflect.Type, fn func(*ast.CommentGroup, *ast.TypeSpec)) {
	for _, file := range s.files(of.PkgPath()) {
		for _, d := range file.Decls {
			types, _ := d.(*ast.GenDecl)
			if types == nil || types.Tok != token.TYPE {
				continue
			}
			for _, spec := range types.Specs {
				if spec := spec.(*ast.TypeSpec); spec.Name.Name == of.Name() {
					fn(types.Doc, spec)
				}
			}
		}
	}
}

// constants returns the values of a string type declared in its package.
func (s *sources) constants(of reflect.Type) (values []string) {
	s.eachConstant(of, func(value, _ string) { values = append(values, value) })
	return values
}

// values explains the constants of a type, "" without comments.
func (s *sources) values(of reflect.Type) string {
	var all []string
	s.eachConstant(of, func(value, comment string) {
		if comment != "" {
			all = append(all, value+": "+comment)
		}
	})
	return strings.Join(all, "; ")
}

func (s *sources) eachConstant(of reflect.Type, fn func(value, comment string)) {
	if of.Kind() != reflect.String || of.Name() == "string" {
		return
	}
	for _, file := range s.files(of.PkgPath()) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			name, ok := spec.Type.(*ast.Ident)
			literal, isLiteral := spec.Values[0].(*ast.BasicLit)
			if ok && isLiteral && name.Name == of.Name() {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					panic(err)
				}
				fn(value, strings.Join(strings.Fields(spec.Comment.Text()), " "))
			}
			return true
		})
	}
}
