package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// tableWidth is what a manual page on a terminal of 80 columns leaves for a table.
const tableWidth = 72

var (
	roffTable = regexp.MustCompile(`(?s)\.TS\nallbox;\n[l ]+\n[l ]+\.\n(.*?)\.TE\n`)
	roffFont  = regexp.MustCompile(`\\f[BIPR]`)
	longWord  = regexp.MustCompile(`\S{20,}`)
	wordPart  = regexp.MustCompile(`[-/_.=,:]+`)
)

// manualLayout makes a manual page of md2man fit a terminal. Lines end between words, which are
// often names to copy, and the columns of tables have widths: md2man's are as wide as their longest
// cell.
func manualLayout(page []byte) []byte {
	page = bytes.Replace(page, []byte(".nh\n"), []byte(".nr HY 0\n.ds AD l\n"), 1) // .nh ends at the next heading
	return roffTable.ReplaceAllFunc(page, func(table []byte) []byte {
		rows := rowsOf(string(roffTable.FindSubmatch(table)[1]))
		var b strings.Builder
		b.WriteString(".TS\nallbox;\n")
		for _, width := range columnWidths(rows) {
			fmt.Fprintf(&b, "lw(%dn) ", width)
		}
		b.WriteString(".\n")
		for _, row := range rows {
			for i, cell := range row {
				row[i] = "T{\n\\&" + cell + "\nT}"
			}
			b.WriteString(strings.Join(row, "\t") + "\n")
		}
		b.WriteString(".TE\n")
		return []byte(b.String())
	})
}

// rowsOf are the cells of a table, in which long words may be broken. md2man writes a row in a
// line, but for text blocks and the addresses of links.
func rowsOf(table string) (rows [][]string) {
	table = strings.NewReplacer("T{\n", "", "\nT}", "", "\n\\[la]", ` \[la]`).Replace(table)
	for line := range strings.Lines(table) {
		line = longWord.ReplaceAllStringFunc(strings.TrimSuffix(line, "\n"), func(word string) string {
			return wordPart.ReplaceAllString(word, `$0\:`)
		})
		rows = append(rows, strings.Split(line, "\t"))
	}
	return rows
}

// columnWidths are the widths of columns: of the widest cells if all of them fit. Else the widest
// column gives way, down to its longest word, and where that is not enough to a part of it.
func columnWidths(rows [][]string) []int {
	widths, words, parts := make([]int, len(rows[0])), make([]int, len(rows[0])), make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			broken := roffFont.ReplaceAllString(cell, "")
			text := strings.ReplaceAll(broken, `\:`, "")
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
			words[i] = max(words[i], longest(text))
			parts[i] = max(parts[i], longest(strings.ReplaceAll(broken, `\:`, " ")))
		}
	}
	room := tableWidth - 1
	for _, width := range widths {
		room -= width + 3
	}
	for _, floor := range [][]int{words, parts} {
		for ; room < 0; room++ {
			widest := -1
			for i, width := range widths {
				if width > floor[i] && (widest < 0 || width > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
	return widths
}

// longest is the width of the longest word.
func longest(text string) (width int) {
	for word := range strings.FieldsSeq(text) {
		width = max(width, utf8.RuneCountInString(word))
	}
	return width
}
